"""Rounds in which the model that rewords gives no answer, to some prompts or to none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.domain.messages import BuildVariants, StartAudit, VariantsBuilt
from proctor.router import rewrites, tasks
from proctor.router.ledger.store import MAX_FAILURES
from proctor.router.stages import paraphrase
from proctor.runtime.artifacts.calls import calls_of
from proctor.runtime.records.store import AuditState
from tests.integration.rewording_rounds import (
    ASKING,
    ITEMS,
    REWRITER,
    asked,
    failed,
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


def test_a_rewording_model_that_is_down_fails_the_audit_and_only_what_is_missing_is_asked_again(bench: Bench) -> None:
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, *ITEMS))
    kept = None
    attempts = 0
    while shards := bench.handed_out():
        for shard in shards:
            kept = kept or shard.shard_id
            attempts += shard.shard_id != kept
            tasks.shards_answered(said(bench, shard) if shard.shard_id == kept else failed(shard))
    assert attempts == MAX_FAILURES
    assert bench.state(audit) is AuditState.FAILED
    assert bench.records.audit(audit).detail == (
        f"the rewording model org/rewriter at {REWRITER}: 32 of 64 trials got no answer; the last failure: "
        "connection refused"
    )
    assert bench.submit() == audit
    tasks.start(StartAudit(audit_id=audit))
    bench.sent.clear()
    tasks.endpoint_probed(probed(audit))
    (again,) = bench.shards()
    assert again.shard_id != kept
    tasks.shards_answered(said(bench, again))
    assert len(rewrites_of(bench, bench.sent).answered) == 2


def test_a_model_that_answers_no_prompt_at_all_fails_the_audit_with_its_words_and_is_asked_again(bench: Bench) -> None:
    audit = to_rewording(bench)
    prompts = wanted(bench, audit, *ITEMS)
    tasks.variants_built(prompts)
    while shards := bench.shards():
        for shard in shards:
            tasks.shards_answered(said(bench, shard, silent="*", error="401: wants another API key"))
    assert bench.state(audit) is AuditState.FAILED
    assert "answered none of 64 prompts; the first failure: 401: wants another" in bench.records.audit(audit).detail
    bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    bench.sent.clear()
    tasks.endpoint_probed(probed(audit))
    (build,) = bench.take(BuildVariants)
    assert isinstance(build, BuildVariants)
    assert build.rewrites is None
    tasks.variants_built(prompts)
    assert set().union(*(asked(bench, shard) for shard in bench.shards())) == set(ITEMS)


def test_an_audit_that_found_too_few_rewordings_asks_again_for_those_that_failed(bench: Bench) -> None:
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, *ITEMS))
    finish_stage(bench, silent="q3")
    tasks.variants_built(VariantsBuilt(audit_id=audit, error="too few items got a variant"))
    assert bench.state(audit) is AuditState.FAILED
    bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    bench.sent.clear()
    tasks.endpoint_probed(probed(audit))
    kept = rewrites_of(bench, bench.sent)
    assert {trial.item_id for trial, _ in calls_of(bench.artifacts, kept)} == set(ITEMS) - {"q3"}
    bench.sent.clear()
    tasks.variants_built(wanted(bench, audit, *ITEMS))
    (shard,) = bench.shards()
    assert asked(bench, shard) == {"q3"}


def test_a_rewording_that_is_given_up_counts_as_asked_and_the_audit_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small shards, so that one is less than a twentieth of the round.
    monkeypatch.setattr(paraphrase, "REWRITE_SHARD_TRIALS", 2)
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, *ITEMS))
    while shards := one_by_one(bench.sent):
        bench.sent.clear()
        for shard in shards:
            poison = "q0" in asked(bench, shard)
            tasks.shards_answered(failed(shard, retryable=False) if poison else said(bench, shard))
    found = rewrites_of(bench, bench.sent)
    assert [dead.cause for dead in found.dead] == ["connection refused"]
    assert len(found.answered) == 31
    bench.sent.clear()
    tasks.variants_built(wanted(bench, audit, "q0"))
    assert bench.sent == []
    facts = rewrites.facts(bench.artifacts, "m", found)
    assert (facts.calls, facts.failed) == (64, 2)
