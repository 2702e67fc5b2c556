"""What the reconciler takes on by itself: every message of an audit may be lost, and no audit waits for another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.domain.errors import StoreError
from proctor.domain.messages import AuditScored, Reconcile, StartAudit, WriteDecision
from proctor.domain.trial import ANSWER_STAGE
from proctor.router import tasks
from proctor.router.ledger.store import MAX_FAILURES, Ledger, Standing
from proctor.runtime.records.store import AuditState
from tests.integration.router_support import Bench, router_bench

_EVENT = {
    "auditId": "",
    "auditSuiteId": "router-test",
    "modelId": "m",
    "modelDigest": "sha256:" + "ab" * 32,
    "outcome": "review",
    "reasons": [{"code": "scope", "text": "a reason"}],
    "fingerprint": "sha256:" + "cd" * 32,
    "protocolDigest": "sha256:" + "cd" * 32,
    "reportDigest": "sha256:" + "cd" * 32,
    "reportPath": "report.html",
    "nItems": 1,
}


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        yield bench


def test_an_audit_whose_first_message_was_lost_is_begun(bench: Bench) -> None:
    audit = bench.submit()
    tasks.reconcile(Reconcile())
    assert bench.sent == [StartAudit(audit_id=audit)]
    bench.sent.clear()
    tasks.reconcile(Reconcile())
    assert bench.sent == []


def test_a_decision_that_did_not_reach_the_registry_is_sent_again(bench: Bench) -> None:
    audit = bench.to_answering()
    bench.records.advance(audit, AuditState.SCORING, expected=[AuditState.ANSWERING])
    bench.records.decide(audit, {**_EVENT, "auditId": audit})
    tasks.scored(AuditScored(audit_id=audit))
    bench.sent.clear()
    tasks.reconcile(Reconcile())
    assert bench.sent == []  # the scorer's own event has its time
    bench.ledger.note_asked(audit, "another step")
    tasks.reconcile(Reconcile())
    sent = bench.take(WriteDecision)
    assert [message.event.audit_id for message in sent if isinstance(message, WriteDecision)] == [audit]


def test_an_audit_that_cannot_be_taken_on_keeps_no_other_waiting(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = sorted((bench.to_answering(), "zzz"))
    with bench.records._engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO audits (audit_id, subject, ordinal, suite, inputs, state, detail, created_at) "
            "SELECT 'zzz', 'zzz', 1, suite, inputs, 'created', '', created_at FROM audits"
        )
    whole = Ledger.standing

    def breaks(self: Ledger, audit_id: str, stage: str, n: int) -> Standing:
        if audit_id == first:
            raise StoreError("no room on the disk")
        return whole(self, audit_id, stage, n)

    monkeypatch.setattr(Ledger, "standing", breaks)
    bench.sent.clear()
    tasks.reconcile(Reconcile())
    assert bench.sent == [StartAudit(audit_id=second)]


def test_a_shard_that_failed_waits_for_an_answer_to_another_or_for_the_reconciler(bench: Bench) -> None:
    bench.to_answering()
    first, second = bench.shards()
    bench.answer(first, error="no room")
    assert bench.shards() == []
    bench.answer(second, completions="sha256:c")
    again = bench.handed_out()
    assert [shard.attempt for shard in again if shard.shard_id == first.shard_id] == [2]


def test_only_the_last_attempt_at_a_shard_may_leave_trials_unanswered(bench: Bench) -> None:
    audit = bench.to_answering()
    of_first: list[bool] = []
    shard_id = ""
    while shards := bench.handed_out():
        for shard in shards:
            shard_id = shard_id or shard.shard_id
            if shard.shard_id == shard_id:
                of_first.append(shard.last_attempt)
            bench.answer(shard, error="no answer")
    assert of_first == [False] * (MAX_FAILURES - 1) + [True]
    assert bench.ledger.dead(audit, ANSWER_STAGE)
