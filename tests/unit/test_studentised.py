"""The one-sided studentised mean of D per item."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from scipy import stats

from proctor.evidence.answers import PairedAnswers
from proctor.evidence.perturbation.studentised import studentised_test
from tests.unit.samples import paired, samples


@given(samples(min_items=2))
def test_it_is_the_t_test_of_scipy(answers: PairedAnswers) -> None:
    assume(np.ptp(answers.differences) > 0)
    wanted = stats.ttest_1samp(answers.differences, 0.0, alternative="greater").pvalue
    assert studentised_test(answers) == pytest.approx(wanted, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(
    ("answers", "p_value"),
    [
        (paired([], [], []), 1.0),
        (paired([1], [0], [3]), 1.0),
        (paired([1] * 9, [3] * 9, [3] * 9), 1.0),
        (paired([0] * 9, [3] * 9, [3] * 9), 1.0),
        (paired([1] * 9, [0] * 9, [3] * 9), 0.0),
    ],
)
def test_without_spread_the_sign_decides(answers: PairedAnswers, p_value: float) -> None:
    assert studentised_test(answers) == p_value


def test_dependent_rewordings_do_not_raise_its_size() -> None:
    """An item's rewordings share one answer here: the exact test alone rejects three times too often."""
    rng, rejected, replications = np.random.default_rng(5), 0, 1_000
    for _ in range(replications):
        chances = rng.random(200)
        canonical, reworded = rng.random(200) < chances, rng.random(200) < chances
        answers = paired(canonical.tolist(), (3 * reworded).tolist(), [3] * 200)
        rejected += studentised_test(answers) <= 0.05
    assert stats.binomtest(rejected, replications, 0.05, alternative="greater").pvalue > 1e-3
