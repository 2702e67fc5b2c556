"""Rows and messages of a newer Proctor: they are named, left to whoever can read them, and in nobody's way."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar

import pytest
import sqlalchemy as sa

from proctor.cli import main as root
from proctor.domain.base import Frozen
from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import NewerVersionError
from proctor.domain.messages import (
    BuildVariants,
    GradeShards,
    Message,
    NotUnderstood,
    Reconcile,
    StartAudit,
    VariantsBuilt,
    VariantsToCheck,
    WriteDecision,
)
from proctor.domain.versions import added, needed_version, newest_version
from proctor.registry import consumer
from proctor.runtime.artifacts.store import get_model, put_model
from proctor.runtime.messaging.versions import (
    GIVEN_BACK_HEADER,
    MAX_GIVEN_BACK,
    VERSION_HEADER,
    Delivery,
    give_back,
    understood,
    wait_s,
)
from proctor.runtime.records.engine import open_engine
from proctor.runtime.timing import DEFAULT_TIMING
from tests.integration.audit_support import AuditBench, audit_bench, serving
from tests.integration.router_support import Bench, router_bench
from tests.scored_audits import MemoryArtifacts

#: An audit's row as a newer Proctor may have left it.
NEWER: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "state": lambda row: {"state": "deliberating"},
    "inputs": lambda row: {"inputs": json.dumps({**json.loads(row["inputs"]), "mood": "good"})},
    "suite": lambda row: {"suite": json.dumps({**json.loads(row["suite"]), "mood": "good"})},
    "word": lambda row: {"inputs": json.dumps({**json.loads(row["inputs"]), "priority": "urgent"})},
}


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as bench:
        yield bench


def rewrite(bench: AuditBench | Bench, audit: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    engine = open_engine(bench.settings.records_url)
    table = sa.Table("audits", sa.MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        found = connection.execute(table.select().where(table.c.audit_id == audit)).mappings().one()
        connection.execute(table.update().where(table.c.audit_id == audit).values(**change(dict(found))))
    engine.dispose()


def give_a_newer_decision(bench: AuditBench, audit: str) -> None:
    bench.decide(audit, DecisionOutcome.REVIEW)
    engine = open_engine(bench.settings.records_url)
    table = sa.Table("decisions", sa.MetaData(), autoload_with=engine)
    with engine.begin() as connection:
        event = connection.execute(sa.select(table.c.event)).scalar_one()
        connection.execute(table.update().values(event=json.dumps({**json.loads(event), "mood": "good"})))
    engine.dispose()


@pytest.fixture(params=["here", "there"])
def listed(
    request: pytest.FixtureRequest,
    bench: AuditBench,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """`proctor audit list`, on the stores of a home and through a gateway."""
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    for name, value in bench.settings.to_environment().items():
        monkeypatch.setenv(name, value)
    with serving(bench.desk) if request.param == "there" else nullcontext() as address:
        server = [] if address is None else ["--server", f"grpc://{address}"]

        def run(*options: str) -> tuple[int, str, str]:
            code = root.main(["audit", "list", *options, *server])
            return code, *capsys.readouterr()

        yield run


@pytest.mark.parametrize("kind", [*NEWER, "decision"])
def test_an_audit_of_a_newer_version_is_named_in_the_list_and_the_others_are_listed(
    kind: str, bench: AuditBench, listed: Callable[..., tuple[int, str, str]]
) -> None:
    older, newer = bench.submitted("older"), bench.submitted("newer")
    if kind == "decision":
        give_a_newer_decision(bench, newer)
    else:
        rewrite(bench, newer, NEWER[kind])
    code, out, err = listed()
    assert code == 0
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "needs a newer Proctor" in lines[newer]
    assert "older" in lines[older]
    assert newer in err
    assert err.count("\n") == 1
    code, out, _ = listed("--format", "json")
    assert code == 0
    rows = {row["audit_id"]: row for row in json.loads(out)}
    assert rows.keys() == {older, newer}
    assert newer in rows[newer]["unreadable"]
    assert rows[older]["state"] == "created"


@pytest.mark.parametrize("kind", NEWER)
def test_an_audit_of_a_newer_version_is_shown_as_one_clear_error(kind: str, bench: AuditBench) -> None:
    audit = bench.submitted()
    rewrite(bench, audit, NEWER[kind])
    assert bench.desk.find(audit[:6]) == audit
    with pytest.raises(NewerVersionError, match="newer"):
        bench.desk.status(audit)


@pytest.mark.parametrize("kind", NEWER)
def test_the_router_leaves_an_audit_of_a_newer_version_to_another_and_takes_on_the_rest(
    kind: str, tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from proctor.router import tasks

    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        newer = bench.submit()
        bench.another_suite("older")
        older = bench.submit()
        rewrite(bench, newer, NEWER[kind])
        tasks.reconcile(Reconcile())
        assert bench.sent == [StartAudit(audit_id=older)]
        with pytest.raises(NewerVersionError):
            tasks.start(StartAudit(audit_id=newer))
        tasks.not_understood(NotUnderstood(audit_id=newer, detail="nobody knows version 2"))
        states = {audit.audit_id: getattr(audit, "detail", None) for audit in bench.records.audits()}
        assert states[newer] == (None if kind == "state" else "nobody knows version 2")
        tasks.not_understood(NotUnderstood(audit_id=older, detail="nobody knows version 2"))
        assert bench.records.audit(older).state == "failed"


class Part(Frozen):
    """A part of a message, to which a field was added in version 3."""

    name: str = ""
    place: str | None = added(None, since=3)


class Asked(Message):
    """A message to which a field was added in version 2, and to a part of which in version 3."""

    task: ClassVar[str] = "scorer.asked"
    audit_id: str
    mood: str = added("", since=2)
    parts: tuple[Part, ...] = ()


def test_a_message_is_written_in_the_earliest_version_that_says_the_same() -> None:
    assert newest_version(Asked) == 3
    assert newest_version(StartAudit) == 1
    plain, moody = Asked(audit_id="a", parts=(Part(name="n"),)), Asked(audit_id="a", mood="good")
    assert (plain.version, moody.version) == (1, 2)
    assert needed_version(Asked(audit_id="a", parts=(Part(), Part(place="here")))) == 3
    assert plain.plain() == {"audit_id": "a", "parts": [{"name": "n"}]}
    assert moody.plain() == {"audit_id": "a", "mood": "good", "parts": []}
    assert understood(Asked, Delivery(Asked.task, plain.plain())) == plain
    assert understood(Asked, Delivery(Asked.task, moody.plain(), version=2)) == moody


def test_every_message_is_of_version_one_but_where_it_says_what_was_added_since() -> None:
    kinds = [kind for kind in Message.__subclasses__() if kind.__module__ == Message.__module__]
    assert len(kinds) > 10
    # To be raised, with a migration of the messages' readers in mind, when a field is added (docs/architecture.md).
    newer = {kind.__name__: newest_version(kind) for kind in kinds if newest_version(kind) > 1}
    assert newer == {
        "ProbeEndpoint": 4,
        "EndpointProbed": 2,
        "BuildVariants": 5,
        "VariantsBuilt": 4,
        "WriteDecision": 3,
        "RunShards": 4,
        "ShardsAnswered": 2,
        "GradeShards": 3,
        "ScoreAudit": 5,
        "AuditScored": 2,
    }
    asked = BuildVariants(audit_id="a", items="i", settings="s", benchmark="b")
    to_check = VariantsToCheck(variants="v", answers=("a",), extractor="auto")
    assert [asked.version, asked.model_copy(update={"check": to_check}).version] == [1, 2]
    built = VariantsBuilt(audit_id="a", variants="v")
    assert [built.version, built.model_copy(update={"checked": True}).version] == [1, 2]
    assert not {"check", "checked"} & {*asked.plain(), *built.plain()}


@pytest.mark.parametrize(
    ("body", "version", "words"),
    [
        ({"audit_id": "a"}, 2, "of version 2 needs a newer Proctor: this one knows 1"),
        ({"audit_id": "a"}, 10**30, "needs a newer Proctor"),
        ({"audit_id": "a", "mood": "good"}, 1, "it has mood, which this one does not know"),
        ({"audit_id": "a", **{f"m{n}": n for n in range(50_000)}}, 1, "it has m0, m1, m2 and 49997 more"),
    ],
)
def test_what_a_newer_version_wrote_is_told_from_what_is_no_message(
    body: dict[str, Any], version: int, words: str
) -> None:
    with pytest.raises(NewerVersionError, match=words):
        understood(StartAudit, Delivery(StartAudit.task, body, version))
    with pytest.raises(ValueError, match="audit_id"):
        understood(StartAudit, Delivery(StartAudit.task, {}))


@pytest.mark.parametrize(
    ("headers", "version", "given_back"),
    [
        ({}, 1, 0),
        ({VERSION_HEADER: 2, GIVEN_BACK_HEADER: 3}, 2, 3),
        ({VERSION_HEADER: "2", GIVEN_BACK_HEADER: "3"}, 1, MAX_GIVEN_BACK),
        ({VERSION_HEADER: None, GIVEN_BACK_HEADER: -(10**9)}, 1, MAX_GIVEN_BACK),
        ({VERSION_HEADER: True, GIVEN_BACK_HEADER: True}, 1, MAX_GIVEN_BACK),
    ],
)
def test_headers_that_say_nothing_do_not_keep_a_message_for_ever(
    headers: dict[str, Any], version: int, given_back: int
) -> None:
    delivery = Delivery.of("scorer.grade", {}, headers, {"routing_key": "scorer"})
    assert (delivery.version, delivery.given_back, delivery.queue) == (version, given_back, "scorer")


class Broker:
    """Keeps what is published."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send_task(self, name: str, **options: Any) -> None:
        self.sent.append({"name": name, **options})


def test_a_message_is_given_back_as_it_was_so_often_and_then_its_audit_fails() -> None:
    broker, cause = Broker(), NewerVersionError("a message scorer.grade needs a newer Proctor")
    body = {"audit_id": "a", "mood": "good"}
    delivery = Delivery("scorer.grade", body, 2, 0, "scorer")
    while True:
        give_back(broker, delivery, cause, DEFAULT_TIMING.lease_s)
        last = broker.sent[-1]
        if last["name"] != delivery.task:
            break
        assert (last["kwargs"], last["queue"]) == ({"message": body}, "scorer")
        assert last["headers"][VERSION_HEADER] == 2
        delivery = delivery._replace(given_back=last["headers"][GIVEN_BACK_HEADER])
    assert len(broker.sent) == MAX_GIVEN_BACK + 1
    told = NotUnderstood.model_validate(last["kwargs"]["message"])
    assert (last["queue"], told.audit_id) == ("router", "a")
    assert "upgrade the scorer workers" in told.detail


@pytest.mark.parametrize("lease_s", [3.0, 900.0, 1e9])
def test_a_message_waits_less_than_the_lease_in_all(lease_s: float) -> None:
    waits = [wait_s(n, lease_s) for n in range(MAX_GIVEN_BACK)]
    assert sum(waits) <= lease_s
    assert waits == sorted(waits)


def test_a_decision_event_of_a_newer_version_becomes_a_task_that_a_newer_worker_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forwarded: list[tuple[type[Message], dict[str, Any]]] = []
    monkeypatch.setattr(consumer, "forward", lambda kind, body, headers: forwarded.append((kind, body)))
    acknowledged: list[str] = []

    class Arrived:
        headers: ClassVar[dict[str, str]] = {}

        def ack(self) -> None:
            acknowledged.append("ack")

        def reject(self) -> None:
            acknowledged.append("reject")

    names = ("auditId", "auditSuiteId", "modelId", "modelDigest", "fingerprint", "protocolDigest", "reportDigest")
    event = {**dict.fromkeys(names, "x"), "outcome": "review", "reasons": [], "reportPath": "p", "nItems": 1}
    consumer.dispatch({**event, "mood": "good"}, Arrived())
    assert forwarded == [(WriteDecision, {"event": {**event, "mood": "good"}})]
    assert Delivery(WriteDecision.task, forwarded[0][1]).audit_id == "x"
    consumer.dispatch({"mood": "good"}, Arrived())
    consumer.dispatch(["no event"], Arrived())
    assert acknowledged == ["ack", "ack", "reject"]


def test_a_document_of_a_newer_version_is_told_from_a_damaged_one() -> None:
    store = MemoryArtifacts()
    digest = put_model(store, Asked(audit_id="a", mood="good"))
    assert get_model(store, digest, Asked).mood == "good"
    with pytest.raises(NewerVersionError, match="needs a newer Proctor: it has"):
        get_model(store, digest, GradeShards)
