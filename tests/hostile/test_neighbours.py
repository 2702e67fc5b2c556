"""Another user of the same machine, who reaches loopback as well as anybody: servers that are started by hand.

What a whole local stack listens on is in `tests/end_to_end/test_stack_from_outside.py`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from proctor.domain.errors import BadInputError, StackError
from proctor.domain.suite_problems import parse_suite
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.localstack.basic_auth import BasicAuth, basic_credentials
from proctor.localstack.socket_folder import socket_folder
from proctor.runtime.grpc.own_servers import own_token, token_of_own_server
from tests.integration.audit_support import AuditBench, audit_bench, gateway_process, refused, stub
from tests.perturbation_server import serving
from tests.suites.examples import with_changes
from tests.support import free_port, run_proctor, valkey_server
from tests.token_channel import own_token_of

UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[AuditBench]:
    folder = tmp_path / "valkey"
    folder.mkdir()
    with valkey_server(folder) as url, audit_bench(tmp_path / "home", url) as made:
        yield made


def test_a_gateway_on_loopback_lets_in_who_can_read_its_home_and_nobody_else(bench: AuditBench) -> None:
    stores = {"PROCTOR_LEDGER_URL": bench.settings.ledger_url, "PROCTOR_BROKER_URL": bench.settings.broker_url}
    with gateway_process(bench.home, **stores) as (process, address):
        said = bench.home / "run" / f"gateway-{address.rpartition(':')[2]}.json"
        assert said.stat().st_mode & 0o077 == 0
        token = own_token_of(bench.home, "gateway", address)
        assert token is not None
        assert token not in Path(f"/proc/{process.pid}/cmdline").read_text()
        for shown in (None, "", "x", secrets.token_urlsafe(32)):
            with stub(address, shown) as service, refused(UNAUTHENTICATED, "token"):
                service.List(pb.ListRequest(), timeout=20)
            with stub(address, shown) as service, refused(UNAUTHENTICATED, "token"):
                service.Submit(pb.SubmitRequest(suite="{}"), timeout=20)
        with stub(address, token) as service:
            service.List(pb.ListRequest(), timeout=20)
        mine = run_proctor("audit", "list", "--server", f"grpc://{address}", home=bench.home)
        assert mine.returncode == 0, mine.stderr
        theirs = run_proctor("audit", "list", "--server", f"grpc://{address}", home=bench.home / "another")
        assert (theirs.returncode, "PROCTOR_GATEWAY_TOKEN" in theirs.stderr) == (2, True), theirs.stderr
    assert not said.exists()


def test_a_perturbation_server_on_loopback_lets_in_who_can_read_its_home_and_nobody_else(tmp_path: Path) -> None:
    with serving(tmp_path / "home", PROCTOR_ENCODER=str(tmp_path / "nowhere")) as running:
        with grpc.insecure_channel(running.address) as channel, refused(UNAUTHENTICATED, "token"):
            asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
            list(reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(asked, timeout=20))
        with running.channel() as channel:
            asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
            assert list(reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(asked, timeout=20))


@pytest.mark.parametrize(
    ("listens_at", "asked", "found"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "localhost", True),
        ("127.0.0.5", "127.0.0.5", True),
        ("[::1]", "::1", True),
        ("127.0.0.1", "127.0.0.5", False),
        ("127.0.0.1", "::1", False),
        ("localhost", "audits.example", False),
    ],
)
def test_a_token_is_not_shown_to_a_neighbour_who_has_the_port_at_another_address_of_the_machine(
    tmp_path: Path, listens_at: str, asked: str, found: bool
) -> None:
    with own_token(tmp_path, "gateway", listens_at) as (token, listens):
        listens(50061)
        assert token_of_own_server(tmp_path, "gateway", asked, 50061) == (token if found else None)


def test_a_token_is_not_shown_to_whoever_has_the_port_of_a_server_that_is_gone(tmp_path: Path) -> None:
    with own_token(tmp_path, "gateway", "127.0.0.1") as (token, listens):
        listens(50061)
        file = tmp_path / "run" / "gateway-50061.json"
        said = json.loads(file.read_bytes())
        assert token_of_own_server(tmp_path, "gateway", "127.0.0.1", 50061) == token
        assert token_of_own_server(tmp_path, "gateway", "audits.example", 50061) is None
        # As it stays behind when the server is killed, and then another process has its number.
        file.write_text(json.dumps({**said, "started_at_ticks": said["started_at_ticks"] - 1}))
        assert token_of_own_server(tmp_path, "gateway", "127.0.0.1", 50061) is None
        for damaged in (b"", b"[]", b"{", b'{"token": 1}', b"[" * 100_000, json.dumps({**said, "pid": "1"}).encode()):
            file.write_bytes(damaged)
            assert token_of_own_server(tmp_path, "gateway", "127.0.0.1", 50061) is None
    assert token_of_own_server(tmp_path, "gateway", "127.0.0.1", 50061) is None


SERVES_METRICS = """
import sys
from pathlib import Path
from proctor.runtime.metrics.server import Address, serving_metrics
from proctor.runtime.settings import Settings
with serving_metrics("scorer", Address("127.0.0.1", int(sys.argv[1])), Settings(home=Path(sys.argv[2])), "secret"):
    print("served", flush=True)
    sys.stdin.read()
"""


def status_of(url: str, authorization: str | None = None) -> int:
    request = urllib.request.Request(url, headers={"Authorization": authorization} if authorization else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_metrics_with_a_token_are_for_who_shows_it(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-c", SERVES_METRICS, str(port), str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "served\n"
        for path in ("", "/metrics", "/favicon.ico", "//", "/metrics?name[]=x"):
            url = f"http://127.0.0.1:{port}{path}"
            assert status_of(url) == 401
            assert status_of(url, "Bearer wrong") == status_of(url, "secret") == status_of(url, "Basic secret") == 401
        assert status_of(f"http://127.0.0.1:{port}/metrics", "Bearer secret") == 200


async def _answer(application: BasicAuth, scope: dict[str, Any]) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        raise AssertionError("whoever is refused is not read")

    async def send(message: Any) -> None:
        sent.append(dict(message))

    await application(scope, receive, send)
    return sent


@pytest.mark.parametrize("kind", ["http", "websocket", "something-new"])
@pytest.mark.parametrize(
    "shown",
    [
        [],
        [b""],
        [b"Basic"],
        [b"Basic " + base64.b64encode(b"proctor:")],
        [b"Basic " + base64.b64encode(b"proctor:secre")],
        [b"Bearer secret"],
        [basic_credentials("proctor", "secret").encode(), b"Basic eDp5"],
        [b"Basic \xff\xfe"],
    ],
)
def test_nothing_of_an_application_is_reached_without_its_password(kind: str, shown: list[bytes]) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("reached")

    guarded = BasicAuth(application, "proctor", "secret", realm="test")
    scope = {"type": kind, "path": "/health", "headers": [(b"authorization", value) for value in shown]}
    first = asyncio.run(_answer(guarded, scope))[0]
    refusals = ({"type": "http.response.start", "status": 401}, {"type": "websocket.close", "code": 1008})
    assert {name: first.get(name) for name in ("type", "status" if "status" in first else "code")} in refusals


def test_who_knows_the_password_is_let_through() -> None:
    reached: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["type"])

    guarded = BasicAuth(application, "proctor", "secret", realm="test")
    header = (b"authorization", basic_credentials("proctor", "secret").encode())
    asyncio.run(_answer(guarded, {"type": "http", "path": "/", "headers": [header]}))
    asyncio.run(_answer(guarded, {"type": "lifespan"}))
    assert reached == ["http", "lifespan"]


@pytest.mark.parametrize("url", ["unix:///run/docker.sock", "UNIX:///tmp/g", "unix:/tmp/g", "unix://tmp/g", "unix:///"])
def test_a_suite_names_no_socket_of_the_machine(url: str) -> None:
    suite = with_changes({"model_config.endpoint": url})
    with pytest.raises(BadInputError, match="endpoint"):
        parse_suite(json.dumps(suite))


def test_a_folder_for_sockets_is_its_owners_alone_however_long_and_odd_its_home_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As short as a folder for temporary files is; that of a test may be too long for a socket in it.
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/tmp")
    for home in (Path("/tmp") / f"proctor-{secrets.token_hex(4)}", tmp_path / ("x" * 120), tmp_path / 'a "home"'):
        folder = socket_folder(home, "triton")
        assert folder.stat().st_mode & 0o777 == 0o700
        assert len(str(folder / "metrics")) <= 107
        assert socket_folder(home, "triton") == folder
        folder.chmod(0o755)
        assert socket_folder(home, "triton").stat().st_mode & 0o777 == 0o700
        with suppress(OSError):
            folder.rmdir()
            (home / "run").rmdir()
            home.rmdir()


@pytest.mark.skipif(os.getuid() != 0, reason="a folder of another user needs root")
def test_a_folder_for_sockets_that_somebody_else_took_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    taken = socket_folder(tmp_path / ("x" * 120), "triton")
    os.chown(taken, 65534, 65534)
    with pytest.raises(StackError, match="belongs to somebody else"):
        socket_folder(tmp_path / ("x" * 120), "triton")
    taken.rmdir()
    taken.symlink_to(tmp_path)
    with pytest.raises(StackError, match="belongs to somebody else"):
        socket_folder(tmp_path / ("x" * 120), "triton")
