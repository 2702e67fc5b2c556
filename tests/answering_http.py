"""An HTTP server that answers as each test says, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    """Close the connection instead of answering."""


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: Any


Behaviour = Callable[[int, Asked], Reply]


@dataclass
class Server:
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    most_at_once: int = 0


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[Server]:
    server, lock, now = Server(), threading.Lock(), 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def _answer(self, body: Any) -> None:
            nonlocal now
            asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            with lock:
                server.asked.append(asked)
                number = len(server.asked)
                now += 1
                server.most_at_once = max(server.most_at_once, now)
            try:
                reply = behaviour(number, asked)
            finally:
                with lock:
                    now -= 1
            if reply.drop:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: Any) -> None: ...

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: Any) -> None: ...

    http = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
