"""Rounds of questions to the model that rewords that were interrupted, or whose messengers died."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from proctor.domain.errors import StoreError
from proctor.domain.messages import (
    BuildVariants,
    Message,
    ProbeEndpoint,
    Reconcile,
    ScoreAudit,
    StartAudit,
    VariantsBuilt,
)
from proctor.router import tasks
from proctor.router.dispatch import Dispatcher
from proctor.runtime.records.store import AuditState
from tests.integration.rewording_rounds import (
    ASKING,
    ITEMS,
    finish_stage,
    probed,
    rewrites_of,
    said,
    to_rewording,
    wanted,
)
from tests.integration.router_support import Bench, one_by_one, router_bench


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with router_bench(tmp_path, valkey_url, monkeypatch, perturbation_config=ASKING) as bench:
        yield bench


def test_starting_again_in_the_middle_of_a_round_asks_only_what_is_missing(bench: Bench) -> None:
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, *ITEMS))
    first, second = bench.shards()
    tasks.shards_answered(said(bench, first))
    assert bench.submit() == audit
    tasks.start(StartAudit(audit_id=audit))
    bench.sent.clear()
    tasks.endpoint_probed(probed(audit))
    assert bench.state(audit) is AuditState.PARAPHRASING
    (again,) = one_by_one(bench.sent)
    assert again.shard_id == second.shard_id
    bench.sent.clear()
    tasks.shards_answered(said(bench, again))
    assert len(rewrites_of(bench, bench.sent).answered) == 2


def test_an_answer_that_arrives_while_the_audit_is_started_again_is_kept(bench: Bench) -> None:
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, "q1"))
    (shard,) = bench.shards()
    tasks.start(StartAudit(audit_id=audit))
    tasks.shards_answered(said(bench, shard))
    bench.sent.clear()
    tasks.endpoint_probed(probed(audit))
    assert len(rewrites_of(bench, bench.sent).answered) == 1


def test_starting_again_between_two_rounds_keeps_what_was_said(bench: Bench) -> None:
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, *ITEMS))
    before = rewrites_of(bench, finish_stage(bench))
    tasks.start(StartAudit(audit_id=audit))
    bench.sent.clear()
    tasks.endpoint_probed(probed(audit))
    assert rewrites_of(bench, bench.sent) == before


def test_an_overdue_rewording_is_asked_of_another_worker(bench: Bench) -> None:
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, "q1"))
    (lost,) = bench.shards()
    with redis.Redis.from_url(bench.settings.ledger_url) as client:
        client.zadd(f"proctor:{{{audit}}}:paraphrase-1:leases", {lost.shard_id: 0})
    tasks.reconcile(Reconcile())
    (again,) = bench.shards()
    assert (again.shard_id, again.attempt, again.endpoint) == (lost.shard_id, 2, lost.endpoint)
    tasks.shards_answered(said(bench, again))
    assert bench.state(audit) is AuditState.REWORDING


def test_a_round_whose_messenger_died_is_finished_by_the_reconciler(bench: Bench) -> None:
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, "q1"))
    (shard,) = bench.shards()
    completions = said(bench, shard).answers[0].completions
    assert completions is not None
    bench.ledger.record(audit, shard.stage, shard.shard_id, completions)  # and then the worker was killed
    for built in (1, 0):
        tasks.reconcile(Reconcile())
        assert len(bench.take(BuildVariants)) == built


def test_a_request_whose_messenger_died_is_sent_by_the_reconciler_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    def dies_in(step: Callable[[], object], waited_for: type[Message]) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Dispatcher, "ask", killed)
            with pytest.raises(KeyboardInterrupt):
                step()
        assert bench.take(waited_for) == []
        for sent in (1, 0):
            tasks.reconcile(Reconcile())
            assert len(bench.take(waited_for)) == sent

    audit = bench.submit()
    dies_in(lambda: tasks.start(StartAudit(audit_id=audit)), ProbeEndpoint)
    dies_in(lambda: tasks.endpoint_probed(probed(audit)), BuildVariants)
    tasks.variants_built(wanted(bench, audit, "q1"))
    (shard,) = bench.shards()
    dies_in(lambda: tasks.shards_answered(said(bench, shard)), BuildVariants)
    tasks.variants_built(VariantsBuilt(audit_id=audit, variants=bench.variants(audit)))
    dies_in(lambda: finish_stage(bench), ScoreAudit)


def test_a_round_that_was_begun_and_not_planned_is_planned_by_the_reconciler(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = to_rewording(bench)

    def gone(*_: object, **__: object) -> bool:
        raise StoreError("the ledger did not answer")

    with monkeypatch.context() as patch:
        patch.setattr(bench.ledger, "plan", gone)
        with pytest.raises(StoreError):
            tasks.variants_built(wanted(bench, audit, "q1"))
    assert bench.sent == []
    tasks.reconcile(Reconcile())
    assert len(bench.shards()) == 1
