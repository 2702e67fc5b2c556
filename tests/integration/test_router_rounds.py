"""Rounds of questions to the model that rewords: stages like any other, each step of which may run twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from proctor.cli.main import main
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import BadInputError, ExitCode, StoreError
from proctor.domain.manifest import AuditManifest, CompletionSet, PromptSet, RewriteSet
from proctor.domain.messages import (
    BuildVariants,
    EndpointProbed,
    Message,
    ProbeEndpoint,
    Reconcile,
    ScoreAudit,
    ShardsAnswered,
    StartAudit,
    VariantsBuilt,
)
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.domain.trial import ANSWER_STAGE, PARAPHRASE_STAGE, Arm, Completion, Decoding, Shard, Trial
from proctor.router import rewrites, tasks
from proctor.router.audit import view
from proctor.router.dispatch import Dispatcher
from proctor.router.ledger.store import MAX_FAILURES
from proctor.router.stages import paraphrase
from proctor.router.stages.registry import ledger_stage, under_way
from proctor.router.submit.endpoints import named_endpoints, resolve_paraphraser
from proctor.router.submit.gathering import gather
from proctor.router.submit.submission import submit
from proctor.runtime.artifacts.calls import calls_of
from proctor.runtime.artifacts.store import get_model, put_model
from proctor.runtime.records.store import AuditState
from tests.integration.router_support import PINNED, Bench, HandedOut, answered, one_by_one, router_bench

REWRITER = "http://127.0.0.1:8/v1"
WEIGHTS = "sha256:" + "ef" * 32
DECODING = Decoding(temperature=0.7, max_tokens=99)
ITEMS = tuple(f"q{n}" for n in range(64))
ASKING = {
    "perturbation_strategy": "paraphrase_llm",
    "paraphrase_model": "org/rewriter",
    "paraphraser": {"endpoint": REWRITER},
}


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with router_bench(tmp_path, valkey_url, monkeypatch, perturbation_config=ASKING) as bench:
        yield bench


def probed(audit: str) -> EndpointProbed:
    return EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test")


def to_rewording(bench: Bench) -> str:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(probed(audit))
    bench.sent.clear()
    return audit


def wanted(bench: Bench, audit: str, *items: str, candidate: int = 0) -> VariantsBuilt:
    """The perturbation service's answer that this candidate of these items must be asked for first."""
    trials = tuple(
        Trial(stage=PARAPHRASE_STAGE, arm=Arm.PERTURBED, item_id=item, replicate=candidate, prompt=f"Reword {item}")
        for item in items
    )
    return VariantsBuilt(
        audit_id=audit, prompts=put_model(bench.artifacts, PromptSet(trials=trials, decoding=DECODING))
    )


def asked(bench: Bench, shard: HandedOut) -> set[str]:
    return {trial.item_id for trial in get_model(bench.artifacts, shard.shard, Shard).trials}


def said(bench: Bench, shard: HandedOut, *, silent: str | None = None, error: str = "HTTP 400") -> ShardsAnswered:
    """An inference worker's answer; to prompts of `silent` items (`*`: all) there was none."""
    completions = tuple(
        Completion(trial_id=trial.trial_id, error=error, finish_reason="error")
        if silent in ("*", trial.item_id)
        else Completion(trial_id=trial.trial_id, text="reworded", finish_reason="stop", model_digest=WEIGHTS)
        for trial in get_model(bench.artifacts, shard.shard, Shard).trials
    )
    return answered(shard, completions=put_model(bench.artifacts, CompletionSet(completions=completions)))


def failed(shard: HandedOut, *, retryable: bool = True) -> ShardsAnswered:
    return answered(shard, error="connection refused", retryable=retryable)


def finish_stage(bench: Bench, *, silent: str | None = None) -> list[Message]:
    """Answer everything that is asked; returns what is sent once no shard is left."""
    while shards := one_by_one(bench.sent):
        bench.sent.clear()
        for shard in shards:
            tasks.shards_answered(said(bench, shard, silent=silent))
    return list(bench.sent)


def rewrites_of(bench: Bench, messages: list[Message]) -> RewriteSet:
    (message,) = messages
    assert isinstance(message, BuildVariants)
    assert message.rewrites is not None
    return get_model(bench.artifacts, message.rewrites, RewriteSet)


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


def test_prompts_for_a_suite_that_asks_no_model_end_the_audit(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        audit = to_rewording(bench)
        tasks.variants_built(wanted(bench, audit, "q1"))
        assert bench.state(audit) is AuditState.FAILED
        assert "submitted without one" in bench.records.audit(audit).detail


def test_a_strategy_that_asks_a_model_without_one_is_refused_before_anything_is_on_record(bench: Bench) -> None:
    nameless = bench.suite.perturbation.model_copy(update={"paraphrase_model": None})
    suite = bench.suite.model_copy(update={"perturbation": nameless})
    with pytest.raises(BadInputError, match="'paraphrase_llm' needs paraphrase_model"):
        submit(gather(suite, bench.home, bench.settings.bundle), bench.settings, bench.records, bench.artifacts)
    assert bench.records.running_audits() == []


def test_audit_run_refuses_such_a_suite_before_it_starts_anything(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = bench.suite.model_dump(mode="json", by_alias=True, exclude_none=True)
    del suite["perturbation_config"]["paraphrase_model"]
    path = bench.home / "suite.json"
    path.write_text(json.dumps(suite))
    assert main(["audit", "run", str(path), "--home", str(bench.home / "stack")]) == ExitCode.BAD_INPUT
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "needs paraphrase_model" in captured.err
    assert not (bench.home / "stack").exists()


def test_the_rewording_models_endpoint_is_its_own_else_the_operators_of_its_name_else_the_audited_models(
    bench: Bench,
) -> None:
    def resolved(endpoints: dict[str, str], **changes: str | None) -> EndpointSpec | None:
        section = bench.suite.perturbation.paraphraser.model_copy(update=changes)
        perturbation = bench.suite.perturbation.model_copy(update={"paraphraser": section})
        suite = bench.suite.model_copy(update={"perturbation": perturbation})
        listed = {name: OperatorEndpoint(url=url) for name, url in endpoints.items()}
        return resolve_paraphraser(suite, bench.settings.model_copy(update={"endpoints": listed}))

    named = {"org/rewriter": "grpc://triton:8001", "gpu": "http://gpu/infer"}
    own, by_id = resolved(named), resolved(named, endpoint="gpu", version=WEIGHTS, served_name="big")
    operators, audited = resolved(named, endpoint=None, chat_template="none"), resolved({}, endpoint=None)
    assert own == EndpointSpec(backend="openai", url=REWRITER, served_name="rewriter", model_version=None, chat=True)
    assert by_id == EndpointSpec(
        backend="infer",
        url="http://gpu/infer",
        served_name="big",
        model_version=WEIGHTS,
        chat=True,
        gets_keys=True,
    )
    assert operators is not None
    assert (operators.backend, operators.url, operators.chat) == ("triton", "grpc://triton:8001", False)
    assert audited is not None
    assert (audited.url, audited.served_name) == (bench.suite.model.endpoint, "rewriter")
    with pytest.raises(BadInputError, match=r"perturbation_config\.paraphraser\.endpoint is 'nobody'"):
        resolved(named, endpoint="nobody")


def test_an_endpoint_of_the_rewording_model_counts_among_those_that_a_suite_names(bench: Bench) -> None:
    assert named_endpoints(bench.suite) == (bench.suite.model.endpoint, REWRITER)
