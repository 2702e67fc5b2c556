"""What another user of the machine finds of a local stack that is up, and what its own user is told when it fails."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from proctor.cli.demo import demo_suite
from proctor.localstack.service import ServiceState
from proctor.localstack.stack import LocalStack, ServiceStatus
from proctor.localstack.state import read_state
from proctor.runtime.processes import descendants
from tests.support import missing, wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the local stack needs Linux"),
    pytest.mark.timeout(180),
]

#: Of MLflow and of the metrics: pages, health, the registry, artifacts, what only newer clients ask.
PATHS = (
    "/", "/health", "/version", "/metrics", "/static-files/index.html", "/graphql", "/docs", "/openapi.json",
    "/api/2.0/mlflow/registered-models/search", "/ajax-api/2.0/mlflow/experiments/search?max_results=1",
    "/api/2.0/mlflow/model-versions/set-tag", "/api/2.0/mlflow-artifacts/artifacts/x",
    "/get-artifact?path=x&run_uuid=y", "/v1/traces", "/gateway/openai/v1/chat/completions",
    "//api/2.0/mlflow/registered-models/search", "/%61pi/2.0/mlflow/registered-models/search",
)  # fmt: skip
METHODS = ("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD")
#: What the gateway answers to whom it does not know: its pages send him to log in (`/` by way of `/audits`,
#: which is asked, too); None is no HTTP, but gRPC.
REFUSED_THERE = (None, "/login", "/audits", 401, 403, 404, 405)
_LISTENS = "0A"
_ACCEPTS_CONNECTIONS = 0x10000


class Listening(NamedTuple):
    """A socket of the stack that takes connections."""

    service: str
    address: str
    port: int
    path: str


def proctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "proctor", *arguments], capture_output=True, text=True)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    from proctor.localstack.triton_server import obstacle

    if (reason := obstacle()) is not None:
        missing(reason)
    with up(tmp_path_factory.mktemp("stack") / "home") as running:
        yield running


@pytest.fixture
def another_stack(tmp_path: Path) -> Iterator[LocalStack]:
    """For a test that ends it."""
    with up(tmp_path / "home") as running:
        yield running


@contextmanager
def up(home: Path) -> Iterator[LocalStack]:
    try:
        began = proctor("up", "--home", str(home))
        assert began.returncode == 0, began.stderr
        yield LocalStack.attach(home)
    finally:
        proctor("down", "--home", str(home))


def processes_of(stack: LocalStack) -> dict[int, str]:
    """Every process of the stack by the service it is of, the supervisor included."""
    state = read_state(stack.home)
    assert state is not None
    supervisor = state["supervisor"]["pid"]
    found = dict.fromkeys(descendants(supervisor) | {supervisor}, "supervisor")
    for row in stack.status():
        assert row.pid is not None
        found |= dict.fromkeys(descendants(row.pid) | {row.pid}, row.name)
    return found


def inodes_of(pid: int) -> set[int]:
    links = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(entry))
        except OSError:
            continue
    return {int(link[8:-1]) for link in links if link.startswith("socket:[")}


def listening(stack: LocalStack) -> list[Listening]:
    """What the kernel says that the stack listens on: nothing that Proctor itself says is asked."""
    owners = {inode: service for pid, service in processes_of(stack).items() for inode in inodes_of(pid)}
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[9]) in owners and (fields[3] == _LISTENS or table.startswith("udp")):
                address, _, port = fields[1].rpartition(":")
                found.append(Listening(owners[int(fields[9])], _address(address), int(port, 16), ""))
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[6]) in owners and int(fields[3], 16) & _ACCEPTS_CONNECTIONS:
            found.append(Listening(owners[int(fields[6])], "", 0, fields[7] if len(fields) > 7 else ""))
    return found


def _address(digits: str) -> str:
    words = [struct.pack("<I", int(digits[n : n + 8], 16)) for n in range(0, len(digits), 8)]
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, b"".join(words))


def status_of(port: int, path: str, method: str, **headers: str) -> int:
    body = b"{}" if method in ("POST", "PUT", "PATCH") else None
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def at_the_gateway(port: int, path: str, method: str) -> int | str | None:
    """The status, or the page that is gone to instead; None where it speaks no HTTP/1.1."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, b"{}" if method in ("POST", "PUT") else None)
        answer = connection.getresponse()
    except (http.client.HTTPException, ConnectionError):
        return None
    finally:
        connection.close()
    to = answer.headers.get("Location", "")
    return to.partition("?")[0] if to else answer.status


def talk(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(data)
        return connection.recv(4096)


def secrets_of(stack: LocalStack) -> dict[str, str]:
    """What may be known to this user alone."""
    state = read_state(stack.home)
    assert state is not None
    broker, registry = (urlsplit(state["settings"][f"PROCTOR_{name}"]) for name in ("BROKER_URL", "REGISTRY_URI"))
    token = (stack.home / "run" / "metrics-token").read_text()
    found = {"broker": broker.password, "registry": registry.password, "metrics": token, "stack": state["token"]}
    assert all(found.values())
    return {name: str(value) for name, value in found.items()}


def test_who_does_not_know_its_secrets_is_refused_on_everything_that_a_stack_listens_on(stack: LocalStack) -> None:
    sockets = listening(stack)
    assert {one.service for one in sockets} == {row.name for row in stack.status()}, "a service listens on nothing"
    for one in sockets:
        if one.path or not one.port:
            # An abstract socket would have no permissions.
            assert one.path.startswith("/"), one
            assert Path(one.path).parent.stat().st_mode & 0o777 == 0o700, one
            assert Path(one.path).parent.stat().st_uid == os.getuid(), one
            continue
        assert one.address in ("127.0.0.1", "::ffff:127.0.0.1", "::1"), f"{one} can be reached from other machines"
        if one.service == "valkey":
            for command in (b"PING\r\n", b"INFO\r\n", b"LRANGE router 0 -1\r\n", b"CONFIG GET *\r\n", b"FLUSHALL\r\n"):
                assert talk(one.port, command).startswith(b"-NOAUTH"), one
            continue
        if one.service == "gateway":
            for path in (*PATHS, "/v1/audits", "/audits", "/review", "/record"):
                for method in METHODS:
                    found = at_the_gateway(one.port, path, method)
                    assert found in REFUSED_THERE, (one, method, path, found)
            continue
        for path in PATHS:
            for method in METHODS:
                assert status_of(one.port, path, method) == 401, (one, method, path)
        assert status_of(one.port, "/", "GET", Authorization="Bearer x") == 401, one
        assert status_of(one.port, "/", "GET", Authorization="Basic cHJvY3Rvcjo=") == 401, one


def test_who_knows_the_secrets_is_served(stack: LocalStack) -> None:
    import httpx

    assert stack.settings.registry_uri is not None
    found = httpx.get(f"{stack.settings.registry_uri}/api/2.0/mlflow/registered-models/search")
    assert found.status_code == 200
    assert httpx.get(f"{stack.settings.registry_uri}/").status_code == 200
    header = {"Authorization": f"Bearer {secrets_of(stack)['metrics']}"}
    ports = [row.ports["metrics"] for row in stack.status() if "metrics" in row.ports]
    assert [httpx.get(f"http://127.0.0.1:{port}/metrics", headers=header).status_code for port in ports] == [200] * 5


def test_a_head_without_end_is_cut_off_before_anybody_is_asked_who_he_is(stack: LocalStack) -> None:
    ports = {row.ports[kind] for row in stack.status() for kind in ("http", "metrics") if kind in row.ports}
    assert len(ports) == 7
    for port in ports:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            sent = 0
            # Whoever has closed the connection resets it.
            with contextlib.suppress(ConnectionError):
                while sent < 16 << 20:
                    sent += connection.send(b"X: " + b"a" * 60_000 + b"\r\n")
            assert sent < 16 << 20, f"port {port} has taken {sent:,} bytes"


@pytest.mark.skipif(os.getuid() != 0, reason="being another user needs root")
def test_another_user_reaches_no_socket_and_reads_no_secret(stack: LocalStack) -> None:
    sockets = [one.path for one in listening(stack) if one.path]
    files = [stack.home / "stack.json", stack.home / "run" / "metrics-token", stack.home / "valkey" / "valkey.conf"]
    program = """
import json, os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
got = []
for path in json.loads(sys.argv[1]):
    try:
        socket.socket(socket.AF_UNIX).connect(path); got.append(path)
    except PermissionError:
        pass
for path in json.loads(sys.argv[2]):
    try:
        open(path); got.append(path)
    except PermissionError:
        pass
print(json.dumps(got))
"""
    named = [*map(str, files), *(f"/proc/{pid}/environ" for pid in processes_of(stack))]
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(sockets), json.dumps(named)],
        capture_output=True, text=True, check=True, cwd="/",
    )  # fmt: skip
    assert sockets
    assert json.loads(done.stdout) == []


def test_no_secret_stands_on_a_command_line_or_in_a_file_that_others_may_read(stack: LocalStack) -> None:
    found = secrets_of(stack)
    for pid in processes_of(stack):
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert [name for name, secret in found.items() if secret.encode() in arguments] == []
    for path in stack.home.rglob("*"):
        if path.is_file() and path.stat().st_mode & 0o077:
            text = path.read_bytes()
            assert [name for name, secret in found.items() if secret.encode() in text] == [], path


def state_of(stack: LocalStack, name: str) -> ServiceStatus:
    return next(row for row in stack.status() if row.name == name)


@pytest.mark.faults
def test_submit_and_status_say_which_service_is_away_and_the_audit_is_decided_when_it_is_back(
    stack: LocalStack, bundle: Path, tmp_path: Path
) -> None:
    home = str(stack.home)
    suite: dict[str, Any] = json.loads(demo_suite("reference-leaked", bundle))
    suite["dataset_config"]["sample_size"] = 60
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    old = state_of(stack, "worker-router")
    assert old.pid is not None
    state = read_state(stack.home)
    assert state is not None
    os.kill(old.pid, signal.SIGKILL)
    wait_until(lambda: state_of(stack, "worker-router").state is not ServiceState.READY)
    # What it has written stays as it is, however long the commands take.
    os.kill(state["supervisor"]["pid"], signal.SIGSTOP)
    try:
        shown = proctor("status", "--home", home)
        submitted = proctor("audit", "submit", str(tmp_path / "suite.json"), "--home", home, "--format", "json")
    finally:
        os.kill(state["supervisor"]["pid"], signal.SIGCONT)
    assert shown.returncode == 1
    assert "was killed by SIGKILL" in shown.stdout
    assert submitted.returncode == 0, submitted.stderr
    assert "worker-router is away (" in submitted.stderr
    assert "was killed by SIGKILL" in submitted.stderr
    audit = json.loads(submitted.stdout)["audit"]["audit_id"]
    watched = proctor("audit", "watch", audit, "--home", home)
    assert watched.returncode in (0, 3, 4), watched.stderr
    wait_until(lambda: state_of(stack, "worker-router").state is ServiceState.READY)
    assert state_of(stack, "worker-router").ports == old.ports
    assert proctor("status", "--home", home).returncode == 0


@pytest.mark.faults
def test_a_stack_that_is_up_says_when_its_supervisor_was_killed(another_stack: LocalStack) -> None:
    state = read_state(another_stack.home)
    assert state is not None
    began_s = time.monotonic()
    os.kill(state["supervisor"]["pid"], signal.SIGKILL)
    wait_until(lambda: proctor("status", "--home", str(another_stack.home)).returncode == 1)
    assert time.monotonic() - began_s < 20
