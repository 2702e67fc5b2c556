from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats
from statsmodels.stats.weightstats import ztost

from proctor.evidence.paired.discordance import PairCounts
from proctor.evidence.paired.equivalence import equivalence
from proctor.evidence.protocol.channel import TOLERANCE

COUNTS = st.builds(PairCounts, *(st.integers(0, 60) for _ in range(4)))


@given(COUNTS.filter(lambda counts: counts.n > 0), st.floats(0.01, 0.5))
def test_equivalence_is_the_inner_interval_within_the_tolerance(counts: PairCounts, tolerance: float) -> None:
    result = equivalence(counts, tolerance, 0.05)
    if abs(result.p_value - 0.05) > 1e-9:
        assert (result.p_value < 0.05) == (-tolerance < result.low and result.high < tolerance)


def test_equivalence_agrees_with_statsmodels_on_many_items() -> None:
    counts = PairCounts(60_000, 9_500, 9_000, 21_500)
    items = np.repeat([0.0, 1.0, -1.0, 0.0], counts)
    theirs = ztost(items, low=-0.01, upp=0.01)[0]
    assert equivalence(counts, 0.01, 0.05).p_value == pytest.approx(theirs, rel=0.05)


def constrained_score(more: int, fewer: int, n: int, tolerance: float) -> float:
    """The score statistic with its nuisance share found by maximising the likelihood, not by the quadratic."""

    def minus_log_likelihood(share: float) -> float:
        return -float(
            special.xlogy(more, share + tolerance)
            + special.xlogy(fewer, share)
            + special.xlogy(n - more - fewer, 1 - 2 * share - tolerance)
        )

    best = optimize.minimize_scalar(
        minus_log_likelihood, bounds=(0.0, (1 - tolerance) / 2), method="bounded", options={"xatol": 1e-12}
    ).x
    return float((more - fewer - n * tolerance + 0.5) / np.sqrt(n * (2 * best + tolerance - tolerance**2)))


@pytest.mark.parametrize(("only_a", "only_b", "n"), [(3, 5, 200), (0, 4, 150), (12, 12, 300), (40, 31, 500)])
def test_equivalence_is_the_score_test_at_the_constrained_maximum(only_a: int, only_b: int, n: int) -> None:
    counts = PairCounts(0, only_a, only_b, n - only_a - only_b)
    expected = max(
        stats.norm.cdf(constrained_score(only_a, only_b, n, 0.02)),
        stats.norm.cdf(constrained_score(only_b, only_a, n, 0.02)),
    )
    assert equivalence(counts, 0.02, 0.05).p_value == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("n", [150, 200, 300, 500])
@pytest.mark.parametrize("rare", [0.0, 0.003, 0.01])
def test_runs_that_differ_by_the_tolerance_are_called_equivalent_less_often_than_alpha(n: int, rare: float) -> None:
    """Exact: over every count of discordant items that has a chance worth counting."""
    chance = 0.0
    share = rare + TOLERANCE
    top = int(stats.binom.ppf(1 - 1e-9, n, share))
    for only_a in range(top + 1):
        for only_b in range(int(stats.binom.ppf(1 - 1e-9, n, rare)) + 1 if rare else 1):
            counts = PairCounts(0, only_a, only_b, n - only_a - only_b)
            if equivalence(counts, TOLERANCE, 0.05).p_value < 0.05:
                chance += stats.multinomial.pmf(
                    [only_a, only_b, n - only_a - only_b], n, [share, rare, 1 - share - rare]
                )
    assert chance <= 0.05


def test_equivalence_is_not_shown_without_items_and_needs_a_tolerance_that_is_one() -> None:
    assert equivalence(PairCounts(0, 0, 0, 0), 0.02, 0.05) == (1.0, -1.0, 1.0)
    with pytest.raises(ValueError, match="tolerance"):
        equivalence(PairCounts(1, 1, 1, 1), 0.0, 0.05)
