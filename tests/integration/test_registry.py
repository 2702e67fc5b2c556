"""The registry room against a real MLflow server, and the event path over a real Valkey and a real worker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from uuid import uuid4

import pytest
import redis
from celery import Celery
from kombu import Connection
from kombu.exceptions import OperationalError

from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.domain.errors import RegistryError
from proctor.domain.messages import DecisionWritten
from proctor.domain.scope import Scope
from proctor.registry.mlflow_client import MlflowClient
from proctor.registry.mlflow_registry import (
    APPROVED_ALIAS,
    MlflowRegistry,
    registered_name,
)
from proctor.registry.model_registry import RegistryUnavailableError, open_registry
from proctor.registry.tasks import RETRY_WAITS_S
from proctor.registry.version_record import VersionRecord
from proctor.registry.version_tags import MAX_TAG_BYTES, version_tags
from proctor.runtime.messaging.events import EXCHANGE, REGISTRY_QUEUE, publish_decision
from tests.integration.registry_support import forwarder_on_demand, mlflow_server, registry_worker
from tests.standing_audits import decided_audits
from tests.support import free_port

#: The first test of the file also starts the MLflow server, which migrates an empty database.
pytestmark = pytest.mark.timeout(150)


@pytest.fixture(scope="module")
def mlflow_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mlflow_server(tmp_path_factory.mktemp("mlflow")) as uri:
        yield uri


@pytest.fixture
def registry(mlflow_uri: str) -> Iterator[MlflowRegistry]:
    with MlflowRegistry(mlflow_uri) as opened:
        yield opened


@pytest.fixture
def client(mlflow_uri: str) -> Iterator[MlflowClient]:
    with MlflowClient(mlflow_uri) as opened:
        yield opened


@pytest.fixture
def model_id() -> str:
    """A model of this test alone: one MLflow server serves them all."""
    return f"org/model-{uuid4().hex[:12]}"


def digest(digit: str) -> str:
    return "sha256:" + digit * 64


def event_of(
    model_id: str,
    outcome: DecisionOutcome,
    *,
    audit: str = "a-1",
    weights: str = "1",
    text: str = "because",
    scope: Scope | None = Scope.WORDING,
) -> DecisionEvent:
    return DecisionEvent(
        audit_id=audit,
        audit_suite_id="suite",
        model_id=model_id,
        model_digest=digest(weights),
        outcome=outcome,
        reasons=(Reason(code="score_inflation", text=text), Reason(code="other", text="as well")),
        fingerprint=digest("2"),
        protocol_digest=digest("3"),
        report_digest=digest("4"),
        report_path="reports/a-1.html",
        n_items=600,
        scope=scope,
    )


def test_a_version_is_known_by_the_digest_of_its_weights(registry: MlflowRegistry, model_id: str) -> None:
    first = registry.ensure_version(model_id, digest("1"), description="the first")
    assert registry.ensure_version(model_id, digest("1")) == first
    second = registry.ensure_version(model_id, digest("2"), source="s3://bucket/model")
    assert second != first
    assert registry.ensure_version(model_id, digest("2")) == second


def test_an_abbreviated_digest_is_not_registered(registry: MlflowRegistry, model_id: str) -> None:
    with pytest.raises(RegistryError, match="not a full content hash"):
        registry.ensure_version(model_id, "sha256:a1b2c3d4e5f6")


def test_names_keep_different_models_apart() -> None:
    ids = ["org/model", "org.model", "org-model", "org_model", "a/b/c"]
    names = [registered_name(model_id) for model_id in ids]
    assert len(set(names)) == len(ids)
    assert not any("/" in name or ":" in name for name in names)


def test_an_approval_is_tags_and_the_alias(registry: MlflowRegistry, client: MlflowClient, model_id: str) -> None:
    event = event_of(model_id, DecisionOutcome.APPROVE)
    version = registry.ensure_version(model_id, event.model_digest)
    registry.write_decision(event, version)
    written = client.version(registered_name(model_id), version)
    assert written.tags["proctor.decision"] == "approve"
    assert written.tags["proctor.scope"] == "wording"
    assert written.tags["proctor.report_sha256"] == "4" * 64
    assert written.tags["proctor.fingerprint"] == event.fingerprint
    assert written.tags["proctor.protocol_digest"] == event.protocol_digest
    assert written.tags["proctor.audit_id"] == event.audit_id
    assert written.tags["proctor.model_id"] == model_id
    assert written.aliases == {APPROVED_ALIAS}


def test_an_earlier_proctor_s_decision_never_keeps_the_scope_of_another(
    registry: MlflowRegistry, client: MlflowClient, model_id: str
) -> None:
    version = registry.ensure_version(model_id, digest("1"))

    def scope_after(event: DecisionEvent) -> str | None:
        registry.write_decision(event, version)
        return client.version(registered_name(model_id), version).tags.get("proctor.scope")

    assert scope_after(event_of(model_id, DecisionOutcome.REVIEW, scope=None)) is None
    wide = event_of(model_id, DecisionOutcome.APPROVE, audit="a-2", scope=Scope.WORDING_FRESH)
    assert scope_after(wide) == "wording+fresh"
    assert scope_after(event_of(model_id, DecisionOutcome.APPROVE, audit="a-3", scope=None)) == "not recorded"
    assert scope_after(event_of(model_id, DecisionOutcome.BLOCK, audit="a-4")) == "wording"


@pytest.mark.parametrize("outcome", [DecisionOutcome.BLOCK, DecisionOutcome.REVIEW])
def test_what_is_not_approved_loses_the_alias_and_nothing_else(
    registry: MlflowRegistry, client: MlflowClient, model_id: str, outcome: DecisionOutcome
) -> None:
    name = registered_name(model_id)
    version = registry.ensure_version(model_id, digest("1"))
    client.set_tag(name, version, "team.owner", "somebody")
    client.set_alias(name, "champion", version)
    registry.write_decision(event_of(model_id, DecisionOutcome.APPROVE), version)
    registry.write_decision(event_of(model_id, outcome, audit="a-2"), version)
    after = client.version(name, version)
    assert after.tags["proctor.decision"] == outcome.value
    assert after.tags["team.owner"] == "somebody"
    assert after.aliases == {"champion"}


def test_blocking_one_version_leaves_the_alias_on_another(
    registry: MlflowRegistry, client: MlflowClient, model_id: str
) -> None:
    good = registry.ensure_version(model_id, digest("1"))
    bad = registry.ensure_version(model_id, digest("2"))
    registry.write_decision(event_of(model_id, DecisionOutcome.APPROVE), good)
    registry.write_decision(event_of(model_id, DecisionOutcome.BLOCK, weights="2"), bad)
    assert client.version(registered_name(model_id), good).aliases == {APPROVED_ALIAS}
    assert client.version(registered_name(model_id), bad).aliases == frozenset()


def test_the_alias_moves_to_the_version_approved_last(
    registry: MlflowRegistry, client: MlflowClient, model_id: str
) -> None:
    versions = [registry.ensure_version(model_id, digest(weights)) for weights in "12"]
    for weights, version in zip("12", versions, strict=True):
        registry.write_decision(event_of(model_id, DecisionOutcome.APPROVE, weights=weights), version)
    aliases = [client.version(registered_name(model_id), version).aliases for version in versions]
    assert aliases == [frozenset(), {APPROVED_ALIAS}]


def test_writing_a_decision_twice_changes_nothing(
    registry: MlflowRegistry, client: MlflowClient, model_id: str
) -> None:
    event = event_of(model_id, DecisionOutcome.APPROVE)
    version = registry.ensure_version(model_id, event.model_digest)
    registry.write_decision(event, version)
    once = client.version(registered_name(model_id), version)
    registry.write_decision(event, version)
    assert client.version(registered_name(model_id), version) == once


@pytest.mark.parametrize("outcome", [DecisionOutcome.APPROVE, DecisionOutcome.BLOCK])
def test_a_writer_that_dies_between_any_two_calls_never_leaves_the_alias_on_what_is_not_approved(
    registry: MlflowRegistry,
    client: MlflowClient,
    model_id: str,
    outcome: DecisionOutcome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = registered_name(model_id)
    event = event_of(model_id, outcome, audit="a-2")
    version = registry.ensure_version(model_id, event.model_digest)
    opposite = DecisionOutcome.BLOCK if outcome is DecisionOutcome.APPROVE else DecisionOutcome.APPROVE
    registry.write_decision(event_of(model_id, opposite, audit="a-1"), version)
    for survives in range(30):
        with monkeypatch.context() as patch:
            left = [survives]
            for call in ("set_tag", "set_alias", "delete_alias"):
                patch.setattr(registry._client, call, _dying(getattr(registry._client, call), left))
            try:
                registry.write_decision(event, version)
                finished = True
            except ConnectionAbortedError:
                finished = False
        state = client.version(name, version)
        assert APPROVED_ALIAS not in state.aliases or state.tags["proctor.decision"] == "approve"
        if finished:
            break
    assert state.tags["proctor.decision"] == outcome.value
    assert (APPROVED_ALIAS in state.aliases) is (outcome is DecisionOutcome.APPROVE)


def _dying(call: Callable[..., None], left: list[int]) -> Callable[..., None]:
    def wrapped(*arguments: str) -> None:
        if left[0] == 0:
            raise ConnectionAbortedError
        left[0] -= 1
        call(*arguments)

    return wrapped


def test_a_version_of_other_weights_is_not_written(registry: MlflowRegistry, model_id: str) -> None:
    version = registry.ensure_version(model_id, digest("1"))
    with pytest.raises(RegistryError, match="has the weights"):
        registry.write_decision(event_of(model_id, DecisionOutcome.APPROVE, weights="9"), version)


def test_reasons_longer_than_a_tag_are_cut_with_a_mark(
    registry: MlflowRegistry, client: MlflowClient, model_id: str
) -> None:
    event = event_of(model_id, DecisionOutcome.REVIEW, text="größer als erlaubt " * 1_000)
    version = registry.ensure_version(model_id, event.model_digest)
    registry.write_decision(event, version)
    reasons = client.version(registered_name(model_id), version).tags["proctor.reasons"]
    assert MAX_TAG_BYTES - 4 <= len(reasons.encode()) <= MAX_TAG_BYTES
    assert reasons.endswith("… [cut]")


def test_hostile_text_is_kept_as_text(registry: MlflowRegistry, client: MlflowClient, model_id: str) -> None:
    event = event_of(model_id, DecisionOutcome.REVIEW, text="'; DROP TABLE x; --\x1b[2J <script>\u202e")
    version = registry.ensure_version(model_id, event.model_digest)
    registry.write_decision(event, version)
    tags = client.version(registered_name(model_id), version).tags
    assert tags["proctor.reasons"] == version_tags(VersionRecord.of_event(event))["proctor.reasons"]


def test_counts_are_what_mlflow_holds(registry: MlflowRegistry, model_id: str) -> None:
    before = registry.counts()
    version = registry.ensure_version(model_id, digest("1"))
    registry.ensure_version(model_id, digest("2"))
    registry.write_decision(event_of(model_id, DecisionOutcome.BLOCK), version)
    after = registry.counts()
    assert after.versions == before.versions + 2
    assert after.decisions == before.decisions + 1
    assert after.blocked == before.blocked + 1


def test_a_registry_that_is_down_is_named_with_the_mend() -> None:
    uri = f"http://127.0.0.1:{free_port()}"
    with MlflowRegistry(uri) as registry, pytest.raises(RegistryUnavailableError, match=f"{uri} cannot be reached"):
        registry.ensure_version("model", digest("1"))


def test_attempts_on_a_registry_that_is_down_are_bounded(tmp_path: Path) -> None:
    waits: list[float] = []
    uri = f"http://127.0.0.1:{free_port()}"
    with decided_audits(tmp_path) as audits, pytest.raises(RegistryUnavailableError):
        audits.write_patiently(uri, audits.decide("model", DecisionOutcome.APPROVE), RETRY_WAITS_S, waits.append)
    assert tuple(waits) == RETRY_WAITS_S


def test_a_registry_that_comes_back_is_written(
    mlflow_uri: str, client: MlflowClient, model_id: str, tmp_path: Path
) -> None:
    """The first attempts meet a closed port; then something forwards it to the real server."""
    port = free_port()
    with decided_audits(tmp_path) as audits, forwarder_on_demand(port, mlflow_uri) as start:
        event = audits.decide(model_id, DecisionOutcome.BLOCK)
        version = audits.write_patiently(f"http://127.0.0.1:{port}", event, (0.0, 0.0), lambda _: start())
    assert client.version(registered_name(model_id), version).tags["proctor.decision"] == "block"


def test_a_server_that_is_no_mlflow_is_told_apart() -> None:
    class Other(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(404)
            self.end_headers()
            self.wfile.write(b"<html>\x1b[31mnot here</html>")

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            with (
                MlflowRegistry(f"http://127.0.0.1:{server.server_port}") as registry,
                pytest.raises(RegistryError, match="no answer of MLflow's registry") as caught,
            ):
                registry.ensure_version("model", digest("1"))
        finally:
            server.shutdown()
            thread.join()
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("uri", ["sqlite:///mlflow.db", "databricks", "http://"])
def test_only_a_server_can_be_written_to(uri: str) -> None:
    with pytest.raises(RegistryError, match="no http or https URL"):
        open_registry(uri)


def test_a_password_in_the_uri_is_not_printed() -> None:
    uri = f"http://user:secret@127.0.0.1:{free_port()}"
    with MlflowRegistry(uri) as registry, pytest.raises(RegistryError) as caught:
        registry.ensure_version("model", digest("1"))
    assert "secret" not in str(caught.value)


def _answers(broker: str, count: int, *, within_s: float = 25) -> list[DecisionWritten]:
    """What the worker sent to the router."""
    with Connection(broker) as connection, connection.SimpleQueue("router") as queue:
        received = []
        for _ in range(count):
            message = queue.get(timeout=within_s)
            message.ack()
            assert message.headers["task"] == DecisionWritten.task
            received.append(DecisionWritten.model_validate(message.payload[1]["message"]))
        return received


@pytest.fixture
def broker(valkey_url: str) -> Iterator[str]:
    """An emptied database of the test server: the queues' names are fixed."""
    url = f"{valkey_url}/7"
    with redis.Redis.from_url(url) as connection:
        connection.flushdb()
        yield url
        connection.flushdb()


def test_a_decision_published_before_the_writer_runs_is_written(
    broker: str, mlflow_uri: str, client: MlflowClient, model_id: str, tmp_path: Path
) -> None:
    with decided_audits(tmp_path / "home") as audits:
        events = [
            audits.decide(model_id, DecisionOutcome.APPROVE, subject="a"),
            audits.decide(model_id, DecisionOutcome.BLOCK, subject="b", weights="2"),
        ]
    with Celery("publisher", broker=broker, set_as_current=False) as publisher:
        for event in events:
            publish_decision(event, publisher, [REGISTRY_QUEUE])
        # Delivered twice, as a broker may.
        publish_decision(events[1], publisher, [REGISTRY_QUEUE])
    with registry_worker(tmp_path / "home", broker, mlflow_uri):
        answers = _answers(broker, 3)
    assert [answer.audit_id for answer in answers] == ["a-1", "b-1", "b-1"]
    assert [answer.error for answer in answers] == [None, None, None]
    assert answers[1] == answers[2]
    for answer, decision in zip(answers, ("approve", "block", "block"), strict=True):
        assert answer.registry_version is not None
        version = client.version(registered_name(model_id), answer.registry_version)
        assert version.tags["proctor.decision"] == decision


def test_an_event_is_not_lost_when_the_broker_has_forgotten_the_bindings(broker: str, model_id: str) -> None:
    event = event_of(model_id, DecisionOutcome.APPROVE)
    with Celery("publisher", broker=broker, set_as_current=False) as publisher:
        publish_decision(event, publisher, [REGISTRY_QUEUE])
        with redis.Redis.from_url(broker) as connection:
            connection.flushdb()
        publish_decision(event, publisher, [REGISTRY_QUEUE])
    with Connection(broker) as connection, connection.SimpleQueue(REGISTRY_QUEUE) as queue:
        assert queue.get(timeout=10).payload == event.plain()


def test_a_broker_that_is_down_is_an_error(model_id: str) -> None:
    with (
        Celery("publisher", broker=f"redis://127.0.0.1:{free_port()}/0", set_as_current=False) as publisher,
        pytest.raises(OperationalError),
    ):
        publish_decision(event_of(model_id, DecisionOutcome.APPROVE), publisher, [REGISTRY_QUEUE])


def test_what_is_no_decision_event_is_dropped_and_the_next_one_is_written(
    broker: str, mlflow_uri: str, model_id: str, tmp_path: Path
) -> None:
    with decided_audits(tmp_path / "home") as audits:
        event = audits.decide(model_id, DecisionOutcome.REVIEW)
    with Celery("publisher", broker=broker, set_as_current=False) as publisher:
        with publisher.producer_or_acquire() as producer:
            for body, serializer in (({"outcome": "approve"}, "json"), ({"a": 1}, "pickle"), (["\x1b[2J"], "json")):
                producer.publish(
                    body,
                    exchange=EXCHANGE,
                    routing_key="decision.approve",
                    serializer=serializer,
                    declare=[REGISTRY_QUEUE],
                )
        with registry_worker(tmp_path / "home", broker, mlflow_uri):
            publish_decision(event, publisher, [REGISTRY_QUEUE])
            (answer,) = _answers(broker, 1)
    assert answer.error is None
    log = (tmp_path / "home" / "worker.log").read_text()
    assert log.count("dead-lettered") == 3
    assert "\x1b[2J" not in log


def test_a_registry_that_stays_away_is_reported_to_the_router(broker: str, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            decided_audits(tmp_path / "home") as audits,
            Celery("publisher", broker=broker, set_as_current=False) as publisher,
        ):
            publish_decision(audits.decide("model", DecisionOutcome.APPROVE), publisher, [REGISTRY_QUEUE])
        with registry_worker(tmp_path / "home", broker, uri, PROCTOR_OUTAGE_S="10"):
            (answer,) = _answers(broker, 1, within_s=60)
    assert answer.registry_version is None
    assert answer.error is not None
    assert "cannot be reached" in answer.error


def test_a_decision_that_nobody_has_on_record_is_refused(broker: str, mlflow_uri: str, tmp_path: Path) -> None:
    with Celery("publisher", broker=broker, set_as_current=False) as publisher:
        publish_decision(event_of("made-up", DecisionOutcome.APPROVE), publisher, [REGISTRY_QUEUE])
    with registry_worker(tmp_path / "home", broker, mlflow_uri):
        (answer,) = _answers(broker, 1)
    assert answer.registry_version is None
    assert "no decision of audit a-1 is on record here" in str(answer.error)
