"""Items in clusters: intervals and a test where items that share a passage or a template rise and fall together.

The cluster, not the item, is then what was drawn independently. Estimates stay means over items; their variance is the
cluster-robust one, G / (G − 1) · Σ_g (Σ_{i in g} residual_i)² / n² (Liang and Zeger 1986, Biometrika 73, 13–22; for
evaluations Miller 2024, arXiv 2411.00640, where the factor is left out). Quantiles are of the t distribution
with G* − 1 degrees of freedom, where G* = n² / Σ_g n_g² is the number of clusters of equal size that would tell as much
(Carter, Schnepel and Steigerwald 2017, Review of Economics and Statistics 99, 698–709); G* = G where sizes are equal.

The four pseudo-items of `intervals` become four pseudo-clusters of n / G* items each. Single pseudo-items would not do:
where a cluster leaks or not as a whole, a sample of near-deterministic answers misses a leaked cluster as often as a
sample of G* items misses a leaked item. Where every item is a cluster of its own, each figure is the unclustered one.
The price is that of not knowing: however alike all answers are, D is known to about ±13 points from 20 clusters of 10
items, ±5 from 50, and ±1.7 from 200 of 3, because a twentieth of 20 clusters may have leaked unseen.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from proctor.domain.evidence import Estimate
from proctor.evidence.answers import FloatArray, IntArray, PairedAnswers
from proctor.evidence.intervals import (
    PSEUDO_ITEMS,
    PairMoments,
    contamination_score_bounds,
    inflation_bounds,
    z_quantile,
)

_ONE_CLUSTER = "; unbounded, because one cluster shows no spread between clusters"


class Clusters(NamedTuple):
    """Which of G clusters each of n items is in."""

    codes: IntArray
    """Shape (n,); 0 to G − 1."""
    sizes: IntArray
    """Shape (G,); items of each cluster, at least one."""

    @classmethod
    def of(cls, labels: Sequence[Hashable]) -> Clusters:
        """Clusters from one label an item, in the order of the items."""
        places: dict[Hashable, int] = {}
        codes = np.array([places.setdefault(label, len(places)) for label in labels], dtype=np.int64)
        return cls(codes, np.bincount(codes, minlength=len(places)).astype(np.int64))

    @classmethod
    def single(cls, n: int) -> Clusters:
        """Every item a cluster of its own."""
        return cls(np.arange(n, dtype=np.int64), np.ones(n, dtype=np.int64))

    @property
    def n(self) -> int:
        """Number of items."""
        return self.codes.size

    @property
    def effective(self) -> float:
        """G* = n² / Σ n_g²: clusters of equal size that tell as much; between 1 and G, and 0 without an item."""
        return self.n**2 / float((self.sizes**2).sum()) if self.n else 0.0

    @property
    def pseudo_size(self) -> float:
        """Items in a pseudo-cluster: n / G*."""
        return self.n / self.effective

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum of a value over the items of each cluster; shape (G,)."""
        return np.bincount(self.codes, weights=values, minlength=self.sizes.size).astype(np.float64)

    def quantile(self, probability: float) -> float:
        """Quantile of t with G* − 1 degrees of freedom; of the normal where every item is a cluster of its own."""
        if self.effective == self.n:
            return z_quantile(probability)
        return float(special.stdtrit(self.effective - 1, probability))


def clustered_moments(differences: FloatArray, canonical: FloatArray, clusters: Clusters) -> PairMoments:
    """Moments of D and B after four pseudo-clusters; `var / n` is the cluster-robust variance of the mean.

    Args:
        differences: D of each item, -1 to 1; shape (n,).
        canonical: share of right canonical answers of each item, 0 to 1; shape (n,).
        clusters: of the items; at least two.
    """
    size, groups = clusters.pseudo_size, clusters.sizes.size + PSEUDO_ITEMS
    n = clusters.n + PSEUDO_ITEMS * size
    mean_d = float(differences.sum()) / n
    mean_b = (float(canonical.sum()) + 2 * size) / n
    # right–right, right–wrong, wrong–right, wrong–wrong
    rest_d = np.append(clusters.sums(differences - mean_d), size * (np.array([0.0, 1.0, -1.0, 0.0]) - mean_d))
    rest_b = np.append(clusters.sums(canonical - mean_b), size * (np.array([1.0, 1.0, 0.0, 0.0]) - mean_b))
    scale = groups / (groups - 1) / n
    return PairMoments(
        n,
        mean_d,
        mean_b,
        scale * float((rest_d**2).sum()),
        scale * float((rest_b**2).sum()),
        scale * float((rest_d * rest_b).sum()),
    )


def widened(moments: PairMoments, clusters: Clusters, level: float) -> PairMoments:
    """Moments whose normal bounds are the t bounds: variances times the squared ratio of the quantiles."""
    ratio = (clusters.quantile(0.5 + level / 2) / z_quantile(0.5 + level / 2)) ** 2
    return moments._replace(var_d=ratio * moments.var_d, var_b=ratio * moments.var_b, cov=ratio * moments.cov)


def clustered_score_inflation(
    differences: FloatArray, canonical: FloatArray, clusters: Clusters, level: float
) -> Estimate:
    """D, averaged over items, in percentage points, with bounds over clusters.

    Undefined without an item; unbounded with one cluster.
    """
    method = _method("normal", clusters)
    if clusters.n == 0:
        return Estimate(value=None, low=None, high=None, level=level, method=method)
    value = float(differences.sum()) / clusters.n
    if clusters.sizes.size == 1 < clusters.n:
        return Estimate(value=100 * value, low=None, high=None, level=level, method=method + _ONE_CLUSTER)
    low, high = inflation_bounds(widened(clustered_moments(differences, canonical, clusters), clusters, level), level)
    return Estimate(
        value=100 * value, low=100 * min(low, value), high=100 * max(high, value), level=level, method=method
    )


def clustered_contamination_score(
    differences: FloatArray, canonical: FloatArray, clusters: Clusters, level: float
) -> Estimate:
    """Mean D / mean canonical accuracy with Fieller's bounds over clusters.

    Undefined where no canonical answer is right; unbounded where canonical accuracy may be 0, or with one cluster.
    """
    method = _method("Fieller", clusters)
    right = float(canonical.sum())
    value = float(differences.sum()) / right if right > 0 else None
    if clusters.n == 0 or clusters.sizes.size == 1 < clusters.n:
        reason = _ONE_CLUSTER if clusters.n else "; unbounded, because there is no item"
        return Estimate(value=value, low=None, high=None, level=level, method=method + reason)
    moments = clustered_moments(differences, canonical, clusters)
    bounds = contamination_score_bounds(widened(moments, clusters, level), level)
    if bounds is None:
        method += "; unbounded, because canonical accuracy is not clearly above 0"
        return Estimate(value=value, low=None, high=None, level=level, method=method)
    low, high = bounds
    if value is not None:
        low, high = min(low, value), max(high, value)
    return Estimate(value=value, low=low, high=high, level=level, method=method)


def inflation_by_cluster(answers: PairedAnswers, labels: Sequence[Hashable], level: float) -> Estimate:
    """`clustered_score_inflation` of paired answers, one cluster label an item."""
    canonical = answers.canonical.astype(np.float64)
    return clustered_score_inflation(answers.differences, canonical, _clusters(answers, labels), level)


def contamination_score_by_cluster(answers: PairedAnswers, labels: Sequence[Hashable], level: float) -> Estimate:
    """`clustered_contamination_score` of paired answers, one cluster label an item."""
    canonical = answers.canonical.astype(np.float64)
    return clustered_contamination_score(answers.differences, canonical, _clusters(answers, labels), level)


def clustered_test(differences: FloatArray, clusters: Clusters) -> float:
    """p-value of the one-sided test that the mean difference over items is at most 0, clusters independent.

    t = mean / cluster-robust standard error on G* − 1 degrees of freedom, or n − 1 where every item is a cluster of
    its own, which is `studentised_test`. The size is asymptotic in the number of clusters: up to 10 % at a nominal 5
    for near-deterministic answers in 20 clusters, where the interval holds its level and is what decides.

    Degenerate cases as there: fewer than two clusters give 1; without spread between clusters the sign decides.
    """
    groups = clusters.sizes.size
    if groups < 2:
        return 1.0
    mean = float(differences.sum()) / clusters.n
    rest = clusters.sums(differences - mean)
    variance = groups / (groups - 1) * float((rest**2).sum()) / clusters.n**2
    if bool((differences == differences[0]).all()) or variance == 0.0:
        return 0.0 if mean > 0 else 1.0
    return float(special.stdtr(clusters.effective - 1, -mean / math.sqrt(variance)))


def clustered_accuracy(right: FloatArray, clusters: Clusters, level: float) -> Estimate:
    """Accuracy over items, each right or wrong: Wilson's interval with the effective number of items.

    The effective number is n divided by the design effect (cluster-robust variance over that of independent items, at
    least 1; n / G* where all answers are alike and it is 0 / 0), times (z / t)² for the t quantile. Korn and Graubard
    (1998), Survey Methodology 24, 193–201, for the effective size; Franco, Little, Louis and Slud (2019), Journal of
    Survey Statistics and Methodology 7, 334–364, for Wilson's interval with it.

    Raises:
        ValueError: for a value that is neither 0 nor 1.
    """
    if not bool(np.isin(right, (0.0, 1.0)).all()):
        raise ValueError("every item is right (1) or wrong (0); shares need clustered_moments")
    method = "Wilson" if clusters.effective == clusters.n else f"Wilson, clustered ({_counted(clusters)})"
    if clusters.n == 0:
        return Estimate(value=None, low=None, high=None, level=level, method=method)
    share = float(right.sum()) / clusters.n
    groups = clusters.sizes.size
    if groups == 1 < clusters.n:
        return Estimate(value=share, low=None, high=None, level=level, method=method + _ONE_CLUSTER)
    design_effect = clusters.pseudo_size
    independent = share * (1 - share) * clusters.n
    if independent > 0 and clusters.effective < clusters.n:
        rest = clusters.sums(right - share)
        design_effect = max(1.0, groups / (groups - 1) * float((rest**2).sum()) / independent)
    shrink = (z_quantile(0.5 + level / 2) / clusters.quantile(0.5 + level / 2)) ** 2
    low, high = _wilson_bounds(share, clusters.n / design_effect * shrink, level)
    return Estimate(value=share, low=low, high=high, level=level, method=method)


def _wilson_bounds(share: float, n: float, level: float) -> tuple[float, float]:
    """Wilson's bounds for a number of items that need not be whole."""
    z2 = z_quantile(0.5 + level / 2) ** 2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return (0.0 if share == 0 else max(0.0, centre - half)), (1.0 if share == 1 else min(1.0, centre + half))


def _clusters(answers: PairedAnswers, labels: Sequence[Hashable]) -> Clusters:
    if len(labels) != answers.n:
        raise ValueError(f"{len(labels)} cluster labels for {answers.n} items; each item needs one")
    return Clusters.of(labels)


def _method(kind: str, clusters: Clusters) -> str:
    if clusters.effective == clusters.n:
        return f"{kind} interval with four pseudo-items, clustered by item"
    return f"{kind} interval with four pseudo-clusters, {_counted(clusters)}"


def _counted(clusters: Clusters) -> str:
    groups = clusters.sizes.size
    alike = f", as {clusters.effective:.1f} of equal size" if clusters.sizes.min() != clusters.sizes.max() else ""
    return f"{groups:,} cluster{'' if groups == 1 else 's'}{alike}, t quantile"
