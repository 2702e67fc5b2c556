"""An audit that is paused, resumed or cancelled: what it leaves goes to others, and nothing of it is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from proctor.domain.errors import BadInputError
from proctor.domain.messages import (
    BuildVariants,
    EndpointProbed,
    Reconcile,
    ScoreAudit,
    StartAudit,
    TakeOn,
    VariantsBuilt,
)
from proctor.domain.trial import ANSWER_STAGE
from proctor.router import tasks
from proctor.router.control import cancel, pause, resume
from proctor.runtime.records.store import AuditRecord, AuditState, Records
from tests.integration.router_support import PINNED, Bench, router_bench

Steers = Callable[[Records, str], AuditRecord]


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        yield bench


def test_a_paused_audit_hands_out_nothing_more_and_keeps_what_is_answered(bench: Bench) -> None:
    audit = bench.to_answering()
    under_way = bench.shards()
    assert pause(bench.records, audit).state is AuditState.ANSWERING
    for shard in under_way:
        bench.answer(shard, completions="sha256:c")
    tasks.take_on(TakeOn(audit_id=audit))
    tasks.reconcile(Reconcile())
    assert bench.sent == []
    assert bench.ledger.progress(audit, ANSWER_STAGE).done == 128
    resume(bench.records, audit)
    tasks.take_on(TakeOn(audit_id=audit))
    assert len(bench.shards()) == 2


def test_an_audit_whose_last_answer_comes_while_it_is_paused_is_scored_when_it_is_resumed(bench: Bench) -> None:
    audit = bench.to_answering()
    shards = bench.shards()
    for shard in shards:
        bench.answer(shard, completions="sha256:c")
    last = bench.shards()
    pause(bench.records, audit)
    for shard in last:
        bench.answer(shard, completions="sha256:c")
    assert bench.sent == []
    resume(bench.records, audit)
    tasks.take_on(TakeOn(audit_id=audit))
    assert len(bench.take(ScoreAudit)) == 1


def test_an_audit_that_is_paused_between_two_steps_asks_nobody_until_it_is_resumed(bench: Bench) -> None:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    pause(bench.records, audit)
    bench.sent.clear()
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED))
    tasks.reconcile(Reconcile())
    assert bench.sent == []
    assert bench.state(audit) is AuditState.REWORDING
    resume(bench.records, audit)
    tasks.take_on(TakeOn(audit_id=audit))
    assert len(bench.take(BuildVariants)) == 1


def test_a_pause_that_comes_between_looking_and_writing_does_not_lose_the_step(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED))
    variants, write = bench.variants(audit), bench.records.advance

    def paused_just_before(*arguments: Any, **keywords: Any) -> bool:
        monkeypatch.setattr(bench.records, "advance", write)
        pause(bench.records, audit)
        return write(*arguments, **keywords)

    monkeypatch.setattr(bench.records, "advance", paused_just_before)
    bench.sent.clear()
    tasks.variants_built(VariantsBuilt(audit_id=audit, variants=variants))
    assert bench.state(audit) is AuditState.ANSWERING
    assert bench.sent == []
    resume(bench.records, audit)
    tasks.take_on(TakeOn(audit_id=audit))
    assert len(bench.shards()) == 2


def test_an_audit_that_failed_is_begun_anew_where_it_stopped_when_it_is_resumed(bench: Bench) -> None:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=False, detail="refused"))
    bench.sent.clear()
    assert resume(bench.records, audit).state is AuditState.CREATED
    tasks.take_on(TakeOn(audit_id=audit))
    assert bench.take(StartAudit) == [StartAudit(audit_id=audit)]
    tasks.start(StartAudit(audit_id=audit))
    assert bench.state(audit) is AuditState.PROBING


def test_the_same_suite_submitted_again_resumes_its_paused_audit(bench: Bench) -> None:
    audit = bench.to_answering()
    bench.sent.clear()
    pause(bench.records, audit)
    assert bench.start_again() == audit
    assert len(bench.shards()) == 2


@pytest.mark.parametrize("steer", [pause, cancel])
def test_what_a_paused_or_cancelled_audit_does_not_use_goes_to_those_who_wait(bench: Bench, steer: Steers) -> None:
    first = bench.to_answering()
    under_way = bench.shards()
    bench.another_suite("second")
    second = bench.to_answering()
    assert bench.shards() == []
    steer(bench.records, first)
    tasks.take_on(TakeOn(audit_id=first))
    for shard in under_way:
        bench.answer(shard, completions="sha256:c")
    handed_out = bench.shards()
    assert {shard.audit_id for shard in handed_out} == {second}
    assert len(handed_out) == 2


def test_a_cancelled_audit_is_never_taken_on_again_and_its_suite_begins_another(bench: Bench) -> None:
    audit = bench.to_answering()
    under_way = bench.shards()
    assert cancel(bench.records, audit).state is AuditState.CANCELLED
    tasks.take_on(TakeOn(audit_id=audit))
    tasks.start(StartAudit(audit_id=audit))
    for shard in under_way:
        bench.answer(shard, completions="sha256:c")
    tasks.reconcile(Reconcile())
    assert bench.state(audit) is AuditState.CANCELLED
    assert bench.sent == []
    assert bench.grading == []
    with redis.Redis.from_url(bench.settings.ledger_url) as client:
        lives = {client.ttl(key) for key in client.scan_iter(f"proctor:{{{audit}}}:*")}
    assert lives
    assert all(0 < life <= 86_400 for life in lives)
    assert bench.submit() == audit.removesuffix("-1") + "-2"


def test_a_decided_audit_cannot_be_cancelled_even_before_the_registry_has_it(bench: Bench) -> None:
    audit = bench.to_answering()
    bench.records.decide(audit, {"outcome": "review"})
    with pytest.raises(BadInputError, match="its decision is on record"):
        cancel(bench.records, audit)


@pytest.mark.parametrize("steer", [pause, resume, cancel])
def test_an_audit_that_has_ended_or_is_unknown_is_refused_with_its_name(bench: Bench, steer: Steers) -> None:
    audit, end = bench.submit(), AuditState.CANCELLED if steer is resume else AuditState.FAILED
    bench.records.advance(audit, end, expected=[AuditState.CREATED])
    with pytest.raises(BadInputError, match=rf"{audit} cannot be \w+: it has ended already \({end.value}\)"):
        steer(bench.records, audit)
    with pytest.raises(BadInputError, match="no audit 'nobody'"):
        steer(bench.records, "nobody")


def test_pausing_twice_and_resuming_twice_is_the_same_as_once(bench: Bench) -> None:
    audit = bench.to_answering()
    assert pause(bench.records, audit) == pause(bench.records, audit)
    assert resume(bench.records, audit) == resume(bench.records, audit)
