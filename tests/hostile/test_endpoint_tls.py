"""Servers whose certificates are of another name, have ended, or are by an authority that nobody trusts.

Each is asked in a process of its own, because gRPC reads the authorities that it trusts once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent import futures
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

from tests.certificates import Authority
from tests.hostile.raw_http import raw_http, response

ASK = """
import asyncio, json, sys
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.trial import Arm, Decoding, Trial
from proctor.inference.worker.open_backend import open_backend

async def asked(backend, url):
    spec = EndpointSpec(backend=backend, url=url, served_name="m", model_version=None, gets_keys=True)
    one = open_backend(spec, None)
    trial = Trial(arm=Arm.CANONICAL, item_id="1", prompt="a secret item")
    try:
        found = await one.probe()
        [got] = await one.complete([trial], Decoding(), deadline_s=4.0)
        return {"ok": found.ok, "detail": found.detail, "error": got.error, "text": got.text, "again": got.retryable}
    finally:
        await one.close()

async def main():
    print(json.dumps(await asyncio.gather(*(asked(sys.argv[1], url) for url in sys.argv[2:]))))

asyncio.run(main())
"""


def ask(backend: str, trusted: Path, *urls: str) -> list[dict[str, Any]]:
    """What becomes of a probe and a prompt at each URL, where only one authority is trusted."""
    environ = {
        **os.environ,
        "SSL_CERT_FILE": str(trusted),
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(trusted),
        "PROCTOR_API_KEY": "sk-a-secret-key",
    }
    ended = subprocess.run(
        [sys.executable, "-c", ASK, backend, *urls], env=environ, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.fixture
def certificates(tmp_path: Path) -> dict[str, tuple[Path, Path]]:
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs", "another authority")
    return {
        "good": ours.issue("good"),
        "of another name": ours.issue("other", names=("models.example",)),
        "that has ended": ours.issue("ended", expired=True),
        "of an unknown authority": theirs.issue("unknown"),
    }


class Recorded:
    def __init__(self) -> None:
        self.requests: list[bytes] = []

    def __call__(self, request: bytes) -> list[bytes]:
        self.requests.append(request)
        return [response(b'{"response": "B"}')]


def test_https_with_a_certificate_that_does_not_hold_is_not_spoken_to(
    tmp_path: Path, certificates: dict[str, tuple[Path, Path]]
) -> None:
    servers = {name: Recorded() for name in certificates}
    with ExitStack() as stack:
        urls = [stack.enter_context(raw_http(servers[name], tls=pair)) for name, pair in certificates.items()]
        found = dict(zip(certificates, ask("infer", tmp_path / "ours" / "authority.pem", *urls), strict=True))
    good = found.pop("good")
    assert (good["ok"], good["text"]) == (True, "B")
    assert any(b"sk-a-secret-key" in request for request in servers["good"].requests)
    for name, got in found.items():
        assert not got["ok"], name
        assert "CERTIFICATE_VERIFY_FAILED" in got["detail"], name
        assert got["error"] == got["detail"]
        assert servers[name].requests == [], "neither the prompt nor the key was sent"
    assert "Hostname mismatch" in found["of another name"]["error"]
    assert "expired" in found["that has ended"]["error"]


@contextmanager
def triton(pair: tuple[Path, Path], asked: list[str]) -> Iterator[str]:
    class Servicer(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]
        def ServerMetadata(self, request: Any, context: Any) -> Any:
            asked.append("metadata")
            return service_pb2.ServerMetadataResponse(name="triton", version="2")

        def ModelReady(self, request: Any, context: Any) -> Any:
            return service_pb2.ModelReadyResponse(ready=True)

        def ModelConfig(self, request: Any, context: Any) -> Any:
            asked.append("configuration")
            return service_pb2.ModelConfigResponse()

        def ModelInfer(self, request: Any, context: Any) -> Any:
            answer = service_pb2.ModelInferResponse()
            answer.outputs.add(name="text_output", datatype="BYTES", shape=[1])
            answer.raw_output_contents.append((1).to_bytes(4, "little") + b"B")
            return answer

    server = grpc.server(futures.ThreadPoolExecutor(4))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Servicer(), server)
    credentials = grpc.ssl_server_credentials([(pair[1].read_bytes(), pair[0].read_bytes())])
    port = server.add_secure_port("localhost:0", credentials)
    server.start()
    try:
        yield f"grpcs://localhost:{port}"
    finally:
        server.stop(None)


def test_grpcs_with_a_certificate_that_does_not_hold_is_not_spoken_to(
    tmp_path: Path, certificates: dict[str, tuple[Path, Path]]
) -> None:
    asked: dict[str, list[str]] = {name: [] for name in certificates}
    with ExitStack() as stack:
        urls = [stack.enter_context(triton(pair, asked[name])) for name, pair in certificates.items()]
        found = dict(zip(certificates, ask("triton", tmp_path / "ours" / "authority.pem", *urls), strict=True))
    good = found.pop("good")
    assert (good["ok"], good["text"]) == (True, "B")
    for name, got in found.items():
        assert not got["ok"], name
        assert not got["text"]
        assert asked[name] == [], "it was asked nothing"
        assert "is unavailable: " in got["error"] or "did not answer in time" in got["error"], got["error"]
    assert "CERTIFICATE_VERIFY_FAILED" in found["that has ended"]["detail"]
