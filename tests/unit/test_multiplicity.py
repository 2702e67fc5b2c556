"""Corrections of families: against their definitions, published figures, statsmodels, and the rates they bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from proctor.evidence.multiplicity import Correction, benjamini_hochberg, correct_family, holm

#: Benjamini and Hochberg (1995), section 3.2: fifteen hypotheses of a study of heart attacks.
PUBLISHED = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0,
]  # fmt: skip

p_lists = st.lists(st.floats(0, 1), max_size=12)


@given(p_lists)
def test_benjamini_hochberg_is_the_smallest_level_at_which_the_step_up_rule_rejects(p_values: list[float]) -> None:
    n = len(p_values)
    for p_value, adjusted in zip(p_values, benjamini_hochberg(p_values), strict=True):
        levels = [n * other / sum(p <= other for p in p_values) for other in p_values if other >= p_value]
        assert adjusted == pytest.approx(min(1.0, *levels))


@given(p_lists)
def test_holm_is_the_largest_of_the_step_down_products(p_values: list[float]) -> None:
    n = len(p_values)
    for p_value, adjusted in zip(p_values, holm(p_values), strict=True):
        products = [(n - sum(p < other for p in p_values)) * other for other in p_values if other <= p_value]
        assert adjusted == pytest.approx(min(1.0, max(products)))


@given(p_lists)
def test_screening_is_never_stricter_than_deciding(p_values: list[float]) -> None:
    for raw, screened, decided in zip(p_values, benjamini_hochberg(p_values), holm(p_values), strict=True):
        assert raw <= screened + 1e-12
        assert screened <= decided + 1e-12


def test_both_agree_with_statsmodels_ties_included() -> None:
    p_values = [*np.random.default_rng(1).random(40) ** 3, 0.01, 0.01, 0.0, 1.0]
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])
    assert benjamini_hochberg(p_values) == pytest.approx(multipletests(p_values, method="fdr_bh")[1])


def test_the_published_example_rejects_four_and_three() -> None:
    labels = [f"H{i}" for i in range(1, 16)]
    p_values = dict(zip(labels, PUBLISHED, strict=True))
    screened = correct_family("heart attacks", p_values, alpha=0.05, method=Correction.BENJAMINI_HOCHBERG)
    decided = correct_family("heart attacks", p_values, alpha=0.05)
    assert screened.rejected == ("H1", "H2", "H3", "H4")
    assert decided.rejected == ("H1", "H2", "H3")


def test_a_family_says_what_it_is_and_keeps_the_order_given() -> None:
    family = correct_family("arms of the protocol channel", {"b": 0.04, "a": 0.01}, alpha=0.05)
    assert [(test.label, test.p_adjusted, test.rejected) for test in family.tests] == [
        ("b", 0.04, True),
        ("a", 0.02, True),
    ]
    assert (family.name, family.method, family.n_tests) == ("arms of the protocol channel", "holm", 2)
    assert "under any dependence" in family.controls


def test_a_p_value_of_exactly_alpha_is_not_rejected() -> None:
    assert correct_family("one", {"only": 0.05}, alpha=0.05).rejected == ()


def test_an_empty_family_rejects_nothing() -> None:
    family = correct_family("none", {}, alpha=0.05, method=Correction.BENJAMINI_HOCHBERG)
    assert (family.n_tests, family.tests, family.rejected) == (0, (), ())


@pytest.mark.parametrize("wrong", [-0.01, 1.01, float("nan")])
def test_what_is_no_p_value_is_refused_with_its_label(wrong: float) -> None:
    with pytest.raises(ValueError, match=r"'truncation' in the family 'arms' is no p-value"):
        correct_family("arms", {"truncation": wrong}, alpha=0.05)


def test_the_rates_that_are_bounded_stay_bounded() -> None:
    """20 tests, 15 of them of true nulls: Holm's chance of one false rejection, and BH's mean false share."""
    rng, replications = np.random.default_rng(12), 2_000
    any_false, false_share = 0, np.zeros(replications)
    for i in range(replications):
        p_values = np.append(rng.random(15), stats.norm.sf(rng.normal(3.0, 1.0, 5))).tolist()
        any_false += min(holm(p_values)[:15]) < 0.05
        rejected = np.array(benjamini_hochberg(p_values)) < 0.05
        false_share[i] = rejected[:15].sum() / max(rejected.sum(), 1)
    assert stats.binomtest(any_false, replications, 0.05, alternative="greater").pvalue > 1e-3
    # Exactly alpha times the share of true nulls for independent tests.
    assert false_share.mean() == pytest.approx(0.05 * 15 / 20, abs=4 * false_share.std() / replications**0.5)
