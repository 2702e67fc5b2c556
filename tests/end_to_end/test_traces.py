"""One connected trace from a webhook to the decision in the registry: real MLflow, gateway, workers and collector.

The same run logs in JSON, so that what is said of logs is held where every service runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proctor.cli.demo import demo_suite
from proctor.localstack.stack import LocalStack
from proctor.registry.mlflow_client import MlflowClient
from proctor.runtime.records.store import Records
from proctor.runtime.traces.identity import audit_trace, request_trace
from tests.end_to_end.test_stack_from_outside import secrets_of
from tests.integration.audit_support import gateway_process
from tests.integration.registry_support import WEBHOOKS, add_webhook
from tests.registry_webhooks import SECRET
from tests.standing_stack import standing_stack
from tests.support import REPOSITORY, free_port, wait_until
from tests.trace_collector import CollectedSpan, Collector, collecting, tree

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="the local stack needs Linux"),
    pytest.mark.timeout(600),
]

_SERVICES = ("gateway", "router", "perturbation", "inference", "scorer", "registry")
#: What every audit comes by.
_STEPS = (
    "audit",
    "wait on record",
    "submit",
    "process router.start",
    "process inference.probe",
    "process router.endpoint_probed",
    "process perturbation.build",
    "process router.variants_built",
    "process inference.run_shards",
    "shard",
    "process router.shards_answered",
    "process scorer.grade",
    "process router.shards_graded",
    "process scorer.score",
    "load grades",
    "weigh",
    "decide",
    "process router.scored",
    "process registry.write",
    "write registry",
    "process router.decision_written",
    *(f"state {state}" for state in ("probing", "rewording", "answering", "scoring", "registering", "decided")),
)
_COLLECTOR_KEY = "collector-key-5d1f0c"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture(scope="module")
def traced(collector: Collector) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer {_COLLECTOR_KEY}",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "PROCTOR_LOG_FORMAT": "json",
    }


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, traced: dict[str, str]) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("traced") / "home"
    with standing_stack(folder, "--no-gateway", **WEBHOOKS, **traced) as found:
        yield found


def trigger_file(folder: Path, bundle: Path) -> Path:
    suite = json.loads(demo_suite("reference-clean", bundle))
    suite["model_config"].update(model_id="any", model_version="sha256:" + "0" * 64)
    suite["dataset_config"]["sample_size"] = 60
    (folder / "facts.json").write_text(json.dumps(suite))
    rule = {"name": "facts", "models": ["reference-*"], "suites": ["facts.json"]}
    path = folder / "triggers.json"
    path.write_text(json.dumps({"since": datetime.now(UTC).isoformat(), "rules": [rule]}))
    return path


def test_an_audit_is_one_trace_from_the_webhook_to_the_registry(
    home: Path, collector: Collector, traced: dict[str, str], tmp_path: Path, bundle: Path
) -> None:
    stack = LocalStack.attach(home)
    settings, port = stack.settings, free_port()
    assert settings.registry_uri is not None
    (tmp_path / "secrets").write_text(f"{SECRET}\n")
    options = ("--http", str(port), "--triggers", str(trigger_file(tmp_path, bundle)), "--reconcile-every", "3600")
    secret = {"PROCTOR_GATEWAY_MLFLOW_SECRETS": f"@{tmp_path / 'secrets'}"}
    webhook = f"http://127.0.0.1:{port}/v1/webhooks/mlflow"
    add_webhook(settings.registry_uri, webhook, SECRET, ("model_version", "created"))
    digest = str(json.loads(demo_suite("reference-clean", bundle))["model_config"]["model_version"])
    with (
        gateway_process(home, *options, **{**settings.to_environment(), **secret, **traced}),
        MlflowClient(settings.registry_uri) as mlflow,
        closing(Records(settings.records_url)) as records,
    ):
        mlflow.create_model("reference-clean", tags={}, description="")
        tags = {"proctor.model_digest": digest}
        mlflow.create_version("reference-clean", source="s3://models/clean", tags=tags, description="")
        wait_until(lambda: bool(collector.named("state decided")), timeout_s=150, what="the trace's end")
        (request,) = records.requests.listed()
        audit = records.audit(str(request.audit_id))
        # What comes after the step itself, in the same process.
        wait_until(lambda: bool(collector.named("process router.decision_written")), what="the last message's span")
    root = audit_trace(audit.audit_id, audit.created_at)
    spans = [one for one in collector.spans if one.trace_id == f"{root.trace_id:032x}"]
    said = tree(spans)
    assert set(_STEPS) <= {one.name for one in spans}, said
    assert {one.service for one in spans} == {f"proctor-{name}" for name in _SERVICES}, said
    by_id = {one.span_id: one for one in spans}
    assert len(by_id) == len(spans)
    # One root, from which every span hangs.
    assert [one.name for one in spans if one.parent_id not in by_id] == ["audit"], said
    (of_audit,) = (one for one in spans if one.name == "audit")
    assert of_audit.span_id == f"{root.span_id:016x}"
    (asked,) = collector.named("webhook mlflow")
    named = request_trace(request.key)
    assert of_audit.links == ((asked.trace_id, asked.span_id),)
    assert (asked.trace_id, asked.span_id) == (f"{named.trace_id:032x}", f"{named.span_id:016x}")
    assert (asked.kind, asked.service) == ("server", "proctor-gateway")
    assert_nothing_is_told(collector, secrets_of(stack) | {"webhook": SECRET, "collector": _COLLECTOR_KEY}, bundle)
    page = (REPOSITORY / "docs" / "tracing.md").read_text("utf-8")
    assert {name for one in collector.spans for name in one.attributes if f"`{name}`" not in page} == set()
    assert_what_shards_say(spans)
    assert {one["authorization"] for one in collector.headers} == {f"Bearer {_COLLECTOR_KEY}"}
    assert_logs_are_json(home, audit.audit_id, f"{root.trace_id:032x}")


def assert_what_shards_say(spans: list[CollectedSpan]) -> None:
    shards = [one for one in spans if one.name == "shard" and one.attributes["proctor.stage"] == "answer"]
    by_id = {one.span_id: one for one in spans}
    assert sum(one.attributes["proctor.trials"] for one in shards) >= 60 * 2
    for shard in shards:
        assert by_id[shard.parent_id].name == "process inference.run_shards"
        assert shard.attributes["proctor.shard.outcome"] == "answered"
        calls = [one for one in spans if one.parent_id == shard.span_id]
        assert calls
        assert {one.kind for one in calls} == {"client"}
        assert calls[0].attributes["gen_ai.usage.output_tokens"] > 0


def assert_nothing_is_told(collector: Collector, secrets: dict[str, str], bundle: Path) -> None:
    items = (json.loads(line) for path in bundle.rglob("*.jsonl") for line in path.read_text("utf-8").splitlines())
    texts = [value for item in items for value in item.values() if isinstance(value, str) and len(value) > 12]
    assert len(texts) > 100
    sent = b"\n".join(collector.raw)
    assert b"process router.start" in sent
    assert [name for name, secret in secrets.items() if secret.encode() in sent] == []
    assert [text for text in texts if text.encode() in sent] == []
    for word in (b"redis://", b"grpc://", b"http://", b"unix:", b"Traceback"):
        assert word not in sent, word


def assert_logs_are_json(home: Path, audit_id: str, trace_id: str) -> None:
    logs = {path.stem: path for path in (home / "logs").glob("*.log")} | {"gateway": home / "gateway.log"}
    for service in _SERVICES:
        (path,) = (path for name, path in logs.items() if service in name)
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert {line["service"] for line in lines} == {service}
        of_audit = [line for line in lines if audit_id in line["message"]]
        assert all(line.get("audit_id") == audit_id for line in of_audit), of_audit
        if service in ("router", "gateway"):
            assert of_audit or service == "router"
    said = (home / "gateway.log").read_text("utf-8")
    assert trace_id in said or audit_id in said
