"""`proctor baseline` against a real MLflow server: the version that an alias points at is audited, as the floor."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.main import main
from proctor.domain.messages import StartAudit
from proctor.registry.mlflow_client import MlflowClient
from proctor.registry.mlflow_registry import MlflowRegistry, registered_name
from proctor.router.audit import view
from tests.integration.audit_support import AuditBench, audit_bench
from tests.integration.registry_support import mlflow_server

#: The first test of the file also starts the MLflow server, which migrates an empty database.
pytestmark = pytest.mark.timeout(150)

MODEL, WEIGHTS = "org/in-production", "sha256:" + "c" * 64


@pytest.fixture(scope="module")
def mlflow_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mlflow_server(tmp_path_factory.mktemp("mlflow")) as uri:
        with MlflowRegistry(uri) as registry:
            version = registry.ensure_version(MODEL, WEIGHTS)
        with closing(MlflowClient(uri)) as client:
            client.set_alias(registered_name(MODEL), "champion", version)
            client.create_model("untold", tags={}, description="")
            client.create_version("untold", source="s3://bucket/weights", tags={}, description="")
        yield uri


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        monkeypatch.setenv("PROCTOR_BROKER_URL", found.settings.broker_url)
        monkeypatch.setenv("PROCTOR_LEDGER_URL", found.settings.ledger_url)
        monkeypatch.setattr("proctor.gateway.audits.send", found.sent.append)
        yield found


@pytest.fixture
def baseline(bench: AuditBench, mlflow_uri: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Give the command; what it prints, on standard error where it fails."""

    def run(*arguments: str, code: int = 0) -> str:
        suite = str(bench.suite_file())
        capsys.readouterr()
        where = ("--suite", suite, "--registry", mlflow_uri, "--home", str(bench.home))
        assert main(["baseline", *arguments, *where]) == code
        said = capsys.readouterr()
        return said.err if code else said.out

    return run


@pytest.mark.parametrize("reference", [f"{MODEL}@champion", "org~in-production/1"])
def test_what_is_in_production_is_audited_as_the_floor(
    bench: AuditBench, baseline: Callable[..., str], reference: str
) -> None:
    told: dict[str, Any] = json.loads(baseline(reference, "--format", "json"))
    assert bench.sent == [StartAudit(audit_id=told["audit_id"])]
    model = view(bench.records, told["audit_id"]).suite.model
    assert (model.model_id, model.model_version, model.endpoint) == (MODEL, WEIGHTS, "http://127.0.0.1:9/v1")
    (floor,) = bench.records.baselines.newest(model_id=MODEL)
    assert floor._asdict() == told
    assert (floor.registered_name, floor.registered_version) == ("org~in-production", "1")
    assert floor.alias == ("champion" if "@" in reference else None)


def test_a_second_time_goes_on_with_the_same_audit(bench: AuditBench, baseline: Callable[..., str]) -> None:
    for _ in range(2):
        assert "has begun; decided, it is the model's floor" in baseline(f"{MODEL}@champion")
    assert len(bench.records.baselines.newest()) == 1


@pytest.mark.parametrize(
    ("reference", "code", "words"),
    [
        ("untold/1", 2, "does not say which weights it has: set its tag proctor.model_digest"),
        (f"{MODEL}@nobody", 1, "alias"),
        ("no-such-model/1", 1, "not found"),
    ],
)
def test_a_version_that_cannot_be_audited_is_refused_and_nothing_is_on_record(
    bench: AuditBench, baseline: Callable[..., str], reference: str, code: int, words: str
) -> None:
    assert words in baseline(reference, code=code)
    assert bench.records.audits() == []
    assert bench.records.baselines.newest() == []
