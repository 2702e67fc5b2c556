"""The local stack's own servers: a real Valkey and a real MLflow, and the commands around them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import redis

from proctor.domain.errors import StackError
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.localstack import services as local_services
from proctor.localstack.service import ServiceState
from proctor.localstack.stack import LocalStack, ServiceStatus, StackSpec
from proctor.runtime.settings import LOCAL_TRITON, Settings
from tests.support import ending, wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the local stack needs Linux"),
    pytest.mark.timeout(120),
]

ONLY_VALKEY = StackSpec(mlflow=False, triton=False, workers=())
SERVICES = Path(__file__).resolve().parents[2] / "services"


class Said(NamedTuple):
    """What a command of Proctor came to."""

    code: int
    output: str
    errors: str


@contextmanager
def begun(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command of Proctor that runs; it is ended at exit, pass or fail."""
    environment = {**os.environ, "PYTHONPATH": str(SERVICES)}
    command = [sys.executable, "-m", "proctor", *arguments]
    pipe = subprocess.PIPE
    with ending(subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)) as process:
        yield process


def proctor(*arguments: str, timeout_s: float = 30) -> Said:
    """A command of Proctor, to its end."""
    with begun(*arguments) as process:
        output, errors = process.communicate(timeout=timeout_s)
    return Said(process.returncode, output, errors)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The home of a stack that a command starts; the stack is ended, pass or fail."""
    folder = tmp_path / "home"
    yield folder
    if LocalStack(folder).status():
        ended = proctor("down", "--home", str(folder), timeout_s=60)
        assert ended.code == 0, ended.errors


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    with LocalStack(tmp_path_factory.mktemp("stack") / 'a "home"', StackSpec(triton=False, workers=())) as running:
        running.start()
        yield running


def test_valkey_keeps_what_it_accepted_and_evicts_nothing(stack: LocalStack) -> None:
    with redis.Redis.from_url(stack.settings.ledger_url, decode_responses=True) as ledger:
        settings = ledger.config_get("*")
        assert settings["appendonly"] == "yes"
        assert settings["appendfsync"] == "everysec"
        assert settings["maxmemory-policy"] == "noeviction"
        assert settings["bind"] == "127.0.0.1"
        assert Path(settings["dir"]) == stack.home / "valkey"


def test_valkey_refuses_who_does_not_know_the_password(stack: LocalStack) -> None:
    port = next(row.ports["redis"] for row in stack.status() if row.name == "valkey")
    with redis.Redis(port=port) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    arguments = next(Path(f"/proc/{row.pid}/cmdline").read_text() for row in stack.status() if row.name == "valkey")
    with redis.Redis.from_url(stack.settings.broker_url) as friend:
        password = friend.connection_pool.connection_kwargs["password"]
    assert password not in arguments
    assert (stack.home / "valkey" / "valkey.conf").stat().st_mode & 0o077 == 0


def test_mlflow_registers_a_model_version(stack: LocalStack) -> None:
    api = f"{stack.settings.registry_uri}/api/2.0/mlflow"
    with httpx.Client() as client:
        created = client.post(f"{api}/registered-models/create", json={"name": "a-model"})
        assert created.status_code == 200, created.text
        body = {"name": "a-model", "source": "s3://a-bucket/a-model"}
        version = client.post(f"{api}/model-versions/create", json=body)
        assert version.json()["model_version"]["version"] == "1"


def test_mlflow_answers_no_page_that_reached_it_by_another_name(stack: LocalStack) -> None:
    url = f"{stack.settings.registry_uri}/api/2.0/mlflow/registered-models/search"
    with httpx.Client() as client:
        assert client.get(url).status_code == 200
        assert client.get(url, headers={"Host": "evil.example"}).status_code == 403


def test_status_names_what_runs_with_its_version(stack: LocalStack) -> None:
    stack.check()
    rows = {row.name: row for row in LocalStack.attach(stack.home).status()}
    assert set(rows) == {"valkey", "mlflow"}
    assert rows["valkey"].version.startswith("Valkey ")
    assert rows["mlflow"].version.startswith("MLflow ")
    for row in rows.values():
        assert row.state is ServiceState.READY
        assert row.pid is not None
        assert row.ready_after_s is not None


def test_the_workers_give_way_to_the_servers_that_share_their_processors(tmp_path: Path) -> None:
    with LocalStack(tmp_path / "home", replace(ONLY_VALKEY, workers=("scorer", "inference"))) as stack:
        stack.start()
        niceness = {row.name: os.getpriority(os.PRIO_PROCESS, row.pid or 0) for row in stack.status()}
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert niceness.pop("valkey") == own
    assert niceness == dict.fromkeys(("worker-scorer", "worker-inference"), min(own + 10, 19))


def test_another_process_finds_the_same_settings(stack: LocalStack) -> None:
    assert LocalStack.attach(stack.home).settings == stack.settings


def test_a_second_stack_in_the_same_home_is_refused(stack: LocalStack) -> None:
    with pytest.raises(StackError, match="already"):
        LocalStack(stack.home).start()
    stack.check()


def test_settings_of_a_stack_keep_foreign_endpoints(tmp_path: Path) -> None:
    mine = OperatorEndpoint(url="https://models.example")
    base = Settings(home=tmp_path, endpoints={"mine": mine, LOCAL_TRITON: OperatorEndpoint(url="grpc://old")})
    local = local_services.local_services(base, ONLY_VALKEY)
    assert local.settings.endpoints == {"mine": mine}


def test_where_triton_cannot_run_the_stack_says_so_and_goes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_TRITON_SERVER", str(tmp_path / "absent"))
    local = local_services.local_services(Settings(home=tmp_path), replace(ONLY_VALKEY, triton=True))
    assert [service.name for service in local.services] == ["valkey"]
    (note,) = local.notes
    assert note.startswith("no Triton server, models are served in process: ")
    assert str(tmp_path / "absent") in note


def test_a_stack_starts_again_on_what_it_kept(tmp_path: Path) -> None:
    for expected in (None, "kept"):
        with LocalStack(tmp_path / "home", ONLY_VALKEY) as stack:
            seen: list[ServiceStatus] = []
            settings = stack.start(seen.append)
            assert [row.state for row in seen] == ["starting", "ready"]
            with redis.Redis.from_url(settings.ledger_url, decode_responses=True) as ledger:
                assert ledger.get("key") == expected
                ledger.set("key", "kept")
        with pytest.raises(StackError, match="not running"):
            _ = stack.settings


def test_up_status_and_down(home: Path) -> None:
    up = proctor("up", "--home", str(home), "--no-triton", "--format", "json", timeout_s=100)
    assert up.code == 0, up.errors
    names = {row["name"] for row in json.loads(up.output)["services"]}
    assert {"valkey", "mlflow", "worker-router", "worker-registry"} <= names
    assert "gateway" in names
    address = json.loads(up.output)["dashboard"]
    assert httpx.get(f"{address}/readyz", trust_env=False).status_code == 200
    status = proctor("status", "--home", str(home))
    assert (status.code, status.errors) == (0, "")
    assert f"dashboard: {address}" in status.output
    assert "proctor gateway login" in status.output
    assert all(name in status.output for name in names)
    down = proctor("down", "--home", str(home), "--format", "json", timeout_s=60)
    assert down.code == 0, down.errors
    assert set(json.loads(down.output)["ended"]) == names
    after = proctor("status", "--home", str(home))
    assert "no stack runs" in after.output
    assert after.code == 1


def test_up_leaves_decisions_to_the_registry_that_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_REGISTRY_URI", "https://registry.example")
    with begun("up", "--home", str(home), "--no-triton") as up:
        wait_until(lambda: LocalStack(home).status() != [], timeout_s=30)
        running = LocalStack.attach(home)
        assert "worker-registry" in (names := {row.name for row in running.status()})
        assert "mlflow" not in names
        assert running.settings.registry_uri == "https://registry.example"
        up.send_signal(signal.SIGTERM)
        up.communicate(timeout=60)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_up_leaves_nothing(number: signal.Signals, code: int, home: Path) -> None:
    with begun("up", "--home", str(home), "--no-triton") as up:
        wait_until(lambda: [row.pid for row in LocalStack(home).status()[:1]] not in ([], [None]), timeout_s=30)
        pids = [row.pid for row in LocalStack(home).status() if row.pid]
        up.send_signal(number)
        _, errors = up.communicate(timeout=60)
    assert up.returncode == code
    assert "stopped" in errors
    assert "Traceback" not in errors
    assert LocalStack(home).status() == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
