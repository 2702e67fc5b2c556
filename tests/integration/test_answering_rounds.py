"""Solvers asked between rewording and answering: by a real router on real stores, each step of which may run twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from proctor.domain.errors import BadInputError
from proctor.domain.manifest import AuditManifest, VariantSet
from proctor.domain.messages import (
    AuditScored,
    BuildVariants,
    DecisionWritten,
    EndpointProbed,
    Message,
    Reconcile,
    ScoreAudit,
    StartAudit,
    TakeOn,
    VariantsBuilt,
)
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.domain.private_benchmarks import PrivateBenchmarks
from proctor.domain.suite import Suite
from proctor.domain.trial import ANSWER_STAGE, Arm, Completion, Decoding, Shard, Trial
from proctor.perturbation.encoder import Vectors
from proctor.perturbation.library.store import VariantLibrary
from proctor.perturbation.tasks import variants_for
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.barring import Barrier
from proctor.router.budget import cost_of
from proctor.router.stages.registry import pool_of, under_way
from proctor.runtime.artifacts.chunks import StoredVariants, get_items, put_variants
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.records.store import AuditState
from tests.integration.router_support import PINNED, Bench, one_by_one, router_bench
from tests.integration.test_router_transmission import Says, finish, refuses, said
from tests.solved_wordings import knows, rewordings

N_ITEMS = 100
BAD = frozenset({"q7", "q70"})
BAD_CONTROL = frozenset({"c3"})
SAMPLES = 4
FIRST, SECOND = "http://127.0.0.1:7/v1", "http://127.0.0.1:8/v1"
#: Prompts of a solver: each item and its two rewordings.
PROMPTS = SAMPLES * N_ITEMS * 3
Opened = Callable[..., AbstractContextManager[Bench]]


@pytest.fixture
def opened(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Opened:
    @contextmanager
    def open_bench(*solvers: str, priced: bool = False, control: int = 0, **check: Any) -> Iterator[Bench]:
        named = [{"model": f"org/{name}", "endpoint": name} for name in solvers or ("first", "second")]
        perturbation = {
            "perturbation_strategy": "wordings",
            "answering_check": {"solvers": named, "samples": SAMPLES, "alpha": 0.1, **check},
        }
        sections: dict[str, Any] = {"perturbation_config": perturbation}
        if control:
            rows = [{"id": f"c{n}", "question": f"What is {n + 1_000} plus one?", "answer": str(n + 1_001)}
                    for n in range(control)]  # fmt: skip
            (tmp_path / "control.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            sections["control_config"] = {"path": "control.jsonl"}
        with router_bench(tmp_path, valkey_url, monkeypatch, **sections) as bench:
            price = {"input_price_per_million": 2.0, "output_price_per_million": 4.0} if priced else {}
            endpoints = {"first": OperatorEndpoint(url=FIRST, **price), "second": OperatorEndpoint(url=SECOND)}
            bench.settings = bench.settings.model_copy(update={"endpoints": endpoints})
            yield bench

    return open_bench


@pytest.fixture
def bench(opened: Opened) -> Iterator[Bench]:
    with opened() as bench:
        yield bench


class NoEncoder:
    """Nothing is embedded where variants are only checked."""

    name, digest, fingerprint = "none", "none", "none"

    def encode(self, texts: object) -> Vectors:
        raise AssertionError("a check embeds nothing")


def proposed(bench: Bench, audit: str) -> VariantsBuilt:
    """The perturbation service's answer: two rewordings of each item, of which the bad ask something else."""
    inputs = view(bench.records, audit).inputs

    def made(items: str) -> str:
        variants = tuple(
            variant
            for item in get_items(bench.artifacts, items).items
            for variant in rewordings(item, bad=item.item_id in BAD | BAD_CONTROL)
        )
        return put_variants(bench.artifacts, items, VariantSet(variants=variants, rejections=(), encoder="none"))

    control = None if inputs.control is None else made(inputs.control)
    return VariantsBuilt(audit_id=audit, variants=made(inputs.items), control=control)


def to_check(bench: Bench) -> str:
    """An audit whose rewordings are there, and of which the first solver is asked."""
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
    bench.sent.clear()
    tasks.variants_built(proposed(bench, audit))
    return audit


def solves(trial: Trial) -> Completion:
    return Completion(
        trial_id=trial.trial_id, text=knows(trial), finish_reason="stop", model_digest="sha256:" + "5" * 64
    )


def only(messages: list[Message], kind: type[BuildVariants]) -> BuildVariants:
    (message,) = messages
    assert isinstance(message, kind)
    return message


def checked(bench: Bench) -> VariantsBuilt:
    """What the perturbation service answers to the request that the router has sent."""
    request = only(bench.sent, BuildVariants)
    bench.sent.clear()
    return variants_for(request, bench.settings, bench.records, bench.artifacts, NoEncoder())


def through_check(bench: Bench) -> str:
    audit = to_check(bench)
    for number in range(len(view(bench.records, audit).inputs.solvers)):
        finish(bench, f"check-{number + 1}-1", solves)
    tasks.variants_built(checked(bench))
    return audit


def test_every_solver_answers_every_wording_as_often_as_the_suite_says(bench: Bench) -> None:
    audit = to_check(bench)
    asked = []
    for stage, url, name in (("check-1-1", FIRST, "first"), ("check-2-1", SECOND, "second")):
        assert bench.state(audit) is AuditState.ASKING
        shards = [shard for shard in one_by_one(bench.sent) if shard.stage == stage]
        assert {(shard.endpoint.url, shard.endpoint.served_name, shard.decoding) for shard in shards} == {
            (url, name, Decoding(temperature=0.7))
        }
        asked += (trials := finish(bench, stage, solves))
        assert len(trials) == PROMPTS
        by_wording = {(trial.item_id, trial.variant_id) for trial in trials}
        assert len(by_wording) * SAMPLES == PROMPTS
    assert len({trial.trial_id for trial in asked}) == 2 * PROMPTS
    request = only(bench.sent, BuildVariants)
    assert request.check is not None
    assert (len(request.check.answers), request.check.extractor, request.version) == (2, "auto", 2)
    assert bench.state(audit) is AuditState.REWORDING


def test_the_audited_model_is_asked_what_is_not_held_and_the_manifest_says_what_was(bench: Bench) -> None:
    audit = through_check(bench)
    assert bench.state(audit) is AuditState.ANSWERING
    answers = finish(bench, ANSWER_STAGE)
    assert len(answers) == 3 * N_ITEMS - len(BAD)
    assert not any("plus two" in trial.prompt for trial in answers)
    (scoring,) = bench.sent
    assert isinstance(scoring, ScoreAudit)
    manifest = get_model(bench.artifacts, scoring.manifest, AuditManifest)
    variants = StoredVariants(bench.artifacts, manifest.variants)
    found = variants.summary().check
    assert found is not None
    assert (found.held, [one.item_id for one in found.listed]) == (len(BAD), sorted(BAD))
    assert [solver.calls for solver in found.solvers] == [PROMPTS, PROMPTS]
    rule = manifest.suite.perturbation.answering_check
    assert rule is not None
    held = VariantLibrary(bench.records).held([one.variant_id for one in found.listed], rule.rule_digest)
    assert {one.item_id for one in held.values()} == BAD


def test_rewordings_of_control_items_are_checked_by_the_same_solvers(opened: Opened) -> None:
    n_control = 30
    with opened(control=n_control) as bench:
        audit = to_check(bench)
        for number in (1, 2):
            asked = finish(bench, f"check-{number}-1", solves)
            assert len(asked) == SAMPLES * 3 * (N_ITEMS + n_control)
        request = only(bench.sent, BuildVariants)
        assert request.check is not None
        assert request.version == 4
        assert request.check.control == view(bench.records, audit).inputs.proposed_control
        tasks.variants_built(checked(bench))
        answers = finish(bench, ANSWER_STAGE)
        # One rewording of each bad item is held, and the item keeps the other.
        assert len(answers) == 3 * (N_ITEMS + n_control) - len(BAD | BAD_CONTROL)
        of_control = [trial for trial in answers if trial.arm is Arm.CONTROL_PERTURBED]
        assert len(of_control) == 2 * n_control - 1
        assert not any("plus two" in trial.prompt for trial in answers)
        (scoring,) = bench.sent
        assert isinstance(scoring, ScoreAudit)
        manifest = get_model(bench.artifacts, scoring.manifest, AuditManifest)
        assert manifest.control is not None
        benchmark, control = (
            StoredVariants(bench.artifacts, one).summary().check
            for one in (manifest.variants, manifest.control.variants)
        )
        assert benchmark is not None
        assert control is not None
        assert ([one.item_id for one in benchmark.listed], [one.item_id for one in control.listed]) == (
            ["q7", "q70"], ["c3"],
        )  # fmt: skip
        assert [solver.calls for solver in control.solvers] == [SAMPLES * 3 * n_control] * 2


def test_an_answer_that_is_delivered_again_changes_nothing(bench: Bench) -> None:
    audit = to_check(bench)
    first = VariantsBuilt(audit_id=audit, variants=view(bench.records, audit).inputs.proposed)
    for number in (1, 2):
        tasks.variants_built(first)
        shards = one_by_one(bench.sent)
        finish(bench, f"check-{number}-1", solves)
        for shard in shards:
            tasks.shards_answered(said(bench, shard, solves))
    # What was proposed comes once more while the perturbation service looks at the answers.
    tasks.variants_built(first)
    assert bench.state(audit) is AuditState.REWORDING
    assert view(bench.records, audit).inputs.variants is None
    answer = checked(bench)
    tasks.variants_built(answer)
    tasks.variants_built(answer)
    assert bench.state(audit) is AuditState.ANSWERING
    assert len(finish(bench, ANSWER_STAGE)) == 3 * N_ITEMS - len(BAD)


def test_a_router_that_dies_between_two_solvers_is_followed_by_one_that_goes_on(bench: Bench) -> None:
    audit = to_check(bench)
    finish(bench, "check-1-1", solves)
    bench.sent.clear()
    assert bench.start_again() == audit
    assert bench.state(audit) is AuditState.ASKING
    stage = under_way(view(bench.records, audit))
    assert stage is not None
    assert stage.name == "check-2-1"
    tasks.take_on(TakeOn(audit_id=audit))
    assert len(finish(bench, "check-2-1", solves)) == PROMPTS
    # The request that should have followed was lost with its messenger.
    bench.sent.clear()
    bench.start_again()
    assert bench.state(audit) is AuditState.REWORDING
    tasks.reconcile(Reconcile())
    tasks.variants_built(checked(bench))
    assert bench.state(audit) is AuditState.ANSWERING


def test_a_solver_that_answers_nothing_fails_the_audit_which_asks_it_again_when_it_is_started_again(
    bench: Bench,
) -> None:
    audit = to_check(bench)
    finish(bench, "check-1-1", solves)
    finish(bench, "check-2-1", refuses)
    assert bench.state(audit) is AuditState.FAILED
    detail = bench.records.audit(audit).detail
    assert detail == (
        f"the solver org/second at {SECOND} answered none of {PROMPTS} prompts; the first failure: HTTP 401"
    )
    assert bench.start_again() == audit
    assert {shard.stage for shard in one_by_one(bench.sent)} == {"check-2-2"}
    finish(bench, "check-2-2", solves)
    tasks.variants_built(checked(bench))
    assert bench.state(audit) is AuditState.ANSWERING


def test_a_solver_whose_endpoint_serves_the_audited_weights_fails_the_audit(bench: Bench) -> None:
    audit = to_check(bench)
    audited: Says = lambda trial: solves(trial).model_copy(update={"model_digest": PINNED})  # noqa: E731
    finish(bench, "check-1-1", audited)
    assert bench.state(audit) is AuditState.FAILED
    assert f"the solver org/first at {FIRST} is the model under audit" in bench.records.audit(audit).detail


def test_a_solver_that_is_away_is_waited_for_and_then_fails_the_audit_and_no_other_pool_is_blamed(
    bench: Bench,
) -> None:
    audit = to_check(bench)
    inputs = view(bench.records, audit).inputs
    (first, *_) = bench.shards()
    bench.answer(first, error="connection refused", unreachable=True)
    assert bench.state(audit) is AuditState.ASKING
    assert [message for message, _ in bench.later] == [TakeOn(audit_id=audit)]
    assert bench.pools.away_for(inputs.solvers[0].pool) is not None
    assert bench.pools.away_for(inputs.solvers[1].pool) is None
    assert bench.pools.away_for(inputs.endpoint.pool) is None


def give_up(bench: Bench, stage: str, *, shards: int) -> int:
    """Answer a stage to its end, but for the first shards of reworded prompts; returns how many of these there are."""
    lost = 0
    while asked := [shard for shard in one_by_one(bench.sent) if shard.stage == stage]:
        bench.sent.clear()
        for shard in asked:
            trials = get_model(bench.artifacts, shard.shard, Shard).trials
            if shards and trials[0].arm is Arm.PERTURBED:
                shards, lost = shards - 1, lost + len(trials)
                bench.answer(shard, error="HTTP 400", retryable=False)
            else:
                tasks.shards_answered(said(bench, shard, solves))
    return lost


def test_few_prompts_that_are_given_up_leave_every_rewording_checked_and_are_counted(opened: Opened) -> None:
    with opened("first") as bench:
        audit = to_check(bench)
        lost = give_up(bench, "check-1-1", shards=1)
        answer = checked(bench)
        assert answer.variants is not None
        found = StoredVariants(bench.artifacts, answer.variants).summary().check
        assert found is not None
        assert found.findings == {"agree": 2 * N_ITEMS - len(BAD), "answers_disagree": len(BAD)}
        assert [(one.calls, one.failed) for one in found.solvers] == [(PROMPTS, lost)]
        assert lost > 0
        tasks.variants_built(answer)
        assert bench.state(audit) is AuditState.ANSWERING


def test_many_prompts_that_are_given_up_fail_the_audit(opened: Opened) -> None:
    with opened("first") as bench:
        audit = to_check(bench)
        lost = give_up(bench, "check-1-1", shards=5)
        assert bench.state(audit) is AuditState.FAILED
        assert bench.records.audit(audit).detail == (
            f"the solver org/first at {FIRST}: {lost} of {PROMPTS} trials got no answer; the last failure: HTTP 400"
        )


def test_what_a_solver_was_asked_counts_for_the_budget_at_its_own_price(opened: Opened) -> None:
    with opened(priced=True) as bench:
        audit = to_check(bench)
        (first, *_) = bench.shards()
        bench.answer(first, completions="sha256:" + "1" * 64, input_tokens=1_000_000, output_tokens=0)
        spent = bench.ledger.spent_by_stage(audit)
        assert set(spent) == {"check-1-1"}
        terms = view(bench.records, audit).inputs.terms
        assert cost_of(terms, spent) == pytest.approx(2.0)
        # The second solver has no price, and costs nothing.
        assert cost_of(terms, {"check-2-1": spent["check-1-1"]}) == 0.0


def test_a_budget_stops_the_audit_before_the_solvers_are_asked_more(opened: Opened) -> None:
    with opened() as bench:
        budget = {"budget_config": {"max_trials": PROMPTS + 10}}
        bench.suite = Suite.model_validate({**bench.suite.plain(), **budget})
        audit = to_check(bench)
        finish(bench, "check-1-1", solves)
        assert bench.state(audit) is AuditState.FAILED
        assert (
            f"max_trials is {PROMPTS + 10:,}, and it comes to {2 * PROMPTS:,} trials"
            in bench.records.audit(audit).detail
        )


def test_a_pool_is_found_by_the_number_in_the_stage_s_name(bench: Bench) -> None:
    inputs = view(bench.records, bench.submit()).inputs
    assert [pool_of(inputs, f"check-{number}-3") for number in (1, 2)] == [one.pool for one in inputs.solvers]
    assert pool_of(inputs, "check-3-1") is None
    assert set(inputs.pools) == {inputs.endpoint.pool, *(one.pool for one in inputs.solvers)}


@pytest.mark.parametrize(
    ("solver", "expected"),
    [
        ({"model": "org/other", "endpoint": "audited", "served_name": "m"}, "where 'm' is the model under audit"),
        ({"model": "org/other", "endpoint": "nobody"}, r"'nobody', which is not the id of an endpoint here"),
    ],
)
def test_a_suite_is_refused_whose_solver_is_the_audited_model_or_is_named_by_nobody(
    opened: Opened, solver: dict[str, str], expected: str
) -> None:
    with opened() as bench:
        named = {**bench.settings.endpoints, "audited": OperatorEndpoint(url="http://127.0.0.1:9/v1")}
        bench.settings = bench.settings.model_copy(update={"endpoints": named})
        plain = bench.suite.plain()
        plain["perturbation_config"]["answering_check"]["solvers"] = [solver]
        bench.suite = Suite.model_validate(plain)
        with pytest.raises(BadInputError, match=expected):
            bench.submit()


def test_private_items_go_to_no_solver_that_is_not_approved_for_them(opened: Opened) -> None:
    with opened() as bench:
        named = {"first": OperatorEndpoint(url="https://elsewhere.example/v1"), "second": OperatorEndpoint(url=SECOND)}
        bench.settings = bench.settings.model_copy(update={"endpoints": named})
        plain = bench.suite.plain()
        bench.suite = Suite.model_validate({**plain, "dataset_config": {**plain["dataset_config"], "private": True}})
        with pytest.raises(
            BadInputError, match=r"answering_check\.solvers\[0\]\.endpoint is \"first\", which is not appr"
        ):
            bench.submit()


def test_items_that_are_marked_meanwhile_are_sent_to_no_solver_that_may_not_have_them(opened: Opened) -> None:
    with opened() as bench:
        named = {"first": OperatorEndpoint(url="https://elsewhere.example/v1"), "second": OperatorEndpoint(url=SECOND)}
        bench.settings = bench.settings.model_copy(update={"endpoints": named})
        audit = bench.submit()
        marked = bench.settings.model_copy(update={"private_benchmarks": PrivateBenchmarks(names=("sums",))})
        cause = Barrier(marked, bench.artifacts).cause(view(bench.records, audit))
        assert cause is not None
        assert '"https://elsewhere.example/v1" is not approved' in cause


def test_nothing_is_left_when_the_audit_has_ended(bench: Bench) -> None:
    audit = through_check(bench)
    finish(bench, ANSWER_STAGE)
    tasks.scored(AuditScored(audit_id=audit))
    tasks.decision_written(DecisionWritten(audit_id=audit, registry_version="7"))
    assert bench.state(audit) is AuditState.DECIDED
    with redis.Redis.from_url(bench.settings.ledger_url) as client:
        assert [key for key in client.scan_iter() if client.ttl(key) == -1] == []


def test_a_row_of_an_audit_without_the_check_is_what_it_was(tmp_path: Path, valkey_url: str, monkeypatch: Any) -> None:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        inputs = bench.records.audit(bench.to_answering()).inputs
        assert not {"solvers", "proposed", "checking"} & set(inputs)
        assert "check" not in inputs["terms"]
