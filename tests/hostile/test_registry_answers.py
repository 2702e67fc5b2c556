"""A registry that answers with what no registry should."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from proctor.domain.errors import RegistryError
from proctor.registry import mlflow_client
from proctor.registry.mlflow_client import MAX_ANSWER_BYTES, MlflowClient
from proctor.registry.model_registry import RegistryUnavailableError
from tests.hostile.limited import run_limited

Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def registry(answer: Answer) -> Iterator[str]:
    """A server that answers every request as it is told; yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                answer(self)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def says(body: bytes, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def test_a_compressed_answer_is_refused_before_it_inflates() -> None:
    bomb = gzip.compress(gzip.compress(b"0" * (1 << 28)))
    code = """
import sys
from proctor.registry.mlflow_client import MlflowClient
try:
    MlflowClient(sys.argv[1], environ={}).version("m", "1")
except Exception as error:
    print(type(error).__name__, error)
"""
    for encoding in ("gzip, gzip", "GZIP", "br", "zstd", "deflate"):
        with registry(says(bomb, Content_Encoding=encoding)) as url:
            done = run_limited(code, url)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("RegistryError MLflow at http://127.0.0.1:")
        assert "which was not asked for" in done.stdout


def test_an_answer_without_end_is_given_up() -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(b" " * (1 << 20))

    with registry(endless) as url, pytest.raises(RegistryError, match=f"more than {MAX_ANSWER_BYTES:,} bytes"):
        MlflowClient(url, environ={}).version("m", "1")


def test_an_answer_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlflow_client, "MAX_ANSWER_S", 0.3)
    gone = threading.Event()

    def dripping(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not gone.wait(0.05):
            handler.wfile.write(b" ")

    with registry(dripping) as url:
        try:
            with pytest.raises(RegistryUnavailableError, match="did not end its answer"):
                MlflowClient(url, environ={}).version("m", "1")
        finally:
            gone.set()


@pytest.mark.parametrize("body", [b"[" * 200_000, b"", b"\xff", b"[]", b"1" * 100_000, b'{"a":' * 100_000])
def test_an_answer_that_is_no_object_is_one_clear_error(body: bytes) -> None:
    with registry(says(body)) as url, pytest.raises(RegistryError, match="no answer of MLflow's registry"):
        MlflowClient(url, environ={}).version("m", "1")


def test_pages_without_end_are_not_asked_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlflow_client, "MAX_PAGES", 5)
    asked: list[Any] = []

    def page(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.path)
        says(json.dumps({"model_versions": [], "next_page_token": f"t{len(asked)}"}).encode())(handler)

    with registry(page) as url, pytest.raises(RegistryError, match="no end of model versions"):
        list(MlflowClient(url, environ={}).versions())
    assert len(asked) == 5
