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

The p-value is that of the same t: its interval and it never disagree. Without the pseudo-clusters the one-sided t
rejects up to 13 % of clean models at 5 % (few, or uneven, clusters whose answers are alike: D is then far from normal),
also where it is the larger of it and the exact test, for that takes items as independent and rejects up to 43 %. With
them it rejects about 5 % at most (docs/calibration.md). It costs no decision: a lower bound past a
limit implies a p below half of one minus the level.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from scipy import special

from proctor.domain.decision import Reason
from proctor.domain.evidence import ClusterCount, Estimate
from proctor.evidence.answers import FloatArray, IntArray, PairedAnswers, labels_of
from proctor.evidence.intervals import (
    PSEUDO_ITEMS,
    PairMoments,
    PairSums,
    Sums,
    inflation_estimate,
    mean_share,
    score_estimate,
    z_quantile,
)
from proctor.evidence.written_numbers import counted

#: From fewer clusters nothing is concluded: their spread is known too badly, and no simulation here goes below.
MIN_CLUSTERS: Final = 20


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
    def counted(self) -> ClusterCount:
        """Their numbers, for a report."""
        groups = int(self.sizes.size)
        return ClusterCount(
            n_clusters=groups,
            effective=self.effective,
            largest=int(self.sizes.max(initial=0)),
            enough=groups >= MIN_CLUSTERS,
        )

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum of a value over the items of each cluster; shape (G,)."""
        return np.bincount(self.codes, weights=values, minlength=self.sizes.size).astype(np.float64)


class ClusterSums(NamedTuple):
    """Sums over clusters, where cluster g has m_g items, and D_g and B_g are its sums of D and B over items."""

    n: float
    """Items: Σ m_g."""
    groups: float
    squares: float
    """Σ m_g²."""
    d: float
    """Σ D_g."""
    b: float
    dd: float
    """Σ D_g²."""
    bb: float
    db: float
    """Σ D_g·B_g."""
    dm: float
    """Σ D_g·m_g."""
    bm: float

    @classmethod
    def of(cls, differences: FloatArray, canonical: FloatArray, clusters: Clusters) -> ClusterSums:
        """The sums of a sample.

        Args:
            differences: D of each item, -1 to 1; shape (n,).
            canonical: share of right canonical answers of each item, 0 to 1; shape (n,).
            clusters: of the items.
        """
        d, b, m = clusters.sums(differences), clusters.sums(canonical), clusters.sizes.astype(np.float64)
        pairs = ((d, d), (b, b), (d, b), (d, m), (b, m))
        return cls(
            float(clusters.n),
            float(clusters.sizes.size),
            float((m * m).sum()),
            float(differences.sum()),
            float(canonical.sum()),
            *(float((one * other).sum()) for one, other in pairs),
        )

    @classmethod
    def alike(cls, items: PairSums, like: ClusterSums, answers: PairSums) -> ClusterSums:
        """Items whose clusters are not known, taken to be clustered as those of another sample are.

        Args:
            items: sums of the items.
            like: sums over the other sample's clusters; theirs are of that effective size, and raise variances by as
                much, or more: by the larger of what they do to D and to B, and never lower them.
            answers: sums over the other sample's items.
        """
        n, size = items.n, like.pseudo_size
        own, other = answers.with_pseudo_items(), like.with_pseudo_items()
        effect = max(1.0, *(
            clustered / other.n / (single / own.n)
            for clustered, single in ((other.var_d, own.var_d), (other.var_b, own.var_b))
        ))  # fmt: skip
        if n == 0:
            return cls(*(0.0,) * len(cls._fields))

        def spread(total: float, one: float, two: float) -> float:
            return effect * (total - one * two / n) + size * one * two / n

        d, b = items.d, items.b
        return cls(
            n, n / size, n * size, d, b, spread(items.dd, d, d), spread(b, b, b), spread(items.db, d, b),
            size * d, size * b,
        )  # fmt: skip

    @property
    def effective(self) -> float:
        """G*, the number of clusters of equal size that would tell as much."""
        return self.n**2 / self.squares if self.n else 0.0

    @property
    def pseudo_size(self) -> float:
        """Items in a pseudo-cluster: n / G*."""
        return self.squares / self.n

    @property
    def freedom(self) -> float:
        """Degrees of freedom: G* − 1."""
        return self.effective - 1

    @property
    def kept(self) -> float:
        """The test is of D after pseudo-clusters."""
        return self.n / (self.n + PSEUDO_ITEMS * self.pseudo_size)

    @property
    def leak(self) -> float:
        """Clusters leak as a whole, which is the hardest to find."""
        return self.pseudo_size * self.kept

    def quantile(self, probability: float) -> float:
        """Of t with G* − 1 degrees of freedom."""
        return float(special.stdtrit(self.freedom, probability))

    def scaled(self, factor: float) -> ClusterSums:
        """The sums of `factor` times as many clusters of the same sizes with the same answers."""
        return ClusterSums(*(value * factor for value in self))

    def with_pseudo_items(self) -> PairMoments:
        """Moments after four pseudo-clusters; `var / n` is the cluster-robust variance of the mean."""
        size, groups = self.pseudo_size, self.groups + PSEUDO_ITEMS
        n, squares = self.n + PSEUDO_ITEMS * size, self.squares + PSEUDO_ITEMS * size**2
        # right–right, right–wrong, wrong–right, wrong–wrong
        dd, bb, db = self.dd + 2 * size**2, self.bb + 2 * size**2, self.db + size**2
        bm = self.bm + 2 * size**2
        mean_d, mean_b = self.d / n, (self.b + 2 * size) / n
        scale = groups / (groups - 1) / n
        return PairMoments(
            n,
            mean_d,
            mean_b,
            scale * max(dd - 2 * mean_d * self.dm + mean_d**2 * squares, 0.0),
            scale * max(bb - 2 * mean_b * bm + mean_b**2 * squares, 0.0),
            scale * (db - mean_d * bm - mean_b * self.dm + mean_d * mean_b * squares),
        )

    def moments(self, level: float) -> PairMoments:
        """Those with pseudo-clusters, widened so that their normal bounds are the t bounds."""
        ratio = (self.quantile(0.5 + level / 2) / z_quantile(0.5 + level / 2)) ** 2
        found = self.with_pseudo_items()
        return found._replace(var_d=ratio * found.var_d, var_b=ratio * found.var_b, cov=ratio * found.cov)

    def method(self, kind: str) -> str:
        """How an interval of this kind is made."""
        groups, alike = round(self.groups), round(self.effective, 1)
        equal = "" if alike == groups else f", as {alike:.1f} of equal size"
        return f"{kind} interval with four pseudo-clusters, {counted(groups, 'cluster')}{equal}, t quantile"

    def unbounded(self) -> str:
        """One cluster bounds nothing."""
        return "; unbounded, because one cluster shows no spread between clusters" if self.groups <= 1 else ""


class Compared(Protocol):
    """A sample of items, each with what it loses by rewording."""

    @property
    def n(self) -> int:
        """Number of items."""
        ...

    @property
    def differences(self) -> FloatArray:
        """D of each item; -1 to 1."""
        ...

    @property
    def canonical_share(self) -> FloatArray:
        """Share of right canonical answers of each item."""
        ...

    @property
    def clusters(self) -> tuple[str, ...] | None:
        """One label an item; None where each is a cluster of its own."""
        ...


def sums_of(answers: Compared) -> Sums:
    """The sums that a sample's estimates follow from: over clusters where its items come in such, else over items."""
    clusters = clusters_of(answers)
    if clusters is None:
        return item_sums(answers)
    return ClusterSums.of(answers.differences, answers.canonical_share, clusters)


def item_sums(answers: Compared) -> PairSums:
    """The sums over items, whatever they share. Where a wording was asked several times its share counts, which varies
    less than single answers do: intervals are then on the wide side."""
    if isinstance(answers, PairedAnswers):
        return PairSums.of(answers)
    d, b = answers.differences, answers.canonical_share
    return PairSums(float(answers.n), float(d.sum()), float(b.sum()), float((d**2).sum()), float((d * b).sum()))


def clusters_of(answers: Compared) -> Clusters | None:
    """The clusters of a sample; None where every item is one of its own."""
    return _if_any(answers.clusters or ())


def clusters_among(item_ids: Sequence[str], clusters: Mapping[str, str]) -> Clusters | None:
    """The clusters of some items, in their order; None where every item is one of its own.

    Args:
        item_ids: the items, each once.
        clusters: item id → its cluster, of the items that are in one.
    """
    return _if_any(labels_of(item_ids, clusters)) if clusters else None


def _if_any(labels: Sequence[str]) -> Clusters | None:
    return None if len(set(labels)) == len(labels) else Clusters.of(labels)


def too_few_clusters(clusters: ClusterCount | None) -> tuple[Reason, ...]:
    """A reason where items come in so few clusters that nothing can be concluded from them; else empty."""
    if clusters is None or clusters.enough:
        return ()
    return (
        Reason(
            code="too_few_clusters",
            text=f"The items come in {counted(clusters.n_clusters, 'cluster')}, and how clusters differ cannot be told "
            f"from fewer than {MIN_CLUSTERS}: neither a leak nor its absence can be concluded. More items of the same "
            "clusters change nothing; items of further ones do.",
        ),
    )


def _sums(differences: FloatArray, canonical: FloatArray, clusters: Clusters) -> Sums:
    if clusters.effective < clusters.n:
        return ClusterSums.of(differences, canonical, clusters)
    return PairSums(
        float(clusters.n),
        float(differences.sum()),
        float(canonical.sum()),
        float((differences**2).sum()),
        float((differences * canonical).sum()),
    )


def clustered_score_inflation(
    differences: FloatArray, canonical: FloatArray, clusters: Clusters, level: float
) -> Estimate:
    """D, averaged over items, in percentage points, with bounds over clusters.

    Undefined without an item; unbounded with one cluster.
    """
    return inflation_estimate(_sums(differences, canonical, clusters), level)


def clustered_contamination_score(
    differences: FloatArray, canonical: FloatArray, clusters: Clusters, level: float
) -> Estimate:
    """Mean D / mean canonical accuracy with Fieller's bounds over clusters.

    Undefined where no canonical answer is right; unbounded where canonical accuracy may be 0, or with one cluster.
    """
    return score_estimate(_sums(differences, canonical, clusters), level)


def clustered_test(differences: FloatArray, clusters: Clusters) -> float:
    """p-value of the one-sided test that the mean difference over items is at most 0, clusters independent.

    Where items come in clusters: t = mean / cluster-robust standard error, both after four pseudo-clusters, on G* − 1
    degrees of freedom, so that p is below (1 − level) / 2 just where the interval of D at that level is above 0. Where
    every item is a cluster of its own it is `studentised_test`.

    Args:
        differences: one an item, -1 to 1; shape (n,).
        clusters: of the items.

    Fewer than two clusters give 1.
    """
    groups = clusters.sizes.size
    if groups < 2:
        return 1.0
    if clusters.effective < clusters.n:
        sums = ClusterSums.of(differences, np.zeros_like(differences), clusters)
        moments = sums.with_pseudo_items()
        return float(special.stdtr(sums.freedom, -moments.mean_d / math.sqrt(moments.var_d / moments.n)))
    if bool((differences == differences[0]).all()):
        return 0.0 if differences[0] > 0 else 1.0
    mean = float(differences.sum()) / groups
    variance = float(((differences - mean) ** 2).sum()) / (groups - 1)
    return float(special.stdtr(groups - 1, -mean / math.sqrt(variance / groups)))


def clustered_share(shares: FloatArray, clusters: Clusters, level: float) -> Estimate:
    """Mean over items of a share in [0, 1], e.g. an accuracy, with bounds over clusters.

    The normal interval with four pseudo-clusters, two right and two wrong, and the t quantile; `mean_share` where every
    item is a cluster of its own. Wilson's interval with an effective number of items (Korn and Graubard 1998, Survey
    Methodology 24, 193–201) was rejected: where a few clusters hold most items it covers 77 %.
    """
    if clusters.effective == clusters.n:
        return mean_share(shares, np.ones(shares.shape, dtype=np.int64), level)
    sums = ClusterSums.of(np.zeros_like(shares), shares, clusters)
    value, method, why = sums.b / sums.n, sums.method("normal"), sums.unbounded()
    if why:
        return Estimate(value=value, low=None, high=None, level=level, method=method + why)
    moments = sums.moments(level)
    half = z_quantile(0.5 + level / 2) * math.sqrt(moments.var_b / moments.n)
    low, high = max(0.0, moments.mean_b - half), min(1.0, moments.mean_b + half)
    return Estimate(value=value, low=min(low, value), high=max(high, value), level=level, method=method)
