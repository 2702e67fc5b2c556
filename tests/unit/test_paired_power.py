"""Power of a paired comparison: the formula against published figures, the exact test against its own simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.evidence.paired.discordance import mcnemar_exact
from proctor.evidence.paired.power import mcnemar_power, paired_power, plan_comparison


@pytest.mark.parametrize(("n", "discordance", "expected"), [(200, 0.28, 0.104), (1319, 0.10, 0.024)])
def test_the_smallest_difference_is_that_of_the_field_notes(n: int, discordance: float, expected: float) -> None:
    assert plan_comparison(discordance, n=n, difference=None).mde == pytest.approx(expected, abs=0.0005)


@pytest.mark.parametrize(("discordance", "expected"), [(0.20, 626), (0.28, 877)])
def test_the_items_needed_are_those_of_the_field_notes(discordance: float, expected: int) -> None:
    plan = plan_comparison(discordance, n=None, difference=0.05)
    assert plan.items_needed == expected
    assert paired_power(expected, 0.05, discordance) >= 0.8 > paired_power(expected - 1, 0.05, discordance)


@given(st.integers(10, 5000), st.floats(0.02, 1.0))
def test_the_smallest_difference_has_the_power_asked_for(n: int, discordance: float) -> None:
    mde = plan_comparison(discordance, n=n, difference=None).mde
    if mde is not None and mde < discordance:
        assert paired_power(n, mde, discordance) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize(
    ("n", "difference", "discordance"), [(30, 0.3, 0.5), (60, 0.2, 0.2), (200, 0.104, 0.28), (700, -0.05, 0.2)]
)
def test_the_exact_tests_power_is_how_often_it_rejects(n: int, difference: float, discordance: float) -> None:
    draws = 4000
    cells = [(discordance + difference) / 2, (discordance - difference) / 2, 1 - discordance]
    drawn = np.random.default_rng(1).multinomial(n, cells, size=draws)
    found = np.mean([mcnemar_exact(int(a), int(b)) < 0.05 for a, b, _ in drawn])
    # Four standard errors.
    assert mcnemar_power(n, difference, discordance) == pytest.approx(found, abs=4 * np.sqrt(0.25 / draws))


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.5])
def test_the_exact_tests_power_is_the_sum_over_every_outcome(alpha: float) -> None:
    n, discordance, difference = 8, 0.6, 0.25
    gain, loss = (discordance + difference) / 2, (discordance - difference) / 2
    chance_of = {1: gain, -1: loss, 0: 1 - discordance}
    total = 0.0
    for outcome in itertools.product((1, -1, 0), repeat=n):
        if mcnemar_exact(outcome.count(1), outcome.count(-1)) < alpha:
            total += float(np.prod([chance_of[answer] for answer in outcome]))
    assert mcnemar_power(n, difference, discordance, alpha=alpha) == pytest.approx(total, rel=1e-9)


@given(st.integers(1, 2000), st.floats(0.01, 1.0), st.floats(0.001, 0.5))
def test_the_exact_test_never_exceeds_its_level(n: int, discordance: float, alpha: float) -> None:
    assert 0 <= mcnemar_power(n, 0.0, discordance, alpha=alpha) <= alpha


def test_the_exact_test_is_conservative_where_few_items_are_discordant() -> None:
    """Five items cannot give p < 0.05, whatever the formula hopes for; with many items the two agree."""
    assert plan_comparison(0.05, n=5, difference=None).exact_power == 0.0
    assert plan_comparison(0.28, n=200, difference=None).exact_power == pytest.approx(0.773, abs=0.001)
    assert plan_comparison(0.28, n=200_000, difference=None).exact_power == pytest.approx(0.8, abs=0.002)


def test_a_certain_difference_is_found_for_certain() -> None:
    plan = plan_comparison(1.0, n=10, difference=1.0)
    assert plan.power == 1.0
    assert plan.exact_power == pytest.approx(1.0)
    assert paired_power(2, 1.0, 1.0) == 0.0


def test_past_ten_million_items_the_exact_test_is_left_out() -> None:
    plan = plan_comparison(0.3, n=None, difference=0.0001)
    assert plan.items_needed is not None
    assert plan.items_needed > 10_000_000
    assert plan.exact_power is None


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="the items, the difference, or both"):
        plan_comparison(0.2, n=None, difference=None)
    with pytest.raises(ValueError, match="needs a discordance"):
        plan_comparison(0.2, n=100, difference=0.3)
    with pytest.raises(ValueError, match="needs a discordance"):
        mcnemar_power(100, 0.3, 0.2)
