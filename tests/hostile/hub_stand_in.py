"""A stand-in for the Hugging Face Hub on loopback: its listing of a repository and its files, and what a hostile one
would send instead. It speaks the two addresses that Proctor asks; a real hub cannot be had in tests.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

Answer = Callable[[BaseHTTPRequestHandler], None]


class StandInHub:
    """Repositories by id and commit. `answers` replaces what is sent at a path."""

    def __init__(self) -> None:
        self.files: dict[tuple[str, str], dict[str, bytes]] = {}
        self.listed: dict[str, dict[str, Any]] = {}
        """What the listing says of a file, in place of the truth."""
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.tokens: list[str | None] = []
        self.url = ""

    def entry(self, path: str, content: bytes) -> dict[str, Any]:
        git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        entry: dict[str, Any] = {"type": "file", "path": path, "size": len(content), "oid": git}
        if path.endswith(".parquet"):
            entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
        return entry | self.listed.get(path, {})

    def respond(self, handler: BaseHTTPRequestHandler) -> None:
        path = unquote(urlsplit(handler.path).path)
        self.asked.append(path)
        self.tokens.append(handler.headers.get("Authorization"))
        if path in self.answers:
            self.answers[path](handler)
            return
        for (name, revision), files in self.files.items():
            if path == f"/api/datasets/{name}/tree/{revision}":
                send(handler, json.dumps([self.entry(*file) for file in files.items()]).encode())
                return
            for file, content in files.items():
                if path == f"/datasets/{name}/resolve/{revision}/{file}":
                    send(handler, content)
                    return
        send(handler, b"{}", status=404)


def send(handler: BaseHTTPRequestHandler, body: bytes, *, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def endless(handler: BaseHTTPRequestHandler) -> None:
    """Bytes for as long as somebody takes them."""
    handler.send_response(200)
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"x" * 65_536)
    except OSError:
        pass


@contextmanager
def stand_in_hub() -> Iterator[StandInHub]:
    hub = StandInHub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.respond(self)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
