"""The exact stratified test: against enumeration, McNemar, the approximation, and its size."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.exchangeability import exact_upper_tail, exchangeability_test, saddlepoint_upper_tail
from tests.unit.samples import consistent, paired, sample, samples


def by_enumeration(answers: PairedAnswers) -> float:
    """The definition: every way in which the wordings of each item could have been told apart, counted."""
    observed = int(answers.canonical.sum())
    totals = (answers.right + answers.canonical).tolist()
    chances = [Fraction(t, v + 1) for t, v in zip(totals, answers.total.tolist(), strict=True)]
    tail = Fraction(0)
    for outcome in itertools.product((0, 1), repeat=answers.n):
        if sum(outcome) >= observed:
            tail += math.prod(p if y else 1 - p for y, p in zip(outcome, chances, strict=True))
    return float(tail)


@given(samples(max_items=9))
def test_the_p_value_is_the_counted_one(answers: PairedAnswers) -> None:
    assert exchangeability_test(answers).p_value == pytest.approx(by_enumeration(answers), rel=1e-9)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 40))
def test_with_one_variant_it_is_the_one_sided_exact_mcnemar_test(
    only_canonical: int, only_reworded: int, same: int
) -> None:
    answers = paired(
        [1] * only_canonical + [0] * only_reworded + [1] * same,
        [0] * only_canonical + [1] * only_reworded + [1] * same,
        [1] * (only_canonical + only_reworded + same),
    )
    discordant = only_canonical + only_reworded
    wanted = stats.binomtest(only_canonical, discordant, 0.5, alternative="greater").pvalue if discordant else 1.0
    assert exchangeability_test(answers).p_value == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(("wins", "losses", "two_sided"), [(41, 21, 0.015134), (9, 2, 0.065430), (9, 3, 0.145996)])
def test_published_mcnemar_figures_are_met(wins: int, losses: int, two_sided: float) -> None:
    answers = paired([1] * wins + [0] * losses, [0] * wins + [1] * losses, [1] * (wins + losses))
    assert 2 * exchangeability_test(answers).p_value == pytest.approx(two_sided, abs=5e-7)


@given(samples(min_items=1))
def test_the_order_of_the_items_changes_no_bit(answers: PairedAnswers) -> None:
    order = np.random.default_rng(3).permutation(answers.n)
    shuffled = PairedAnswers(
        tuple(answers.item_ids[i] for i in order), answers.canonical[order], answers.right[order], answers.total[order]
    )
    assert exchangeability_test(shuffled) == exchangeability_test(answers)


@given(samples(min_items=1), st.data())
def test_one_more_canonical_win_never_raises_p(answers: PairedAnswers, data: st.DataObject) -> None:
    """A win moves one right answer from a rewording to the canonical wording: the item's total stays."""
    movable = np.flatnonzero(~answers.canonical & (answers.right > 0))
    assume(movable.size > 0)
    place = data.draw(st.sampled_from(movable.tolist()))
    canonical, right = answers.canonical.copy(), answers.right.copy()
    canonical[place], right[place] = True, right[place] - 1
    moved = PairedAnswers(answers.item_ids, canonical, right, answers.total)
    before, after = exchangeability_test(answers).p_value, exchangeability_test(moved).p_value
    assert 0.0 <= after <= before <= 1.0


@pytest.mark.parametrize(
    "answers",
    [
        paired([], [], []),
        paired([1], [3], [3]),
        paired([1] * 50, [4] * 50, [4] * 50),
        paired([0] * 50, [0] * 50, [2] * 50),
    ],
)
def test_answers_that_no_wording_changes_carry_no_evidence(answers: PairedAnswers) -> None:
    found = exchangeability_test(answers)
    assert found.p_value == 1.0
    assert found.method.startswith("exact")


def test_a_tail_far_out_is_still_relatively_exact() -> None:
    answers = paired([1] * 400, [0] * 400, [3] * 400)
    assert exchangeability_test(answers).p_value == pytest.approx(0.25**400, rel=1e-9)


@pytest.mark.parametrize("n", [100, 1_000, 5_000])
@pytest.mark.parametrize("deviations", [-2.0, 0.0, 1.64, 3.0, 5.0])
def test_the_approximation_is_within_a_thousandth_of_the_exact_tail(n: int, deviations: float) -> None:
    counts, chances = np.array([n // 4, n // 2, n // 4]), np.array([0.25, 0.5, 0.75])
    spread = math.sqrt(float((counts * chances * (1 - chances)).sum()))
    observed = round(float((counts * chances).sum()) + deviations * spread)
    wanted = exact_upper_tail(counts, chances, observed)
    assert saddlepoint_upper_tail(counts, chances, observed) == pytest.approx(wanted, rel=1e-3)


def test_the_ends_of_the_approximation_are_exact() -> None:
    counts, chances = np.array([3, 2]), np.array([0.25, 0.5])
    assert saddlepoint_upper_tail(counts, chances, 0) == 1.0
    assert saddlepoint_upper_tail(counts, chances, 5) == pytest.approx(0.25**3 * 0.5**2)
    assert saddlepoint_upper_tail(counts, chances, 6) == 0.0


def test_the_result_says_when_it_is_approximate() -> None:
    answers = paired([1, 0, 1] * 40, [1, 1, 1] * 40, [3, 3, 3] * 40)
    exact, approximate = exchangeability_test(answers), exchangeability_test(answers, exact_limit=10)
    assert "exact" in exact.method
    assert "saddlepoint" in approximate.method
    assert approximate.p_value == pytest.approx(exact.p_value, rel=1e-3)


@pytest.mark.parametrize("family", ["coins", "consistent"])
def test_exchangeable_wordings_are_rejected_no_more_often_than_stated(family: str) -> None:
    rng, rejected, replications = np.random.default_rng(11), 0, 1_000
    for _ in range(replications):
        answers = (
            sample(rng, rng.beta(2, 1, 150), variants=3) if family == "coins" else consistent(rng, 300, variants=3)
        )
        rejected += exchangeability_test(answers).p_value <= 0.05
    assert stats.binomtest(rejected, replications, 0.05, alternative="greater").pvalue > 1e-3
