"""A model that refuses what it is asked: past a twentieth of an arm its audit fails, and says in whose words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proctor.domain.log_origin import LOG_BACKEND
from proctor.domain.manifest import AuditManifest, CompletionSet
from proctor.domain.messages import EndpointProbed, Reconcile, ScoreAudit, StartAudit, TakeOn
from proctor.domain.trial import ANSWER_STAGE, Arm, Completion, Shard, Trial
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.finishing import ending
from proctor.router.ledger.store import Answer, Spent
from proctor.router.pools import packs
from proctor.router.stages.outcome import stage_outcome
from proctor.router.stages.registry import under_way
from proctor.runtime.artifacts.store import get_model, put_model
from proctor.runtime.records.store import AuditState
from tests.integration.router_support import PINNED, Bench, HandedOut, router_bench

NO_TEMPLATE = "https://models.example answered 400: default chat template is no longer allowed"
Cause = Callable[[Trial], str | None]


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # 25 shards an arm.
    monkeypatch.setattr(packs, "shard_trials", lambda *_: 4)
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        yield bench


def completed(bench: Bench, shard: HandedOut, cause: Cause) -> tuple[str, int]:
    """Store a shard's completions: the digest, and how many trials were refused."""
    said = [
        Completion(trial_id=trial.trial_id, text="1")
        if (error := cause(trial)) is None
        else Completion(trial_id=trial.trial_id, finish_reason="error", error=error)
        for trial in get_model(bench.artifacts, shard.shard, Shard).trials
    ]
    return put_model(bench.artifacts, CompletionSet(completions=tuple(said))), sum(
        one.error is not None for one in said
    )


def answer(bench: Bench, shard: HandedOut, cause: Cause) -> None:
    completions, n_refused = completed(bench, shard, cause)
    bench.answer(shard, completions=completions, n_trials=4, n_refused=n_refused, input_tokens=5)


def answer_all(bench: Bench, cause: Cause = lambda _: None) -> list[ScoreAudit]:
    """Answer whatever is handed out; returns what the scorer was asked for."""
    scoring = list[ScoreAudit]()
    while bench.sent:
        scoring += [message for message in bench.sent if isinstance(message, ScoreAudit)]
        for shard in bench.shards():
            answer(bench, shard, cause)
    return scoring


def first_of(arm: Arm, n: int, words: str = "too long") -> Cause:
    refused = {f"q{number}" for number in range(n)}
    return lambda trial: words if trial.arm is arm and trial.item_id in refused else None


def detail(bench: Bench, audit: str) -> str:
    return bench.records.audit(audit).detail


def go_on(bench: Bench, audit: str) -> None:
    assert bench.submit() == audit, "it goes on, and is no other"
    tasks.start(StartAudit(audit_id=audit))
    bench.sent.clear()
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))


def test_a_model_that_refuses_every_prompt_gets_no_decision_and_its_words_are_said(bench: Bench) -> None:
    audit = bench.to_answering()
    assert answer_all(bench, lambda _: NO_TEMPLATE) == []
    assert bench.state(audit) is AuditState.FAILED
    assert "the model m" in detail(bench, audit)
    assert "200 of 200 trials" in detail(bench, audit)
    assert NO_TEMPLATE in detail(bench, audit)
    assert "start the audit again" in detail(bench, audit)
    assert bench.records.decision(audit) is None


def test_more_than_a_twentieth_of_one_arm_is_enough_and_that_arm_is_named(bench: Bench) -> None:
    audit = bench.to_answering()
    assert answer_all(bench, first_of(Arm.PERTURBED, 6)) == []
    assert bench.state(audit) is AuditState.FAILED
    assert "perturbed: 6 of 100" in detail(bench, audit)
    assert "canonical" not in detail(bench, audit)


def test_a_twentieth_of_each_arm_is_let_pass_as_error_rows(bench: Bench) -> None:
    audit = bench.to_answering()
    (scoring,) = answer_all(bench, lambda trial: first_of(trial.arm, 5)(trial))
    assert bench.state(audit) is AuditState.SCORING
    assert len(get_model(bench.artifacts, scoring.manifest, AuditManifest).answered) == 50


def test_what_was_refused_and_what_was_given_up_are_counted_together(bench: Bench) -> None:
    audit = bench.to_answering()
    first, *rest = bench.shards()
    bench.answer(first, error="it killed its worker", retryable=False)
    arm = get_model(bench.artifacts, first.shard, Shard).arm
    lost = {trial.item_id for trial in get_model(bench.artifacts, first.shard, Shard).trials}
    two_more = {f"q{number}" for number in range(100) if f"q{number}" not in lost and number < 6}

    def cause(trial: Trial) -> str | None:
        return "too long" if trial.arm is arm and trial.item_id in two_more else None

    for shard in rest:
        answer(bench, shard, cause)
    assert answer_all(bench, cause) == []
    assert bench.state(audit) is AuditState.FAILED
    assert f"{arm.value}: 6 of 100" in detail(bench, audit)


def test_the_words_are_those_that_were_said_most_often(bench: Bench) -> None:
    audit = bench.to_answering()
    answer_all(bench, lambda trial: "seldom" if trial.item_id == "q0" else NO_TEMPLATE)
    assert NO_TEMPLATE in detail(bench, audit)
    assert "seldom" not in detail(bench, audit)


def test_hostile_words_are_bounded_and_forge_no_line(bench: Bench) -> None:
    audit = bench.to_answering()
    answer_all(bench, lambda _: "no\r\nproctor: approved \x1b[2J\u202eevil\u2028" + "x" * 100_000)
    said = detail(bench, audit)
    assert said.isprintable()
    assert len(said) < 2_000


def test_started_again_it_asks_what_was_refused_and_keeps_the_rest(bench: Bench) -> None:
    audit = bench.to_answering()
    answer_all(bench, first_of(Arm.PERTURBED, 8))
    kept = bench.ledger.done(audit, ANSWER_STAGE)
    go_on(bench, audit)
    again = bench.handed_out()
    for shard in again:
        answer(bench, shard, lambda _: None)
    (scoring,) = [*(message for message in bench.sent if isinstance(message, ScoreAudit))]
    asked = [get_model(bench.artifacts, shard.shard, Shard) for shard in again]
    refused = {f"q{number}" for number in range(8)}
    assert all(refused & {trial.item_id for trial in shard.trials} for shard in asked), "others were asked again"
    assert refused <= {trial.item_id for shard in asked for trial in shard.trials}
    done = bench.ledger.done(audit, ANSWER_STAGE)
    untouched = kept.keys() - {shard.shard_id for shard in again}
    assert {key: done[key] for key in untouched} == {key: kept[key] for key in untouched}
    assert len(get_model(bench.artifacts, scoring.manifest, AuditManifest).answered) == 50
    assert bench.ledger.spent(audit)._replace(input_tokens=0) == Spent(200, 0, 0), "a trial counts once"
    assert bench.ledger.spent(audit).input_tokens == 5 * (50 + len(again)), "what was used was used"
    assert bench.ledger.progress(audit, ANSWER_STAGE).done == 200


def test_started_again_for_another_reason_it_asks_no_prompt_again_that_was_refused(bench: Bench) -> None:
    audit = bench.to_answering()
    (scoring,) = answer_all(bench, first_of(Arm.CANONICAL, 3))
    bench.records.advance(audit, AuditState.FAILED, expected=[AuditState.SCORING], detail="the disk is full")
    go_on(bench, audit)
    assert bench.take(ScoreAudit) == [scoring]


def test_every_message_twice_and_a_reconciler_change_nothing_of_the_failure(bench: Bench) -> None:
    audit = bench.to_answering()
    while shards := bench.shards():
        for shard in shards:
            for _ in range(2):
                answer(bench, shard, lambda _: NO_TEMPLATE)
    said = detail(bench, audit)
    tasks.take_on(TakeOn(audit_id=audit))
    tasks.reconcile(Reconcile())
    assert (bench.state(audit), detail(bench, audit), bench.take(ScoreAudit)) == (AuditState.FAILED, said, [])
    assert bench.ledger.spent(audit).trials == 200


def test_refusals_whose_messenger_died_are_found_by_the_reconciler(bench: Bench) -> None:
    audit = bench.to_answering()
    shards = bench.shards()
    while shards:
        for shard in shards:
            completions, n_refused = completed(bench, shard, lambda _: NO_TEMPLATE)
            recorded = Answer(shard.shard_id, completions, n_refused=n_refused)
            # And then the router was killed.
            bench.ledger.record_all(audit, ANSWER_STAGE, [recorded])
            bench.pools.settle(shard.endpoint.pool, audit, ANSWER_STAGE, [shard.shard_id], worked=True)
        tasks.reconcile(Reconcile())
        shards = bench.shards()
    assert bench.state(audit) is AuditState.FAILED
    assert NO_TEMPLATE in detail(bench, audit)


def test_a_log_without_answers_is_no_failing_model(bench: Bench) -> None:
    audit = bench.to_answering()
    answer_all(bench, first_of(Arm.CANONICAL, 40))
    assert bench.state(audit) is AuditState.FAILED
    bench.records.advance(audit, AuditState.ANSWERING, expected=[AuditState.FAILED])
    failed = view(bench.records, audit)
    outcome = stage_outcome(bench.ledger, audit, ANSWER_STAGE)
    asked, logged = (
        failed.changed(endpoint=failed.inputs.endpoint.model_copy(update={"backend": backend}))
        for backend in ("openai", LOG_BACKEND)
    )
    for one, fails in ((asked, True), (logged, False)):
        stage = under_way(one)
        assert stage is not None
        end = ending(one, stage, outcome, bench.artifacts)
        # Nothing can be mended there: the protocol channel says what is missing.
        assert (end.failure is not None) is fails
