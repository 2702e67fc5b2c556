"""How much of the error is spent by each share of the items."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from proctor.evidence.sequential.spending import Spending


@pytest.mark.parametrize("spending", Spending)
@pytest.mark.parametrize("alpha", [0.001, 0.025, 0.05, 0.5])
def test_nothing_is_spent_before_the_first_item_and_all_by_the_last(spending: Spending, alpha: float) -> None:
    assert spending.spent(0.0, alpha) == 0.0
    assert spending.spent(1.0, alpha) == alpha
    assert spending.spent(1.0 - 1e-12, alpha) == pytest.approx(alpha, rel=1e-9)


@pytest.mark.parametrize("spending", Spending)
def test_what_is_spent_never_decreases(spending: Spending) -> None:
    spent = [spending.spent(share / 200, 0.025) for share in range(201)]
    assert spent == sorted(spent)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
def test_the_functions_are_those_of_lan_and_demets(share: float) -> None:
    obrien_fleming = 2 - 2 * stats.norm.cdf(stats.norm.ppf(1 - 0.025 / 2) / math.sqrt(share))
    assert Spending.OBRIEN_FLEMING.spent(share, 0.025) == pytest.approx(obrien_fleming, rel=1e-6)
    pocock = 0.025 * math.log(1 + (math.e - 1) * share)
    assert Spending.POCOCK.spent(share, 0.025) == pytest.approx(pocock, rel=1e-12)
