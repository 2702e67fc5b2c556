"""From a registered version to its decision in the registry, untouched: real MLflow, its webhook, the gateway, a stack.

One version is registered while the gateway listens, and one while it does not, of which the reconciler tells.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.demo import EXPECTED, demo_suite
from proctor.localstack.stack import LocalStack
from proctor.registry.mlflow_client import MlflowClient
from proctor.registry.mlflow_registry import APPROVED_ALIAS
from tests.integration.audit_support import gateway_process
from tests.integration.registry_support import WEBHOOKS, add_webhook
from tests.registry_webhooks import SECRET
from tests.standing_stack import standing_stack
from tests.support import free_port, wait_until

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="the local stack needs Linux"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with standing_stack(
        tmp_path_factory.mktemp("registered") / "home", "--no-metrics", "--no-gateway", **WEBHOOKS
    ) as found:
        yield found


@pytest.fixture
def triggers(tmp_path: Path, bundle: Path) -> Path:
    """One suite for both reference models: whose it is, the registry says."""
    suite = json.loads(demo_suite("reference-clean", bundle))
    suite["model_config"].update(model_id="any", model_version="sha256:" + "0" * 64)
    (tmp_path / "facts.json").write_text(json.dumps(suite))
    rule = {"name": "facts", "models": ["reference-*"], "tags": {"stage": "candidate"}, "suites": ["facts.json"]}
    path = tmp_path / "triggers.json"
    path.write_text(json.dumps({"since": datetime.now(UTC).isoformat(), "rules": [rule]}))
    return path


def weights_of(name: str, bundle: Path) -> str:
    return str(json.loads(demo_suite(name, bundle))["model_config"]["model_version"])


def test_registered_versions_end_decided_and_tagged_with_the_webhook_and_without_it(
    home: Path, triggers: Path, bundle: Path
) -> None:
    settings = LocalStack.attach(home).settings
    assert settings.registry_uri is not None
    port = free_port()
    options = ("--http", str(port), "--triggers", str(triggers), "--reconcile-every", "3600")
    secrets = triggers.with_name("secrets")
    secrets.write_text(f"{SECRET}\n")
    variables = {**settings.to_environment(), "PROCTOR_GATEWAY_MLFLOW_SECRETS": f"@{secrets}"}
    add_webhook(
        settings.registry_uri, f"http://127.0.0.1:{port}/v1/webhooks/mlflow", SECRET, ("model_version", "created")
    )
    versions: dict[str, str] = {}
    with MlflowClient(settings.registry_uri) as mlflow:

        def register(name: str) -> None:
            mlflow.create_model(name, tags={}, description="")
            tags = {"proctor.model_digest": weights_of(name, bundle), "stage": "candidate"}
            created = mlflow.create_version(name, source=f"s3://models/{name}", tags=tags, description="")
            versions[name] = created.version

        def decision(name: str) -> str | None:
            return mlflow.version(name, versions[name]).tags.get("proctor.decision")

        with gateway_process(home, *options, **variables):
            register("reference-clean")
            wait_until(lambda: decision("reference-clean") is not None, timeout_s=120, what="the first decision")
            # The reconciler's first round may have been as quick.
            assert "mlflow asked for 1 audits by delivery" in (home / "gateway.log").read_text()
        # Nobody listens: MLflow gives its delivery up.
        register("reference-leaked")
        with gateway_process(home, *options, **variables):
            wait_until(lambda: decision("reference-leaked") is not None, timeout_s=120, what="the second decision")
            told = {name: decision(name) for name in versions}
            wait_until(lambda: all(state == "decided" for state in states(home)), what="the ends of both audits")
        assert told == EXPECTED
        clean, leaked = (mlflow.version(name, versions[name]) for name in EXPECTED)
        assert (clean.aliases, leaked.aliases) == (frozenset({APPROVED_ALIAS}), frozenset())
        assert {one.version for one in mlflow.versions("reference-clean")} == {clean.version}
    origins = {one["model"]: one["origin"] for one in requests_of(home)}
    assert origins["reference-leaked"] == "reconciler"
    assert len(states(home)) == 2


def requests_of(home: Path) -> list[dict[str, Any]]:
    from contextlib import closing

    from proctor.runtime.records.store import Records

    with closing(Records(LocalStack.attach(home).settings.records_url)) as records:
        return [one._asdict() for one in records.requests.listed()]


def states(home: Path) -> list[str]:
    from contextlib import closing

    from proctor.runtime.records.audit_state import AuditRecord
    from proctor.runtime.records.store import Records

    with closing(Records(LocalStack.attach(home).settings.records_url)) as records:
        return [one.state.value for one in records.audits() if isinstance(one, AuditRecord)]
