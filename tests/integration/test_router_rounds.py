"""Rounds of questions to the model that rewords: stages like any other, each step of which may run twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.manifest import AuditManifest
from proctor.domain.messages import BuildVariants, Message, ScoreAudit, StartAudit, VariantsBuilt
from proctor.domain.trial import ANSWER_STAGE, Shard
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.stages import paraphrase
from proctor.router.stages.registry import ledger_stage, under_way
from proctor.runtime.artifacts.calls import calls_of
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.records.store import AuditState
from tests.integration.rewording_rounds import (
    ASKING,
    DECODING,
    ITEMS,
    REWRITER,
    WEIGHTS,
    asked,
    failed,
    finish_stage,
    probed,
    rewrites_of,
    said,
    to_rewording,
    wanted,
)
from tests.integration.router_support import Bench, HandedOut, one_by_one, router_bench


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with router_bench(tmp_path, valkey_url, monkeypatch, perturbation_config=ASKING) as bench:
        yield bench


def test_the_model_that_rewords_is_asked_at_its_own_endpoint_with_its_own_decoding(bench: Bench) -> None:
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, *ITEMS))
    assert bench.state(audit) is AuditState.PARAPHRASING
    shards = bench.shards()
    rewriter = EndpointSpec(backend="openai", url=REWRITER, served_name="rewriter", model_version=None, chat=True)
    assert {(shard.stage, shard.endpoint, shard.decoding) for shard in shards} == {("paraphrase-1", rewriter, DECODING)}
    assert [len(asked(bench, shard)) for shard in shards] == [32, 32]


def test_what_the_model_says_in_all_rounds_goes_back_and_then_the_audited_model_is_asked(bench: Bench) -> None:
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, *ITEMS))
    first = rewrites_of(bench, finish_stage(bench, silent="q3"))
    assert bench.state(audit) is AuditState.REWORDING
    bench.sent.clear()
    tasks.variants_built(wanted(bench, audit, "q3", "q4", candidate=1))
    both = rewrites_of(bench, finish_stage(bench))
    assert both.answered[: len(first.answered)] == first.answered
    assert len(list(calls_of(bench.artifacts, both))) == 66
    bench.sent.clear()
    tasks.variants_built(VariantsBuilt(audit_id=audit, variants=bench.variants(audit)))
    shards = one_by_one(bench.sent)
    assert all(shard.stage == ANSWER_STAGE and "8/v1" not in shard.endpoint.url for shard in shards)
    (scoring,) = finish_stage(bench)
    assert isinstance(scoring, ScoreAudit)
    manifest = get_model(bench.artifacts, scoring.manifest, AuditManifest)
    trials = [t for row in manifest.answered for t in get_model(bench.artifacts, row.shard, Shard).trials]
    assert {trial.stage for trial in trials} == {ANSWER_STAGE}
    assert len(trials) == 200
    assert manifest.paraphraser is not None
    assert manifest.paraphraser.plain() == {"model": "org/rewriter", "digests": [WEIGHTS], "calls": 66, "failed": 1}


def test_a_long_list_of_prompts_is_planned_a_slice_after_another(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paraphrase, "CHUNK_ITEMS", 10)
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, *ITEMS))
    # A window of two is handed out, and two windows are queued behind it.
    assert bench.ledger.parts(audit, "paraphrase-1") == (6, 7)
    assert bench.ledger.progress(audit, "paraphrase-1").planned == 64
    said_of = [trial.item_id for trial, _ in calls_of(bench.artifacts, rewrites_of(bench, finish_stage(bench)))]
    assert said_of == list(ITEMS)


def test_a_model_whose_rewordings_are_all_in_the_library_is_not_contacted(bench: Bench) -> None:
    audit = bench.submit()
    sent: list[Message] = []
    steps: tuple[Callable[[], None], ...] = (
        lambda: tasks.start(StartAudit(audit_id=audit)),
        lambda: tasks.endpoint_probed(probed(audit)),
        lambda: tasks.variants_built(VariantsBuilt(audit_id=audit, variants=bench.variants(audit))),
    )
    for step in steps:
        step()
        sent += bench.sent
    (scoring,) = finish_stage(bench)
    assert not any(REWRITER in message.model_dump_json() for message in sent)
    assert isinstance(scoring, ScoreAudit)
    facts = get_model(bench.artifacts, scoring.manifest, AuditManifest).paraphraser
    assert facts is not None
    assert (facts.calls, facts.failed, facts.digests) == (0, 0, ())


def test_every_message_of_a_round_twice_changes_nothing(bench: Bench) -> None:
    audit = to_rewording(bench)
    rounds = [wanted(bench, audit, *ITEMS), wanted(bench, audit, "q1", candidate=1)]
    shards: list[HandedOut] = []
    for number, prompts in enumerate(rounds, start=1):
        for _ in range(2):
            tasks.variants_built(prompts)
        built = 0
        while messages := list(bench.sent):
            bench.sent.clear()
            for message in messages:
                built += isinstance(message, BuildVariants)
                for shard in one_by_one([message]):
                    shards.append(shard)
                    for _ in range(2):
                        tasks.shards_answered(said(bench, shard))
        assert built == 1
        assert view(bench.records, audit).inputs.rounds == number
    assert len(shards) == len({shard.shard_id for shard in shards}) == 3


def test_prompts_of_an_earlier_round_that_arrive_again_are_not_asked_again(bench: Bench) -> None:
    audit = to_rewording(bench)
    first = wanted(bench, audit, *ITEMS)
    tasks.variants_built(first)
    finish_stage(bench)
    bench.sent.clear()
    tasks.variants_built(first)
    assert bench.state(audit) is AuditState.REWORDING
    assert bench.sent == []
    tasks.variants_built(wanted(bench, audit, "q5", "q100"))
    (shard,) = bench.shards()
    assert asked(bench, shard) == {"q100"}, "of new prompts among old ones only the new"


def test_an_answer_of_a_round_that_has_ended_changes_nothing_in_the_next(bench: Bench) -> None:
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, "q1"))
    (first,) = bench.shards()
    tasks.shards_answered(said(bench, first))
    before = bench.ledger.done(audit, "paraphrase-1")
    bench.sent.clear()
    tasks.variants_built(wanted(bench, audit, "q1", candidate=1))
    (second,) = bench.shards()
    for late in (said(bench, first, silent="*"), failed(first), failed(first, retryable=False)):
        tasks.shards_answered(late)
    assert bench.sent == []
    assert bench.ledger.done(audit, "paraphrase-1") == before
    assert bench.ledger.dead(audit, "paraphrase-1") == {}
    assert bench.ledger.done(audit, "paraphrase-2") == {}
    tasks.shards_answered(said(bench, second))
    assert len(rewrites_of(bench, bench.sent).answered) == 2


def test_a_worker_that_ends_a_round_too_late_does_not_undo_the_next(bench: Bench) -> None:
    audit = to_rewording(bench)
    tasks.variants_built(wanted(bench, audit, "q1"))
    seen = view(bench.records, audit)
    stage = under_way(seen)
    assert stage is not None
    finish_stage(bench)
    tasks.variants_built(wanted(bench, audit, "q1", candidate=1))
    bench.sent.clear()
    tasks._dispatcher()._finish(seen, stage)
    assert bench.sent == []
    assert bench.state(audit) is AuditState.PARAPHRASING
    assert ledger_stage(view(bench.records, audit)) == "paraphrase-2"
