"""S3 for tests: moto's server in a process of its own, and a server that answers what a script says."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import httpx
import pytest

from tests.support import ending, free_port, missing, wait_until

#: Moto shows private objects to whoever signs, takes any signature, and would read urllib's own type as a form.
_HEADERS = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, Signature=x",
    "Content-Type": "application/octet-stream",
}
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "example-secret"}


def only_credentials(patch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
    """Take every AWS_* variable out of the environment, and set these."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        patch.delenv(name)
    for name, value in environ.items():
        patch.setenv(name, value)


class Bucket:
    """A bucket as plain HTTP sees it, without the client under test."""

    def __init__(self, server: str, name: str) -> None:
        self._url = f"{server}/{name}"
        self._ask("PUT", "")

    def keys(self) -> list[str]:
        return re.findall("<Key>(.*?)</Key>", self._ask("GET", "?list-type=2").decode())

    def read(self, key: str) -> bytes:
        return self._ask("GET", f"/{key}")

    def write(self, key: str, data: bytes) -> None:
        self._ask("PUT", f"/{key}", data)

    def delete(self, key: str) -> None:
        self._ask("DELETE", f"/{key}")

    def _ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        request = urllib.request.Request(self._url + path, data, _HEADERS, method=method)
        with urllib.request.urlopen(request) as answer:
            body: bytes = answer.read()
            return body


@contextmanager
def moto_server() -> Iterator[str]:
    """Moto's S3 on a free port; yields its URL."""
    if importlib.util.find_spec("moto") is None:
        missing("moto's server is not installed: pip install 'moto[s3]' flask flask-cors")
    url = f"http://127.0.0.1:{(port := free_port())}"
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with ending(process):
        wait_until(lambda: process.poll() is not None or _answers(url), timeout_s=40, what="moto's answer")
        yield url


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/moto-api/").is_success
    except httpx.TransportError:
        return False


class Answer(NamedTuple):
    """What the scripted server says to one request."""

    status: int
    body: bytes = b""
    announced: int | None = None
    """A Content-Length other than the body's; the connection is closed after the body then."""
    put: datetime | None = None
    """When the object was last put; by default just now."""

    @property
    def length(self) -> int:
        return len(self.body) if self.announced is None else self.announced


class ScriptedS3:
    """A server that gives each request the next answer of its script, the last one for ever, and notes the requests."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                script.asked.append(self.command)
                answer = script._answers.pop(0) if len(script._answers) > 1 else script._answers[0]
                self.send_response(answer.status)
                self.send_header("Content-Length", str(answer.length))
                self.send_header("ETag", '"etag"')
                self.send_header("Last-Modified", format_datetime(answer.put or datetime.now(UTC), usegmt=True))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)
                self.close_connection = answer.announced is not None

            do_GET = do_HEAD = do_PUT = do_POST = answer

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> ScriptedS3:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
