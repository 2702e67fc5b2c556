"""The looks of an audit: their sizes and levels, and the p-value of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from proctor.domain.suite_design import DesignSection
from proctor.evidence.sequential.item_order import look_sizes
from proctor.evidence.sequential.schedule import Look, repeated_p_value, schedule

DESIGNS = [
    DesignSection(kind="sequential"),
    DesignSection(kind="sequential", spending="obrien_fleming"),
    DesignSection(kind="sequential", looks=(0.1, 0.15, 0.7, 1.0)),
    DesignSection(kind="sequential", looks=tuple(k / 20 for k in range(1, 21))),
]


def normal_of(looks: Sequence[Look]) -> Any:
    """The joint distribution of a standardised mean at these looks."""
    times = np.array([look.information for look in looks])
    correlation = np.sqrt(np.minimum.outer(times, times) / np.maximum.outer(times, times))
    return stats.multivariate_normal(cov=correlation, seed=1, abseps=1e-5, maxpts=2_000_000)


@pytest.mark.parametrize("design", DESIGNS[:3])
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_the_intervals_of_all_looks_hold_the_level_together(design: DesignSection, level: float) -> None:
    looks = schedule(design, look_sizes(design, 1_000), level=level, alpha=0.05)
    reach = [stats.norm.ppf(0.5 + look.level / 2) for look in looks]
    inside = normal_of(looks).cdf(reach, lower_limit=[-bound for bound in reach])
    assert inside == pytest.approx(level, abs=2e-4)


@pytest.mark.parametrize("design", DESIGNS[:3])
def test_the_tests_of_all_looks_have_the_suites_alpha_together(design: DesignSection) -> None:
    looks = schedule(design, look_sizes(design, 1_000), level=0.95, alpha=0.05)
    reach = [stats.norm.ppf(1 - look.alpha) for look in looks]
    assert 1 - normal_of(looks).cdf(reach) == pytest.approx(0.05, abs=2e-4)


def test_a_fixed_design_looks_once_at_the_suites_own_levels() -> None:
    design = DesignSection()
    assert look_sizes(design, 500) == (500,)
    (look,) = schedule(design, (500,), level=0.95, alpha=0.05)
    assert (look.number, look.n_looks, look.n_items, look.information, look.last) == (1, 1, 500, 1.0, True)
    assert (look.level, look.alpha) == pytest.approx((0.95, 0.05), abs=1e-9)


def test_the_default_looks_at_a_fifth_and_each_tenth_after_it() -> None:
    design = DesignSection(kind="sequential")
    assert look_sizes(design, 500) == (100, 150, 200, 250, 300, 350, 400, 450, 500)
    assert [look.last for look in schedule(design, look_sizes(design, 500), level=0.95, alpha=0.05)] == [False] * 8 + [
        True
    ]


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("n_items", [1, 2, 7, 19, 300])
def test_every_look_has_a_further_item_and_the_last_has_all(design: DesignSection, n_items: int) -> None:
    sizes = look_sizes(design, n_items)
    assert sizes[-1] == n_items
    assert all(before < after for before, after in pairwise((0, *sizes)))
    assert all(0.95 - 1e-9 <= look.level < 1 for look in schedule(design, sizes, level=0.95, alpha=0.05))


@pytest.mark.parametrize("sizes", [(), (5, 5), (5, 3), (0, 5)])
def test_looks_without_a_further_item_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="more items each time"):
        schedule(DESIGNS[0], sizes, level=0.95, alpha=0.05)


def test_what_a_look_may_spend_depends_on_no_later_look() -> None:
    early = schedule(DesignSection(kind="sequential", looks=(0.3, 1.0)), (30, 100), level=0.95, alpha=0.05)
    others = schedule(DesignSection(kind="sequential", looks=(0.3, 0.4, 1.0)), (30, 40, 100), level=0.95, alpha=0.05)
    assert early[0].level == others[0].level
    assert early[0].alpha == others[0].alpha


@pytest.mark.parametrize("spending", ["pocock", "obrien_fleming"])
@pytest.mark.parametrize("p_value", [1e-9, 0.03, 0.5, 1.0])
def test_the_p_of_a_single_look_is_its_own(spending: str, p_value: float) -> None:
    assert repeated_p_value(spending, [1.0], [p_value]) == p_value


@pytest.mark.parametrize("spending", ["pocock", "obrien_fleming"])
@settings(max_examples=30, deadline=None)
@given(p_values=st.lists(st.floats(1e-4, 0.999), min_size=1, max_size=5), alpha=st.sampled_from([0.01, 0.05, 0.3]))
def test_it_is_below_a_level_just_where_a_look_has_a_p_below_its_own(
    spending: str, p_values: list[float], alpha: float
) -> None:
    information = [0.2, 0.3, 0.5, 0.8, 1.0]
    design = DesignSection.model_validate({"kind": "sequential", "looks": information, "spending": spending})
    looks = schedule(design, (20, 30, 50, 80, 100), level=0.95, alpha=alpha)
    rejects = any(p < look.alpha for p, look in zip(p_values, looks, strict=False))
    found = repeated_p_value(spending, information[: len(p_values)], p_values)
    assert rejects == (found <= alpha) or found == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("spending", ["pocock", "obrien_fleming"])
@pytest.mark.parametrize("stop", [2, 3])
def test_under_the_null_it_is_uniform_or_larger_wherever_the_audit_stopped(spending: str, stop: int) -> None:
    information, audits = [0.3, 0.6, 1.0], 200
    steps = np.sqrt(np.diff([0.0, *information]))
    motion = np.cumsum(np.random.default_rng(2).standard_normal((audits, 3)) * steps, axis=1)
    p_values = stats.norm.sf(motion / np.sqrt(information))
    found = np.array([repeated_p_value(spending, information[:stop], row[:stop].tolist()) for row in p_values])
    for level in (0.02, 0.05, 0.2, 0.5):
        assert stats.binomtest(int((found <= level).sum()), audits, level, alternative="greater").pvalue > 1e-4
    if stop == 3:
        assert stats.kstest(found, "uniform").pvalue > 1e-4


def test_a_further_look_never_raises_it() -> None:
    information, p_values = [0.2, 0.4, 0.7, 1.0], [0.04, 0.3, 0.002, 0.9]
    found = [repeated_p_value("pocock", information[:k], p_values[:k]) for k in (1, 2, 3, 4)]
    assert found == sorted(found, reverse=True)
