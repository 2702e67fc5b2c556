"""A server that sends the bytes that a test wants, whatever it is asked: HTTP or not."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path

from tests.hostile.listening import listening

#: What one request is answered with, in pieces that are sent one after the other.
Respond = Callable[[bytes], Iterable[bytes]]


def response(body: bytes = b"", *, status: int = 200, length: int | None = None, **headers: str) -> bytes:
    """A response with its headers; underscores in their names stand for dashes."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    named = {"content_length": str(len(body) if length is None else length)} | headers
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in named.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


@contextmanager
def raw_http(respond: Respond, *, tls: tuple[Path, Path] | None = None) -> Iterator[str]:
    """The URL of a server that answers every request by `respond`.

    Args:
        respond: the pieces of what a request is answered with.
        tls: certificate and key; the URL is then https://localhost.
    """
    context = None
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
    ending = threading.Event()

    def serve(accepted: socket.socket) -> None:
        with (
            suppress(OSError),
            accepted,
            context.wrap_socket(accepted, server_side=True) if context else accepted as connection,
        ):
            while (request := _request(connection)) is not None:
                for piece in respond(request):
                    if ending.is_set():
                        return
                    connection.sendall(piece)

    with listening(serve) as port:
        try:
            yield f"https://localhost:{port}" if context else f"http://127.0.0.1:{port}"
        finally:
            ending.set()


def _request(connection: socket.socket) -> bytes | None:
    """The next request of a connection; None where it has ended."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
    )
    while len(body) < length:
        if not (more := connection.recv(65536)):
            return None
        body += more
    return head + b"\r\n\r\n" + body[:length]
