"""A ledger that lost keys of an audit in the middle of it: the audit says so, and goes on when it is started again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from proctor.domain.errors import StoreError
from proctor.domain.manifest import AuditManifest
from proctor.domain.messages import EndpointProbed, Reconcile, ScoreAudit, StartAudit, TakeOn
from proctor.domain.trial import ANSWER_STAGE, Shard
from proctor.router import tasks
from proctor.router.control import pause, resume
from proctor.router.ledger.scripts import STAGE_KEYS
from proctor.router.ledger.store import Setback
from proctor.router.pools import packs
from proctor.router.stages.outcome import stage_outcome
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.records.store import AuditState
from tests.integration.router_support import PINNED, Bench, HandedOut, router_bench

#: Keys of a stage without which a shard of its plan is nowhere, or what was spent is not known.
VITAL = ("parts", "plan", "queue", "leases", "done", "dead", "spent")
#: Those that only hold how often something was tried, or what is worked out anew.
SPARE = ("attempts", "failures", "losses", "refused", "graded", "fired", "stages", "asked")


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # Small shards: one that is given up is less than a twentieth of its arm.
    monkeypatch.setattr(packs, "shard_trials", lambda *_: 4)
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        yield bench


@pytest.fixture
def client(bench: Bench) -> Iterator[Any]:
    with redis.Redis.from_url(bench.settings.ledger_url, decode_responses=True) as client:
        yield client


def half_way(bench: Bench) -> tuple[str, list[HandedOut]]:
    """An audit with shards that are answered, given up, under way and queued; returns those under way."""
    audit = bench.to_answering()
    first, second, *_ = bench.shards()
    bench.answer(first, completions="sha256:kept")
    bench.ledger.fail(audit, ANSWER_STAGE, second.shard_id, second.attempt, setback=Setback.FINAL, cause="refused")
    under_way = bench.shards()
    standing = bench.ledger.standing(audit, ANSWER_STAGE, 1)
    assert standing.queued
    assert standing.lost == ()
    return audit, under_way


def key(audit: str, name: str) -> str:
    stage = "" if name in ("stages", "asked", "spent") else f"{ANSWER_STAGE}:"
    return f"proctor:{{{audit}}}:{stage}{name}"


def answer_all(bench: Bench) -> ScoreAudit:
    """Answer whatever is handed out, to the end."""
    while not (scoring := [message for message in bench.sent if isinstance(message, ScoreAudit)]):
        shards = bench.handed_out()
        assert shards, "nothing is handed out any more"
        for shard in shards:
            bench.answer(shard, completions="sha256:c")
    return scoring[0]


def go_on(bench: Bench, audit: str) -> None:
    """Start it again, up to where it goes on."""
    assert bench.submit() == audit, "it goes on, and is no other"
    tasks.start(StartAudit(audit_id=audit))
    bench.sent.clear()
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))


def every_trial_once(bench: Bench, scoring: ScoreAudit) -> None:
    manifest = get_model(bench.artifacts, scoring.manifest, AuditManifest)
    asked = [
        trial.trial_id
        for shard in (*(one.shard for one in manifest.answered), *(one.shard for one in manifest.dead))
        for trial in get_model(bench.artifacts, shard, Shard).trials
    ]
    assert len(asked) == len(set(asked)) == 200


def test_the_keys_are_those_that_the_ledger_has() -> None:
    assert {*VITAL, *SPARE} == {*STAGE_KEYS, "stages", "asked", "spent"}


@pytest.mark.parametrize("name", VITAL)
def test_an_audit_of_which_a_key_is_gone_fails_with_that_cause_and_goes_on_when_it_is_started_again(
    bench: Bench, client: Any, name: str
) -> None:
    audit, _ = half_way(bench)
    assert client.delete(key(audit, name)) == 1
    tasks.reconcile(Reconcile())
    record = bench.records.audit(audit)
    assert record.state is AuditState.FAILED
    assert "the ledger lost keys of this audit" in record.detail
    assert name in record.detail
    go_on(bench, audit)
    every_trial_once(bench, answer_all(bench))
    spent = bench.ledger.spent(audit)
    assert 196 <= spent.trials <= 204


def test_an_audit_whose_redis_was_emptied_fails_with_that_cause_and_goes_on_when_it_is_started_again(
    bench: Bench, client: Any
) -> None:
    audit, under_way = half_way(bench)
    client.flushdb()
    bench.answer(under_way[0], completions="sha256:late")
    tasks.reconcile(Reconcile())
    record = bench.records.audit(audit)
    assert record.state is AuditState.FAILED
    assert "the ledger lost keys of this audit" in record.detail
    assert bench.shards() == [], "nothing is asked of an audit that has failed"
    go_on(bench, audit)
    every_trial_once(bench, answer_all(bench))
    assert bench.ledger.spent(audit).trials == 200


def test_an_audit_that_was_paused_until_its_keys_expired_says_so(bench: Bench, client: Any) -> None:
    audit, _ = half_way(bench)
    pause(bench.records, audit)
    bench.ledger.expire(audit, timedelta(0))
    tasks.reconcile(Reconcile())
    assert not bench.records.audit(audit).state.ended
    resume(bench.records, audit)
    tasks.take_on(TakeOn(audit_id=audit))
    assert "the ledger lost keys" in bench.records.audit(audit).detail


def test_a_loss_between_two_looks_at_a_stage_that_has_ended_does_not_score_a_part_of_it(
    bench: Bench, client: Any
) -> None:
    audit, under_way = half_way(bench)
    for shard in bench.ledger.entries(audit, ANSWER_STAGE):
        bench.ledger.record(audit, ANSWER_STAGE, shard.shard_id, "sha256:c")
    assert len(stage_outcome(bench.ledger, audit, ANSWER_STAGE).answered) == 49
    for name in ("done", "plan", "parts"):
        client.copy(key(audit, name), "kept", replace=True)
        client.delete(key(audit, name))
        with pytest.raises(StoreError, match="not all of it is in the ledger any more"):
            stage_outcome(bench.ledger, audit, ANSWER_STAGE)
        client.copy("kept", key(audit, name))
    del under_way


@pytest.mark.parametrize("name", SPARE)
def test_an_audit_goes_on_without_a_key_that_is_worked_out_anew(bench: Bench, client: Any, name: str) -> None:
    audit, under_way = half_way(bench)
    client.delete(key(audit, name))
    for shard in under_way:
        bench.answer(shard, completions="sha256:c")
    every_trial_once(bench, answer_all(bench))
    assert bench.ledger.spent(audit).trials == 196


def test_a_shard_the_number_of_whose_attempt_is_gone_is_queued_again_when_its_lease_is_over(
    bench: Bench, client: Any
) -> None:
    audit, under_way = half_way(bench)
    client.delete(key(audit, "attempts"))
    client.zadd(key(audit, "leases"), {under_way[0].shard_id: 1})
    tasks.reconcile(Reconcile())
    assert under_way[0].shard_id in {shard.shard_id for shard in bench.shards()}


def test_what_is_left_of_a_plan_that_was_lost_never_passes_for_a_part_of_the_next(bench: Bench, client: Any) -> None:
    audit, _ = half_way(bench)
    client.hset(key(audit, "done"), mapping={f"of another cut {n}": "sha256:r" for n in range(20)})
    client.delete(key(audit, "plan"))
    tasks.reconcile(Reconcile())
    go_on(bench, audit)
    bench.sent.clear()
    # Lost once more, and in numbers it would all be there: 20 shards that are nobody's, for those that are gone.
    client.delete(key(audit, "leases"))
    tasks.reconcile(Reconcile())
    assert bench.state(audit) is AuditState.FAILED
    go_on(bench, audit)
    every_trial_once(bench, answer_all(bench))


def test_a_router_that_died_before_it_noted_the_plan_that_it_laid_down_costs_nothing(
    bench: Bench, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as died:
        died.setattr("proctor.router.dispatch.Dispatcher._noted_as_planned", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bench.to_answering()
    (audit,) = (record.audit_id for record in bench.records.running_audits())
    every_trial_once(bench, answer_all(bench))
    assert bench.ledger.spent(audit).trials == 200
