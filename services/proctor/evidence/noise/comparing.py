"""Noisy routers against a clean arm, item by item, with gains whose intervals hold for all router counts together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from proctor.domain.estimate import Estimate
from proctor.domain.evidence import RouterComparison
from proctor.evidence.answers import FloatArray
from proctor.evidence.clusters import Clusters, ClusterSums, clustered_test, clusters_among
from proctor.evidence.intervals import PairSums, Sums, inflation_bounds
from proctor.evidence.multiplicity import holm
from proctor.evidence.noise.gains import one_sided_mcnemar

_METHOD: Final = "normal interval with four pseudo-items, Bonferroni over the router counts"

Right = Mapping[str, bool]
"""Item id → whether an arm's answer is right."""


class Changes(NamedTuple):
    """Two arms over the same items."""

    n: int
    clean_right: int
    noisy_right: int
    improve: int
    degrade: int


class Compared(NamedTuple):
    """Two arms to compare: a count of noisy routers, and the clean arm beside it."""

    router_count: int
    clean_arm: str
    clean: Right
    noisy: Right
    items: Sequence[str]
    """The items to compare them on, each with an answer in both."""


class Comparisons(NamedTuple):
    """The comparisons of an audit, each a family of its own."""

    own: tuple[RouterComparison, ...]
    """Against one clean router."""
    matched: tuple[RouterComparison, ...] | None
    """Against as many clean routers; None where none were asked."""
    without_leaks: tuple[RouterComparison, ...]
    """Against one clean router, over the items that no noisy message gives away."""

    def unexplained_gains(self, alpha: float) -> set[int]:
        """The router counts whose gain is there in every comparison."""
        gains = significant_counts(self.own, alpha) & significant_counts(self.without_leaks, alpha)
        return gains if self.matched is None else gains & significant_counts(self.matched, alpha)


def significant_counts(comparisons: Sequence[RouterComparison], alpha: float) -> set[int]:
    """The router counts whose gain survives the correction of its family."""
    return {one.router_count for one in comparisons if one.holm_p < alpha}


def changes(clean: Right, noisy: Right, items: Sequence[str]) -> Changes:
    """Count right answers and transitions.

    Raises:
        KeyError: for an item without an answer in an arm.
    """
    pairs = [(clean[item], noisy[item]) for item in items]
    return Changes(
        n=len(pairs),
        clean_right=sum(before for before, _ in pairs),
        noisy_right=sum(after for _, after in pairs),
        improve=sum(after and not before for before, after in pairs),
        degrade=sum(before and not after for before, after in pairs),
    )


def compare(
    family: Sequence[Compared], *, level: float, clusters: Mapping[str, str] = MappingProxyType({})
) -> tuple[RouterComparison, ...]:
    """Compare each pair of arms; the family is corrected together.

    The p-value is one-sided exact McNemar's, corrected by Holm; the gain has the normal interval of a paired
    difference after four pseudo-items, at 1 − (1 − level) / k for k pairs. A pair without a single item is left out
    of the result, and of the family: nothing is measured there.

    Where items come in clusters, a p-value is the larger of McNemar's and that of the mean gain over clusters
    (`clusters.clustered_test`), and the interval is over clusters as well.

    Args:
        family: the pairs.
        level: at which all intervals hold together.
        clusters: item id → its cluster, of the items that are in one.
    """
    counted = [(pair, changes(pair.clean, pair.noisy, pair.items)) for pair in family if pair.items]
    groups = [clusters_among(pair.items, clusters) for pair, _ in counted]
    p_values = [_p_value(pair, found, own) for (pair, found), own in zip(counted, groups, strict=True)]
    adjusted = holm(p_values) if p_values else ()
    one = 1 - (1 - level) / max(1, len(counted))
    return tuple(
        RouterComparison(
            router_count=pair.router_count,
            clean_arm=pair.clean_arm,
            n=found.n,
            clean_accuracy=found.clean_right / found.n,
            noisy_accuracy=found.noisy_right / found.n,
            gain=_gain(pair, found, own, one, level),
            improve=found.improve,
            degrade=found.degrade,
            p_value=p_value,
            holm_p=holm_p,
        )
        for (pair, found), own, p_value, holm_p in zip(counted, groups, p_values, adjusted, strict=True)
    )


def _p_value(pair: Compared, found: Changes, clusters: Clusters | None) -> float:
    exact = one_sided_mcnemar(found.improve, found.degrade)
    return exact if clusters is None else max(exact, clustered_test(_gains(pair), clusters))


def _gains(pair: Compared) -> FloatArray:
    """1 for each item that turned right, -1 for each that turned wrong."""
    return np.array([pair.noisy[item] - pair.clean[item] for item in pair.items], dtype=np.float64)


def _gain(pair: Compared, found: Changes, clusters: Clusters | None, one: float, level: float) -> Estimate:
    value, gained = (found.improve - found.degrade) / found.n, found.improve - found.degrade
    sums: Sums = PairSums(found.n, gained, found.noisy_right, found.improve + found.degrade, found.improve)
    method = _METHOD
    if clusters is not None:
        right = np.array([pair.noisy[item] for item in pair.items], dtype=np.float64)
        sums = ClusterSums.of(_gains(pair), right, clusters)
        method = f"{sums.method('normal')}, Bonferroni over the router counts"
        if why := sums.unbounded():
            return Estimate(value=value, low=None, high=None, level=level, method=method + why)
    low, high = inflation_bounds(sums.moments(one), one)
    return Estimate(value=value, low=min(low, value), high=max(high, value), level=level, method=method)
