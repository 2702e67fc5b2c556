"""Holm's correction: against its definition, statsmodels, and the rate that it bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from proctor.evidence.multiplicity import holm

p_lists = st.lists(st.floats(0, 1), max_size=12)


@given(p_lists)
def test_holm_is_the_largest_of_the_step_down_products(p_values: list[float]) -> None:
    n = len(p_values)
    for p_value, adjusted in zip(p_values, holm(p_values), strict=True):
        products = [(n - sum(p < other for p in p_values)) * other for other in p_values if other <= p_value]
        assert adjusted == pytest.approx(min(1.0, max(products)))


def test_it_agrees_with_statsmodels_ties_included() -> None:
    p_values = [*np.random.default_rng(1).random(40) ** 3, 0.01, 0.01, 0.0, 1.0]
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_a_true_hypothesis_of_a_family_is_rejected_no_more_often_than_alpha() -> None:
    """20 tests, 15 of them of true nulls: the chance of one false rejection."""
    rng, replications = np.random.default_rng(12), 2_000
    any_false = 0
    for _ in range(replications):
        p_values = np.append(rng.random(15), stats.norm.sf(rng.normal(3.0, 1.0, 5))).tolist()
        any_false += min(holm(p_values)[:15]) < 0.05
    assert stats.binomtest(any_false, replications, 0.05, alternative="greater").pvalue > 1e-3
