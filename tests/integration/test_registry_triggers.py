"""A real MLflow server with a real webhook: what is registered there is on record as an audit, or found later."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from proctor.domain.messages import StartAudit
from proctor.domain.triggers import Triggers
from proctor.formats.triggers import load_triggers
from proctor.gateway.audits import LocalDesk
from proctor.registry import mlflow_client
from proctor.registry.mlflow_client import MlflowClient
from proctor.registry.mlflow_registry import MlflowRegistry
from proctor.registry.reconciler import reconcile
from proctor.registry.version_source import MlflowVersions
from proctor.runtime.records.requests import RequestState
from tests.integration.audit_support import AuditBench, audit_bench
from tests.integration.http_gateway import serving_both
from tests.integration.registry_support import WEBHOOKS, add_webhook, mlflow_server
from tests.registry_webhooks import SECRET, trigger_file
from tests.support import wait_until

pytestmark = pytest.mark.timeout(150)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mlflow_server(tmp_path_factory.mktemp("mlflow"), **WEBHOOKS) as found:
        yield found


@pytest.fixture
def mlflow(uri: str) -> Iterator[MlflowClient]:
    with MlflowClient(uri) as client:
        yield client


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        found.suite_file()
        yield found


@pytest.fixture
def model(request: pytest.FixtureRequest) -> str:
    """A model of this test's own: the server is all tests' of the module."""
    return f"acme~{zlib.crc32(request.node.nodeid.encode())}"


def digest(number: int) -> str:
    return "sha256:" + f"{number:064x}"


def register(mlflow: MlflowClient, name: str, number: int, **tags: str) -> str:
    mlflow.create_model(name, tags={}, description="")
    said = {"proctor.model_digest": digest(number), **tags}
    return mlflow.create_version(name, source="s3://bucket/model", tags=said, description="").version


def loaded(bench: AuditBench, model: str, *, since: str | None = None, **rule: Any) -> Triggers:
    begin = since or (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    return load_triggers(trigger_file(bench.home, since=begin, models=[model], **rule), bench.settings.bundle)


def desk_of(bench: AuditBench, uri: str) -> LocalDesk:
    return dataclasses.replace(bench.desk, settings=bench.settings.model_copy(update={"registry_uri": uri}))


def begun(bench: AuditBench) -> dict[str, str | None]:
    """Versions that were asked for, and the audits that they came to."""
    return {one.version: one.audit_id for one in bench.records.requests.listed() if one.state is RequestState.STARTED}


def test_a_version_that_is_registered_is_an_audit_on_record(
    bench: AuditBench, uri: str, mlflow: MlflowClient, model: str
) -> None:
    triggers = loaded(bench, model)
    with serving_both(desk_of(bench, uri), triggers=triggers) as (_, url):
        events = [("model_version", "created"), ("model_version_tag", "set"), ("model_version_alias", "created")]
        webhook = add_webhook(uri, f"{url}/v1/webhooks/mlflow", SECRET, *events)
        for event in events:
            body = {"event": {"entity": event[0].upper(), "action": event[1].upper()}}
            tested = httpx.post(
                f"{uri}/api/2.0/mlflow/webhooks/{webhook}/test", json=body, trust_env=False, timeout=30
            ).json()["result"]
            assert (tested["success"], tested["response_status"]) == (True, 200), tested
        assert bench.records.requests.listed() == []
        version = register(mlflow, model, 1)
        mlflow.set_tag(model, version, "proctor.decision", "review")
        mlflow.set_alias(model, "champion", version)
        wait_until(lambda: begun(bench).keys() == {version}, what="the audit")
        (request,) = bench.records.requests.listed()
        assert request.origin == "webhook"
        wait_until(lambda: len([one for one in bench.sent if isinstance(one, StartAudit)]) == 1)
        suite = json.loads(bench.records.audit(str(request.audit_id)).suite)
        assert suite["model_config"]["model_version"] == digest(1)
        assert httpx.delete(f"{uri}/api/2.0/mlflow/webhooks/{webhook}", trust_env=False).is_success


def test_an_alias_asks_for_the_audit_of_a_version_that_no_rule_was_of_before(
    bench: AuditBench, uri: str, mlflow: MlflowClient, model: str
) -> None:
    triggers = loaded(bench, model, tags={"stage": "candidate"})
    with serving_both(desk_of(bench, uri), triggers=triggers) as (_, url):
        webhook = add_webhook(uri, f"{url}/v1/webhooks/mlflow", SECRET, ("model_version_alias", "created"))
        version = register(mlflow, model, 2)
        mlflow.set_tag(model, version, "stage", "candidate")
        mlflow.set_alias(model, "audit-me", version)
        wait_until(lambda: begun(bench).keys() == {version}, what="the audit")
        assert bench.records.requests.listed()[0].origin == "alias"
        assert httpx.delete(f"{uri}/api/2.0/mlflow/webhooks/{webhook}", trust_env=False).is_success


def test_what_was_registered_while_no_gateway_was_there_is_found(
    bench: AuditBench, uri: str, mlflow: MlflowClient, model: str
) -> None:
    triggers = loaded(bench, model)
    versions = [register(mlflow, model, number) for number in (1, 2)]
    with serving_both(desk_of(bench, uri), triggers=triggers, reconcile_every_s=1):
        wait_until(lambda: set(begun(bench)) == set(versions), what="both audits")
        assert {one.origin for one in bench.records.requests.listed()} == {"reconciler"}
        later = register(mlflow, model, 3)
        wait_until(lambda: later in begun(bench), what="the third audit")
    assert len(set(begun(bench).values())) == 3


def test_a_webhook_and_two_reconcilers_begin_one_audit(
    bench: AuditBench, uri: str, mlflow: MlflowClient, model: str
) -> None:
    triggers, desk = loaded(bench, model), desk_of(bench, uri)
    with (
        serving_both(desk, triggers=triggers, reconcile_every_s=1) as (_, url),
        serving_both(desk, triggers=triggers, reconcile_every_s=1),
        MlflowVersions(uri) as source,
    ):
        webhook = add_webhook(uri, f"{url}/v1/webhooks/mlflow", SECRET, ("model_version", "created"))
        versions = {register(mlflow, model, number) for number in range(5)}
        reconcile(source, triggers, bench.records.requests)
        wait_until(lambda: set(begun(bench)) == versions, what="the audits")
        reconcile(source, triggers, bench.records.requests)
        assert httpx.delete(f"{uri}/api/2.0/mlflow/webhooks/{webhook}", trust_env=False).is_success
    assert len(bench.records.audits()) == len(versions)


def test_what_was_registered_before_the_triggers_begin_is_left_alone(
    bench: AuditBench, uri: str, mlflow: MlflowClient, model: str
) -> None:
    register(mlflow, model, 1)
    triggers = loaded(bench, model, since=(datetime.now(UTC) + timedelta(hours=1)).isoformat())
    with MlflowVersions(uri) as source:
        assert reconcile(source, triggers, bench.records.requests).asked == 0


def test_a_registry_of_many_pages_is_read_in_rounds_that_go_on_where_the_last_one_stopped(
    bench: AuditBench, uri: str, mlflow: MlflowClient, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow_client, "_PAGE_SIZE", 2)
    triggers, requests = loaded(bench, model), bench.records.requests
    versions = {register(mlflow, model, number) for number in range(9)}
    other = {register(mlflow, f"{model}-other", number) for number in range(3)}
    rounds = []
    for _ in range(40):
        # Each as in a process of its own.
        with MlflowVersions(uri) as source:
            rounds.append(reconcile(source, triggers, requests, pages=1))
        if rounds[-1].ended:
            break
    assert rounds[-1].ended
    assert len(rounds) > 3
    assert max(one.versions for one in rounds) <= 4
    assert sum(one.asked for one in rounds) == len(versions)
    assert {one.version for one in requests.listed()} == versions
    assert other


def test_a_digest_that_is_set_later_is_seen(bench: AuditBench, uri: str, mlflow: MlflowClient, model: str) -> None:
    triggers = loaded(bench, model)
    mlflow.create_model(model, tags={}, description="")
    version = mlflow.create_version(model, source="s3://b/m", tags={}, description="").version
    with serving_both(desk_of(bench, uri), triggers=triggers, reconcile_every_s=1):
        requests = bench.records.requests
        wait_until(lambda: [one.state for one in requests.listed()] == [RequestState.REFUSED])
        assert "set the tag proctor.model_digest" in requests.listed()[0].detail
        mlflow.set_tag(model, version, "proctor.model_digest", digest(7))
        wait_until(lambda: begun(bench).keys() == {version}, what="the audit")


def test_what_the_registry_writer_creates_starts_nothing(
    bench: AuditBench, uri: str, mlflow: MlflowClient, model: str
) -> None:
    with MlflowRegistry(uri) as registry:
        registry.ensure_version(model.replace("~", "/"), digest(1))
    with MlflowVersions(uri) as source:
        assert reconcile(source, loaded(bench, model), bench.records.requests).asked == 0


def test_a_version_that_is_gone_when_it_is_looked_up_is_refused(
    bench: AuditBench, uri: str, mlflow: MlflowClient, model: str
) -> None:
    triggers = loaded(bench, model)
    with serving_both(desk_of(bench, uri), triggers=triggers) as (_, url):
        webhook = add_webhook(uri, f"{url}/v1/webhooks/mlflow", SECRET, ("model_version_alias", "created"))
        version = register(mlflow, model, 1)
        # Deleted at once: what is taken in first is seen to with or without it.
        mlflow.set_alias(model, "audit-me", version)
        deleted = httpx.request(
            "DELETE",
            f"{uri}/api/2.0/mlflow/model-versions/delete",
            json={"name": model, "version": version},
            trust_env=False,
        )
        assert deleted.is_success
        wait_until(
            lambda: (
                [one.state for one in bench.records.requests.listed()] != [RequestState.REQUESTED]
                and bool(bench.records.requests.listed())
            )
        )
        (request,) = bench.records.requests.listed()
        assert request.state in (RequestState.REFUSED, RequestState.STARTED)
        assert httpx.delete(f"{uri}/api/2.0/mlflow/webhooks/{webhook}", trust_env=False).is_success
