"""The gateway as a service of the local stack, and the local MLflow's webhook: real servers, without workers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from proctor.cli.dashboard import own_token, send_webhooks, triggers_of
from proctor.cli.demo import demo_suite
from proctor.domain.errors import StackError
from proctor.domain.problems import SuiteProblems
from proctor.localstack import services as local_services
from proctor.localstack.stack import LocalStack, StackSpec
from proctor.localstack.webhook_secrets import encryption_key, webhook_secret, webhook_secret_file
from proctor.registry.mlflow_client import MlflowClient
from proctor.runtime.records.requests import AuditRequest, RequestState
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from tests.support import loose_paths, run_proctor, wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the local stack needs Linux"),
    pytest.mark.timeout(120),
]

WEIGHTS = "sha256:" + "ab" * 32


def trigger_file(folder: Path, bundle: Path) -> Path:
    suite = json.loads(demo_suite("reference-clean", bundle))
    # No Triton is there; nor is anybody who would ask.
    suite["model_config"]["endpoint"] = "http://127.0.0.1:9/v1"
    (folder / "facts.json").write_text(json.dumps(suite))
    rule = {"name": "facts", "models": ["acme~*"], "suites": ["facts.json"]}
    path = folder / "triggers.json"
    path.write_text(json.dumps({"since": datetime.now(UTC).isoformat(), "rules": [rule]}))
    return path


@contextmanager
def with_gateway(home: Path) -> Iterator[LocalStack]:
    """The stack of a home with its trigger file, as `proctor up` starts it, but for the workers."""
    spec = StackSpec(triton=False, workers=(), gateway=True, triggers=triggers_of(home, None))
    with LocalStack(home, spec) as stack:
        stack.start()
        send_webhooks(stack)
        yield stack


def register(stack: LocalStack, name: str) -> str:
    with MlflowClient(stack.settings.registry_uri or "") as mlflow:
        mlflow.create_model(name, tags={}, description="")
        tags = {"proctor.model_digest": WEIGHTS}
        return mlflow.create_version(name, source="s3://models/m", tags=tags, description="").version


def requests_of(stack: LocalStack) -> dict[tuple[str, str], AuditRequest]:
    with closing(Records(stack.settings.records_url)) as records:
        return {(one.model, one.version): one for one in records.requests.listed()}


def begun(stack: LocalStack, version: tuple[str, str]) -> AuditRequest:
    """The request of a version, once its audit has begun."""
    wait_until(
        lambda: version in (found := requests_of(stack)) and found[version].audit_id is not None,
        timeout_s=40,
        what=f"the audit of {version}",
    )
    return requests_of(stack)[version]


def test_who_registers_a_version_in_the_local_mlflow_starts_its_audit_after_a_restart_too(
    tmp_path: Path, bundle: Path
) -> None:
    trigger_file(tmp_path, bundle)
    secrets, addresses = set(), set()
    for number in ("1", "2"):
        with with_gateway(tmp_path) as stack:
            assert register(stack, "acme~m") == number
            request = begun(stack, ("acme~m", number))
            assert (request.origin, request.state) == ("webhook", RequestState.STARTED)
            with MlflowClient(stack.settings.registry_uri or "") as mlflow:
                assert [one.name for one in mlflow.webhooks()] == ["proctor-gateway"]
            secrets |= {webhook_secret(tmp_path), encryption_key(tmp_path)}
            held_by_its_user_alone(stack, [*secrets, own_token(stack)])
            addresses.add(stack.dashboard())
            assert stack.settings.dashboard_url in addresses
    # What was written down of it leads there still.
    assert len(addresses) == 1
    # Drawn once: MLflow's database still has them.
    assert len(secrets) == 2


def held_by_its_user_alone(stack: LocalStack, secrets: list[str]) -> None:
    address = stack.dashboard()
    assert address is not None
    with httpx.Client(base_url=address, trust_env=False) as nobody:
        assert nobody.get("/readyz").status_code == 200
        assert nobody.get("/v1/audits").status_code == 401
        shown = {"Authorization": f"Bearer {secrets[-1]}"}
        assert nobody.get("/v1/audits", headers=shown).json()["audits"]
    login = run_proctor("gateway", "login", home=stack.home)
    assert (login.returncode, login.stdout.strip()) == (0, secrets[-1])
    assert address in login.stderr
    told = [path.read_bytes() for path in (stack.home / "logs").iterdir()]
    told += [Path(f"/proc/{row.pid}/cmdline").read_bytes() for row in stack.status()]
    assert not [secret for secret in secrets if any(secret.encode() in text for text in told)]
    assert loose_paths(stack.home) == []


def test_the_stacks_gateway_is_its_own_whatever_the_operator_says_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {
        "PROCTOR_GATEWAY_HOST": "0.0.0.0",
        "PROCTOR_GATEWAY_TOKEN": "a-token-of-other-machines-callers",
        "PROCTOR_GATEWAY_TLS_CERT": "/no/such/file",
        "PROCTOR_GATEWAY_TRIGGERS": "/no/such/file",
        "PROCTOR_GATEWAY_MLFLOW_SECRETS": "of-another-registry-0123",
    }
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    spec = StackSpec(mlflow=False, triton=False, workers=(), gateway=True)
    with LocalStack(tmp_path / "home", spec) as stack:
        stack.start()
        assert httpx.get(f"{stack.dashboard()}/healthz", trust_env=False).status_code == 200
        (pid,) = (row.pid for row in stack.status() if row.name == "gateway")
        environment = dict(
            line.split("=", 1) for line in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in line
        )
        assert {name: environment[name] for name in said} == dict.fromkeys(said, "")
        assert own_token(stack)
    assert {name: os.environ[name] for name in said} == said


def test_a_trigger_file_that_cannot_be_used_starts_nothing(tmp_path: Path) -> None:
    assert triggers_of(tmp_path, None) is None
    (tmp_path / "triggers.json").write_text('{"rules": []}')
    with pytest.raises(SuiteProblems):
        triggers_of(tmp_path, None)
    run = run_proctor("up", "--no-triton", "--triggers", tmp_path / "triggers.json", home=tmp_path / "home")
    assert run.returncode == 2, run.stderr
    assert "since" in run.stderr
    assert "Traceback" not in run.stderr
    assert LocalStack(tmp_path / "home").status() == []


def test_without_its_packages_a_stack_says_that_it_has_no_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_services, "_GATEWAY_PACKAGES", ("no_such_package_of_ours",))
    spec = StackSpec(mlflow=False, triton=False, workers=(), gateway=True)
    local = local_services.local_services(Settings(home=tmp_path), spec)
    assert [one.name for one in local.services] == ["valkey"]
    assert "no_such_package_of_ours is not installed" in local.notes[0]


def test_a_secret_file_that_was_cut_off_is_named_and_never_used(tmp_path: Path) -> None:
    path = webhook_secret_file(tmp_path)
    path.parent.mkdir(mode=0o700)
    path.write_text("\n")
    with pytest.raises(StackError, match="holds no secret"):
        webhook_secret(tmp_path)
