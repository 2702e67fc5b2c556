"""A real mail server and a chat's webhook on loopback, which take, refuse, hold or drop what they are sent."""

from __future__ import annotations

import email
import email.policy
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller


class Mailbox:
    """A mail server's handler: keeps what it takes."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.answer = "250 OK"
        """To the end of each message."""
        self.port = 0

    async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:
        if self.answer.startswith("250"):
            message = email.message_from_bytes(envelope.content, policy=email.policy.default)
            assert isinstance(message, EmailMessage)
            self.mails.append(message)
            self.recipients += envelope.rcpt_tos
        return self.answer

    @property
    def url(self) -> str:
        return f"mailto://127.0.0.1:{self.port}/?from=proctor@example.org&mode=insecure"


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    """An SMTP server without users."""
    mailbox = Mailbox()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        mailbox.port = free.getsockname()[1]
    controller = Controller(mailbox, hostname="127.0.0.1", port=mailbox.port)
    controller.start()
    try:
        yield mailbox
    finally:
        controller.stop()


class Chat:
    """A chat's webhook."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        """What was taken."""
        self.answers: list[int | str] = []
        """To the next requests: a status, `drop` (the connection ends without a word) or `hold` (no answer before
        `release`), after the message was taken. Then 200."""
        self.held = threading.Event()
        """Set when a request is held."""
        self._released = threading.Event()
        chat = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = chat.answers.pop(0) if chat.answers else 200
                if isinstance(answer, str) or answer < 400:
                    chat.messages.append(body)
                if answer == "drop":
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if answer == "hold":
                    chat.held.set()
                    chat._released.wait()
                    return
                self.send_response(int(answer))
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Whoever asked may have been killed."""

        self.server = Server(("127.0.0.1", 0), Handler)

    def release(self) -> None:
        self._released.set()

    @property
    def url(self) -> str:
        """apprise's, of a Mattermost, whose key is its path."""
        return f"mmost://127.0.0.1:{self.server.server_port}/{SECRET}"


#: The key of the chat's webhook, which must stand nowhere.
SECRET = "k3yofthechat5webhook0000ab"


@contextmanager
def chat_server() -> Iterator[Chat]:
    """A chat that takes messages until it is told otherwise."""
    chat = Chat()
    thread = threading.Thread(target=chat.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield chat
    finally:
        chat.release()
        chat.server.shutdown()
        chat.server.server_close()
        thread.join()
