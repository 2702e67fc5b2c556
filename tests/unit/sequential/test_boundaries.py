"""Boundaries against published tables, and against simulated crossings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from proctor.evidence.sequential.boundaries import boundaries
from proctor.evidence.sequential.spending import Spending

#: Five evenly spaced looks, two-sided 0.05, as published for these two functions (also by R's `ldbounds`).
PUBLISHED = {
    Spending.OBRIEN_FLEMING: (4.877, 3.357, 2.680, 2.290, 2.031),
    Spending.POCOCK: (2.438, 2.427, 2.411, 2.397, 2.386),
}
FIFTHS = (0.2, 0.4, 0.6, 0.8, 1.0)
UNEVEN = (0.05, 0.3, 0.31, 0.9, 1.0)


def spent_by(spending: Spending, information: tuple[float, ...], error: float) -> list[float]:
    return [spending.spent(share, error) for share in information]


@pytest.mark.parametrize("spending", Spending)
def test_two_sided_boundaries_are_the_published_ones(spending: Spending) -> None:
    each_side = spent_by(spending, FIFTHS, 0.025)
    found = boundaries(FIFTHS, [2 * error for error in each_side], two_sided=True)
    assert found == pytest.approx(PUBLISHED[spending], abs=1e-3)


@pytest.mark.parametrize("spending", Spending)
@pytest.mark.parametrize("information", [FIFTHS, UNEVEN])
@pytest.mark.parametrize("two_sided", [True, False])
def test_a_brownian_motion_crosses_as_often_as_is_spent(
    spending: Spending, information: tuple[float, ...], two_sided: bool
) -> None:
    walks = 400_000
    spent = spent_by(spending, information, 0.1)
    found = boundaries(information, spent, two_sided=two_sided)
    steps = np.sqrt(np.diff([0.0, *information]))
    motion = np.cumsum(np.random.default_rng(1).standard_normal((walks, len(information))) * steps, axis=1)
    standardised = motion / np.sqrt(information)
    past = (np.abs(standardised) if two_sided else standardised) >= found
    crossed = np.maximum.accumulate(past, axis=1).sum(axis=0)
    for hits, error in zip(crossed, spent, strict=True):
        assert stats.binomtest(int(hits), walks, error).pvalue > 1e-5


def test_one_look_at_the_end_has_the_normal_quantile() -> None:
    assert boundaries([1.0], [0.05], two_sided=True) == pytest.approx((stats.norm.ppf(0.975),), abs=1e-9)
    assert boundaries([1.0], [0.05], two_sided=False) == pytest.approx((stats.norm.ppf(0.95),), abs=1e-9)


def test_a_look_that_may_spend_nothing_more_is_never_crossed() -> None:
    first, second, third = boundaries([0.2, 0.5, 1.0], [0.01, 0.01, 0.05], two_sided=True)
    assert second == 9.0
    # The look in between takes nothing from the last.
    assert (first, third) == pytest.approx(boundaries([0.2, 1.0], [0.01, 0.05], two_sided=True), abs=1e-6)


@pytest.mark.parametrize(
    ("information", "spent", "said"),
    [
        ([], [], "0 looks and 0 errors"),
        ([0.5, 1.0], [0.05], "2 looks and 1 errors"),
        ([0.5, 0.5], [0.01, 0.05], "do not increase"),
        ([0.5, 1.1], [0.01, 0.05], "do not increase"),
        ([0.0, 1.0], [0.01, 0.05], "do not increase"),
        ([0.5, 1.0], [0.05, 0.01], "decreases"),
        ([0.5, 1.0], [0.05, 1.0], "or is all"),
    ],
)
def test_what_cannot_be_bounded_is_refused(information: list[float], spent: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        boundaries(information, spent, two_sided=True)
