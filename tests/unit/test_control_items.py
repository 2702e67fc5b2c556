"""Control items decide where a suite has them: what goes beyond theirs is held against the limits, or nothing is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.domain.canonical import canonical_json
from proctor.domain.channel_results import Verdict
from proctor.domain.decision import Decision, DecisionOutcome
from proctor.domain.evidence import Evidence, PerturbationEvidence
from proctor.domain.trial import Arm, Outcome
from proctor.evidence.answers import Answer, PairedAnswers
from proctor.evidence.perturbation.channel import perturbation_evidence
from proctor.evidence.perturbation.control_items import MIN_CONTROL_ITEMS, pair_control, weigh_control_items
from proctor.evidence.perturbation.held import Held
from proctor.scorer.channels.control_section import control_section
from proctor.scorer.policy import decide
from proctor.scorer.report.limitations import limitations
from tests.report_samples import approved
from tests.unit.samples import paired, samples
from tests.unit.test_control import draw
from tests.unit.test_decision_policy import COMPARABLE, suite

#: Rewording loses this share of the right answers: nine points of accuracy.
COST = 0.12


def as_answers(control: PairedAnswers) -> Iterator[Answer]:
    """The rows that a sample of control items was paired from."""
    for place, item_id in enumerate(control.item_ids):
        right, total = int(control.right[place]), int(control.total[place])
        yield Answer(Arm.CONTROL_CANONICAL, item_id, _graded(bool(control.canonical[place])))
        for number in range(total):
            yield Answer(Arm.CONTROL_PERTURBED, item_id, _graded(number < right))


def _graded(right: bool) -> Outcome:
    return Outcome.CORRECT if right else Outcome.INCORRECT


def weighed(
    benchmark: PairedAnswers, control: PairedAnswers | list[Answer], *, selected: int | None = None, **scoring: Any
) -> PerturbationEvidence:
    of = suite(scoring)
    rows = control if isinstance(control, list) else list(as_answers(control))
    ids = sorted({row.item_id for row in rows})
    ids += [f"unasked-{n}" for n in range((selected or len(ids)) - len(ids))]
    found = weigh_control_items(
        benchmark,
        pair_control(rows, ids),
        rows,
        of.scoring,
        n_selected=len(ids),
        n_reworded=len({row.item_id for row in rows}),
    )
    return perturbation_evidence(benchmark, of.scoring, of.governance, None, control_items=found)


def decided(found: PerturbationEvidence) -> Decision:
    return decide(Evidence(perturbation=found, protocol=COMPARABLE, not_audited={}), suite())


def plainly(benchmark: PairedAnswers) -> Decision:
    of = suite()
    return decided(perturbation_evidence(benchmark, of.scoring, of.governance, None))


def test_a_clean_model_whose_rewordings_are_simply_harder_is_approved_where_d_alone_blocks_it() -> None:
    rng = np.random.default_rng(1)
    benchmark, control = draw(rng, 2_000, cost=COST), draw(rng, 2_000, cost=COST)
    assert plainly(benchmark).outcome is DecisionOutcome.BLOCK
    found = weighed(benchmark, control)
    assert found.verdict is Verdict.CLEAN
    decision = decided(found)
    assert decision.outcome is DecisionOutcome.APPROVE
    assert "beyond that of the control items" in decision.reasons[0].text


def test_a_leak_beyond_the_cost_is_blocked_all_the_same() -> None:
    rng = np.random.default_rng(2)
    found = weighed(draw(rng, 2_000, cost=COST, leaked=0.2), draw(rng, 2_000, cost=COST))
    decision = decided(found)
    assert (found.verdict, decision.outcome) == (Verdict.CONTAMINATED, DecisionOutcome.BLOCK)
    assert decision.reasons[0].code == "score_inflation_past_limit"
    assert "beyond that of the control items" in decision.reasons[0].text
    flagged = sum(item.flagged for item in found.items)
    assert found.control_items is not None
    low = found.control_items.excess.excess_inflation.low
    assert low is not None
    assert 0 < flagged <= low / 100 * found.n_items


def test_a_leak_that_easier_rewordings_hide_is_found_by_the_difference() -> None:
    """Where rewording helps by fifteen points, memory of fifteen leaves D at 0, which alone looks clean."""
    benchmark = paired([1] * 750 + [0] * 250, [3] * 750 + [0] * 250, [3] * 1_000)
    control = paired([1] * 600 + [0] * 400, [3] * 750 + [0] * 250, [3] * 1_000)
    assert plainly(benchmark).outcome is DecisionOutcome.APPROVE
    assert decided(weighed(benchmark, control)).outcome is DecisionOutcome.BLOCK


def _rates(n: int, *, leaked: float, seeds: range) -> tuple[dict[str, int], dict[str, int]]:
    alone, beside = dict.fromkeys(DecisionOutcome, 0), dict.fromkeys(DecisionOutcome, 0)
    for seed in seeds:
        rng = np.random.default_rng([n, seed])
        benchmark, control = draw(rng, n, cost=COST, leaked=leaked), draw(rng, n, cost=COST)
        alone[plainly(benchmark).outcome] += 1
        beside[decided(weighed(benchmark, control)).outcome] += 1
    return {str(k): v for k, v in alone.items()}, {str(k): v for k, v in beside.items()}


def test_over_many_clean_models_with_harder_rewordings_none_is_blocked_beside_control_items() -> None:
    alone, beside = _rates(800, leaked=0.0, seeds=range(40))
    assert alone["block"] >= 36
    assert beside["block"] == 0
    assert beside["approve"] >= 36


def test_over_many_leaked_models_most_are_blocked_beside_control_items_and_none_is_approved() -> None:
    _, beside = _rates(800, leaked=0.2, seeds=range(40))
    assert beside["block"] >= 36
    assert beside["approve"] == 0


@pytest.mark.parametrize("n", [0, 1, MIN_CONTROL_ITEMS - 1])
@pytest.mark.parametrize("leaked", [0.0, 0.3])
def test_too_few_control_items_are_said_and_the_plain_comparison_does_not_come_back(n: int, leaked: float) -> None:
    rng = np.random.default_rng(4)
    benchmark = draw(rng, 1_000, leaked=leaked)
    assert plainly(benchmark).outcome is (DecisionOutcome.BLOCK if leaked else DecisionOutcome.APPROVE)
    found = weighed(benchmark, draw(rng, n) if n else [], selected=500)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert f"Of 500 control items {n}" in found.reasons[0]
    decision = decided(found)
    assert decision.outcome is DecisionOutcome.REVIEW
    assert [reason.code for reason in decision.reasons] == ["too_few_control_items"]
    assert not any(item.flagged for item in found.items)


def test_enough_control_items_are_enough() -> None:
    rng = np.random.default_rng(5)
    found = weighed(draw(rng, 1_000), draw(rng, MIN_CONTROL_ITEMS))
    assert found.control_items is not None
    assert found.control_items.problems == ()
    assert "too_few_control_items" not in {reason.code for reason in decided(found).reasons}


def test_control_arms_that_differ_in_truncation_make_the_channel_invalid() -> None:
    rng = np.random.default_rng(6)
    rows = [
        row._replace(truncated=row.arm is Arm.CONTROL_PERTURBED and place % 4 == 1)
        for place, row in enumerate(as_answers(draw(rng, 400)))
    ]
    found = weighed(draw(rng, 1_000), rows)
    assert found.verdict is Verdict.INVALID
    assert found.reasons[0].startswith("Of the control items:")
    decision = decided(found)
    assert (decision.outcome, decision.reasons[0].code) == (DecisionOutcome.REVIEW, "perturbation_invalid")


def test_few_control_items_make_the_interval_wide_and_the_review_says_how_many_would_do() -> None:
    rng = np.random.default_rng(7)
    benchmark = draw(rng, 1_000)
    found = weighed(benchmark, draw(rng, 40, noise=0.1))
    assert plainly(benchmark).outcome is DecisionOutcome.APPROVE
    decision = decided(found)
    assert decision.outcome is DecisionOutcome.REVIEW
    (settling,) = [reason for reason in decision.reasons if reason.code == "too_few_items"]
    assert "with as many more control items" in settling.text


def test_the_items_that_it_says_would_do_would_do() -> None:
    benchmark = paired([1] * 60 + [0] * 20, [3] * 53 + [2] * 7 + [1] * 10 + [0] * 10, [3] * 80)
    control = paired([1] * 60 + [0] * 20, [3] * 53 + [2] * 7 + [1] * 9 + [0] * 11, [3] * 80)
    found = weighed(benchmark, control)
    assert found.control_items is not None
    needed = found.control_items.items_needed_to_approve
    assert needed is not None
    assert needed > 80
    times = -(-needed // 80)
    again = weighed(_repeated(benchmark, times), _repeated(control, times))
    assert decided(again).outcome is DecisionOutcome.APPROVE


def _repeated(answers: PairedAnswers, times: int) -> PairedAnswers:
    return PairedAnswers.of(
        [f"{item}-{time}" for time in range(times) for item in answers.item_ids],
        np.tile(answers.canonical, times),
        np.tile(answers.right, times),
        np.tile(answers.total, times),
    )


def test_clusters_of_the_benchmark_widen_the_difference_although_those_of_the_control_are_not_known() -> None:
    rng = np.random.default_rng(9)
    benchmark, control = draw(rng, 600), draw(rng, 600)
    clustered = PairedAnswers.of(
        benchmark.item_ids,
        np.repeat(benchmark.canonical[:60], 10),
        np.repeat(benchmark.right[:60], 10),
        np.repeat(benchmark.total[:60], 10),
        clusters=[f"passage {place // 10}" for place in range(600)],
    )
    apart = PairedAnswers.of(clustered.item_ids, clustered.canonical, clustered.right, clustered.total)

    def width(found: PerturbationEvidence) -> float:
        assert found.control_items is not None
        excess = found.control_items.excess.excess_inflation
        assert excess.low is not None
        assert excess.high is not None
        return excess.high - excess.low

    assert width(weighed(clustered, control)) > 1.5 * width(weighed(apart, control))


def test_control_items_in_few_clusters_of_their_own_say_nothing() -> None:
    rng = np.random.default_rng(10)
    control = draw(rng, 200)
    clusters = {item: f"passage {place // 40}" for place, item in enumerate(control.item_ids)}
    grouped = pair_control(as_answers(control), control.item_ids, clusters)
    found = weigh_control_items(
        draw(rng, 1_000), grouped, as_answers(control), suite().scoring, n_selected=200, n_reworded=200
    )
    assert found.problems
    assert "5 clusters" in found.problems[0]


@settings(max_examples=60, deadline=None)
@given(samples(min_items=1), samples(), st.integers(0, 2**32))
def test_the_order_of_the_answers_changes_no_byte(benchmark: PairedAnswers, control: PairedAnswers, seed: int) -> None:
    renamed = PairedAnswers.of(
        [f"c-{item}" for item in control.item_ids], control.canonical, control.right, control.total
    )
    rows = list(as_answers(renamed))
    shuffled = random.Random(seed).sample(rows, len(rows))
    assert canonical_json(weighed(benchmark, rows).plain()) == canonical_json(weighed(benchmark, shuffled).plain())


@settings(max_examples=60, deadline=None)
@given(samples(min_items=1), samples())
def test_a_decision_beside_control_items_never_rests_on_the_plain_estimates(
    benchmark: PairedAnswers, control: PairedAnswers
) -> None:
    renamed = PairedAnswers.of(
        [f"c-{item}" for item in control.item_ids], control.canonical, control.right, control.total
    )
    found = weighed(benchmark, renamed)
    held, outcome = Held.of(found), decided(found).outcome
    assert held.beyond
    if outcome is DecisionOutcome.APPROVE:
        assert held.inflation.high is not None
        assert held.inflation.high <= 5.0
    if outcome is DecisionOutcome.BLOCK:
        assert held.p_value < 0.05
    if renamed.n < MIN_CONTROL_ITEMS:
        assert outcome is DecisionOutcome.REVIEW


def test_the_page_shows_both_kinds_of_items_and_the_limits_say_whose_word_it_is() -> None:
    rng = np.random.default_rng(11)
    found = weighed(draw(rng, 500, cost=COST), draw(rng, 400, cost=COST))
    section = control_section(found)
    assert section is not None
    assert [row[0] for row in section.rows] == ["the benchmark", "control items"]
    assert "Beyond the control items the benchmark lost" in section.caption
    sample = approved()
    evidence = sample.report().evidence.model_copy(update={"perturbation": found})
    said = limitations(sample.manifest, evidence, decided(found), n_selected=500, n_left_out=0, n_unanswered=0)
    (harder,) = [one for one in said if one.code == "harder_rewording"]
    assert "control items, which are taken to be clean by the suite's word" in harder.text


def test_a_report_without_control_items_has_nothing_of_them() -> None:
    of = suite()
    found = perturbation_evidence(draw(np.random.default_rng(12), 100), of.scoring, of.governance, None)
    assert control_section(found) is None
    assert "control_items" not in found.plain()
