"""False discoveries of exact tests: against the definition, written out, and the rate that is bounded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proctor.evidence.discrete_fdr import DiscreteP, discoveries

#: Of each of a few kinds of test the p-values that it can give.
KINDS = ((0.01, 1.0), (0.008, 0.1, 1.0), (0.04, 0.4, 1.0), (0.3, 1.0), (1.0,), tuple(n / 500 for n in range(1, 501)))


@st.composite
def families(draw: st.DrawFn) -> list[DiscreteP]:
    kinds = draw(st.lists(st.sampled_from(KINDS), max_size=15))
    return [DiscreteP(draw(st.sampled_from(kind[:4] + kind[-1:])), kind) for kind in kinds]


def chance(test: DiscreteP, t: float) -> float:
    return max((point for point in test.attainable if point <= t), default=0.0)


def written_out(tests: list[DiscreteP], alpha: float) -> list[bool]:
    """Critical values as in Döhler, Durand & Roquain (2018), over the tests that could reach alpha."""
    family = [test for test in tests if min(test.attainable) <= alpha]
    m, points = len(family), sorted({point for test in family for point in test.attainable})
    last = [
        t
        for t in points
        if all(chance(test, t) < 1.0 for test in family)
        and sum(chance(test, t) / (1.0 - chance(test, t)) for test in family) / m <= alpha
    ]
    if not last:
        return [False] * len(tests)
    top = max(last)
    critical = [
        max(
            (
                t
                for t in points
                if t <= top and sum(chance(test, t) / (1.0 - chance(test, top)) for test in family) <= alpha * k
            ),
            default=-1.0,
        )
        for k in range(1, m + 1)
    ]
    ordered = sorted(test.value for test in family)
    rejected = max((k for k in range(1, m + 1) if ordered[k - 1] <= critical[k - 1]), default=0)
    return [rejected > 0 and test.value <= ordered[rejected - 1] for test in tests]


@given(families(), st.sampled_from([0.01, 0.05, 0.2]))
def test_discoveries_are_those_of_the_definition(tests: list[DiscreteP], alpha: float) -> None:
    assert discoveries(tests, alpha) == written_out(tests, alpha)


@given(families())
def test_the_order_of_the_tests_changes_nothing(tests: list[DiscreteP]) -> None:
    order = np.random.default_rng(0).permutation(len(tests))
    found = discoveries(tests, 0.05)
    assert [found[place] for place in order] == discoveries([tests[place] for place in order], 0.05)


def test_a_test_that_could_never_be_a_discovery_takes_nothing_from_the_others() -> None:
    found = DiscreteP(0.01, (0.01, 1.0))
    assert discoveries([found], 0.05) == [True]
    assert discoveries([found, *[DiscreteP(1.0, (1.0,))] * 10_000], 0.05)[0]


def test_without_a_test_nothing_is_discovered() -> None:
    assert discoveries([], 0.05) == []
    assert discoveries([DiscreteP(1.0, (1.0,))], 0.05) == [False]


@pytest.mark.parametrize("true_effects", [0, 20])
def test_of_the_discoveries_no_more_than_alpha_are_false(true_effects: int) -> None:
    """100 tests of two binomials of ten draws each, exact given their sum; the share of false ones on average."""
    rng, share, replications = np.random.default_rng(5), [], 400
    for _ in range(replications):
        tests = []
        for number in range(100):
            first = int(rng.binomial(10, 0.2))
            second = int(rng.binomial(10, 0.9 if number < true_effects else 0.2))
            total = first + second
            ways = [math.comb(10, a) * math.comb(10, total - a) for a in range(min(10, total) + 1)]
            apart = {a: abs(2 * a - total) for a in range(len(ways)) if ways[a]}
            tails = {d: sum(ways[a] for a in apart if apart[a] >= d) / sum(ways) for d in set(apart.values())}
            tests.append(DiscreteP(tails[abs(first - second)], tuple(sorted(set(tails.values())))))
        found = discoveries(tests, 0.05)
        share.append(sum(found[true_effects:]) / max(1, sum(found)))
    assert stats.ttest_1samp(share, 0.05, alternative="greater").pvalue > 1e-3
    assert not true_effects or sum(found[:true_effects]) > 15
