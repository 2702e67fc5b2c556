"""What a sample can find, and how many items it takes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from proctor.evidence.intervals import PairSums, contamination_score, score_inflation
from proctor.evidence.perturbation.exchangeability import exchangeability_test
from proctor.evidence.perturbation.power import items_needed_to_approve, minimum_detectable_inflation
from proctor.evidence.perturbation.studentised import studentised_test
from tests.unit.samples import consistent, paired


def needed(answers_of: list[list[int]]) -> int | None:
    return items_needed_to_approve(
        PairSums.of(paired(*answers_of)), max_inflation=0.05, max_contamination_score=0.1, level=0.95
    )


def test_the_smallest_effect_is_the_one_of_the_sample_size_formula() -> None:
    rng = np.random.default_rng(3)
    sums = PairSums.of(consistent(rng, 500, variants=3))
    delta = minimum_detectable_inflation(sums, alpha=0.05)
    spread = sums.with_pseudo_items().var_d + delta
    z_alpha, z_beta = stats.norm.ppf(0.95), stats.norm.ppf(0.8)
    wanted = ((z_alpha * math.sqrt(spread) + z_beta * math.sqrt(spread - delta**2)) / delta) ** 2
    assert wanted == pytest.approx(504, rel=1e-6)


def test_it_is_found_about_four_times_in_five() -> None:
    rng = np.random.default_rng(12)
    effect = np.median(
        [minimum_detectable_inflation(PairSums.of(consistent(rng, 500, variants=3)), alpha=0.05) for _ in range(20)]
    )
    found, replications = 0, 400
    for _ in range(replications):
        answers = consistent(rng, 500, variants=3, leaked=float(effect) / 0.98)
        found += max(exchangeability_test(answers).p_value, studentised_test(answers)) <= 0.05
    assert 0.72 <= found / replications <= 0.92


def test_nothing_can_be_found_in_hardly_any_items() -> None:
    assert minimum_detectable_inflation(PairSums.of(paired([], [], [])), alpha=0.05) == 1.0
    assert minimum_detectable_inflation(PairSums.of(paired([1], [3], [3])), alpha=0.05) == 1.0


@pytest.mark.parametrize("kept", [3, 7])
def test_the_items_needed_are_the_first_number_at_which_both_bounds_hold(kept: int) -> None:
    """Ten items in one proportion, repeated: one breaks when reworded, one is mended, the rest stay as they are."""
    unit = [[1] + [0] + [1] * kept + [0] * (8 - kept), [1] + [1] + [2] * kept + [0] * (8 - kept), [2] * 10]
    wanted = needed(unit)
    assert wanted is not None
    for repeats, holds in ((math.ceil(wanted / 10) + 1, True), (wanted // 10 - 1, False)):
        answers = paired(*[column * repeats for column in unit])
        inflation, score = score_inflation(answers, 0.95), contamination_score(answers, 0.95)
        assert inflation.high is not None
        assert (inflation.high <= 5.0 and score.high is not None and score.high <= 0.1) is holds


def test_an_estimate_past_its_limit_is_never_approved() -> None:
    assert needed([[1] * 10, [0] + [3] * 9, [3] * 10]) is None
    assert needed([[0] * 10, [0] * 10, [3] * 10]) is None
    assert needed([[], [], []]) is None
