"""What the gate does with simulated audits whose items come in clusters, all of them at once.

The same bounds, p-values and limits as `perturbation_evidence` has over clusters, as array arithmetic; a test holds the
two together audit by audit. How much the items of a cluster have in common nobody knows before the audit: here each of
them has, with chance `SHARED`, the answers that are the cluster's own, the same for all of these, and otherwise its
own. Clusters leak in the same way, in part as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from proctor.domain.evidence import ClusterCount
from proctor.evidence.answers import FloatArray, IntArray
from proctor.evidence.clusters import MIN_CLUSTERS, Clusters
from proctor.evidence.intervals import PSEUDO_ITEMS
from proctor.evidence.planning.simulated_audits import Bounds, Decisions, Limits, SimulatedAudits

#: Chance that an item's answers are its cluster's own and not the item's: two answers of a cluster then correlate as a
#: quarter of one answer with itself.
SHARED: Final = 0.5
#: Counts of patterns that are held at once.
_HELD: Final = 4_000_000


class ClusterSizes(NamedTuple):
    """How many items each cluster of a benchmark has."""

    sizes: tuple[int, ...]

    @classmethod
    def of(cls, labels: Sequence[str]) -> ClusterSizes | None:
        """Of items with these labels; None where each is a cluster of its own."""
        clusters = Clusters.of(labels)
        return None if clusters.sizes.size == clusters.n else cls(tuple(clusters.sizes.tolist()))

    @property
    def counted(self) -> ClusterCount:
        """Their numbers."""
        return Clusters.of(np.repeat(np.arange(len(self.sizes)), self.sizes).tolist()).counted

    def design_effect(self, items: int) -> float:
        """How much more the mean of so many items varies than that of independent ones: 1 + (n / G* − 1) · SHARED²."""
        sizes = self.of_items(items)
        return 1 + (float((sizes**2).sum()) / items - 1) * SHARED**2

    def of_items(self, items: int) -> IntArray:
        """Clusters for this many items: these sizes over and over, the last cut to fit; shape (G,)."""
        rounds = -(-items // sum(self.sizes))
        sizes = np.tile(np.array(self.sizes, dtype=np.int64), rounds)
        last = int(np.searchsorted(np.cumsum(sizes), items))
        sizes = sizes[: last + 1]
        sizes[-1] -= sizes.sum() - items
        return sizes


@dataclass(frozen=True, eq=False)
class ClusteredAudits(SimulatedAudits):
    """Pattern counts of audits, with the sums of D and of B over each cluster, shape (audits, G)."""

    sizes: IntArray
    """Shape (G,)."""
    d: FloatArray
    b: FloatArray

    @classmethod
    def simulate(
        cls, chances: FloatArray, sizes: IntArray, *, audits: int, rng: np.random.Generator, shared: float = SHARED
    ) -> ClusteredAudits:
        """Audits of clusters of these sizes.

        Args:
            chances: of each pattern, from `pattern_chances`.
            sizes: items of each cluster.
            audits: how many.
            rng: source of randomness.
            shared: chance that an item's answers are its cluster's.
        """
        block = max(1, _HELD // (chances.size * sizes.size))
        parts = []
        for start in range(0, audits, block):
            shape = (min(block, audits - start), sizes.size)
            common = rng.choice(chances.size, size=shape, p=chances.ravel())
            alike = rng.binomial(sizes, shared, size=shape)
            counts = rng.multinomial(sizes - alike, chances.ravel())
            np.put_along_axis(
                counts, common[..., None], np.take_along_axis(counts, common[..., None], 2) + alike[..., None], 2
            )
            parts.append(cls.of(counts.reshape(*shape, *chances.shape)))
        return cls(
            np.concatenate([part.counts for part in parts]),
            sizes,
            np.concatenate([part.d for part in parts]),
            np.concatenate([part.b for part in parts]),
        )

    @classmethod
    def of(cls, counts: IntArray) -> ClusteredAudits:
        """Audits of clusters with these pattern counts, shape (audits, G, 2, variants + 1); the same sizes in each."""
        canonical, right = np.indices(counts.shape[2:])
        d = (counts * (canonical - right / (counts.shape[3] - 1))).sum(axis=(2, 3))
        b = (counts * canonical).sum(axis=(2, 3)).astype(np.float64)
        return cls(counts.sum(axis=1).astype(np.int64), counts[0].sum(axis=(1, 2)).astype(np.int64), d, b)

    @property
    def _effective(self) -> float:
        return float(self.sizes.sum() ** 2 / (self.sizes**2).sum())

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Means of D and B after four pseudo-clusters, and the variances and covariance of these means."""
        size, groups = self.sizes.sum() / self._effective, self.sizes.size + PSEUDO_ITEMS
        n = self.sizes.sum() + PSEUDO_ITEMS * size
        pseudo = size * np.array([0.0, 1.0, -1.0, 0.0]), size * np.array([1.0, 1.0, 0.0, 0.0])
        mean_d, mean_b = self.d.sum(axis=1) / n, (self.b.sum(axis=1) + 2 * size) / n
        sizes = np.append(self.sizes, np.full(PSEUDO_ITEMS, size))

        def rest(sums: FloatArray, padding: FloatArray, mean: FloatArray) -> FloatArray:
            whole = np.concatenate([sums, np.broadcast_to(padding, (len(sums), PSEUDO_ITEMS))], axis=1)
            result: FloatArray = whole - mean[:, None] * sizes
            return result

        rest_d, rest_b = rest(self.d, pseudo[0], mean_d), rest(self.b, pseudo[1], mean_b)
        scale = groups / (groups - 1) / n**2
        return (
            mean_d,
            mean_b,
            scale * (rest_d**2).sum(axis=1),
            scale * (rest_b**2).sum(axis=1),
            scale * (rest_d * rest_b).sum(axis=1),
        )

    def inflation(self, level: float) -> Bounds:
        """Score inflation in points, as `clusters.clustered_score_inflation` gives it."""
        mean, _, variance, _, _ = self._moments
        half = special.stdtrit(self._effective - 1, 0.5 + level / 2) * np.sqrt(variance)
        value = self.d.sum(axis=1) / self.n
        low, high = np.maximum(-1.0, mean - half), np.minimum(1.0, mean + half)
        return Bounds(100 * value, 100 * np.minimum(low, value), 100 * np.maximum(high, value))

    def contamination_score(self, level: float) -> Bounds:
        """The Contamination Score, as `clusters.clustered_contamination_score` gives it; 0 where it is undefined."""
        mean_d, mean_b, var_d, var_b, cov = self._moments
        t2 = special.stdtrit(self._effective - 1, 0.5 + level / 2) ** 2
        first = mean_b**2 - t2 * var_b
        bounded = first > 0
        divisor = np.where(bounded, first, 1.0)
        second = mean_b * mean_d - t2 * cov
        root = np.sqrt(np.maximum(second**2 - first * (mean_d**2 - t2 * var_d), 0.0))
        low, high = (second - root) / divisor, np.minimum(1.0, (second + root) / divisor)
        right = self.b.sum(axis=1)
        defined = right > 0
        value = np.where(defined, self.d.sum(axis=1) / np.where(defined, right, 1.0), 0.0)
        low = np.where(defined, np.minimum(low, value), low)
        high = np.where(defined, np.maximum(high, value), high)
        return Bounds(value, np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf))

    def canonical_low(self, level: float) -> FloatArray:
        """The lower bound of the canonical accuracy, as `clusters.clustered_share` gives it."""
        if self._effective == self.sizes.sum():
            return super().canonical_low(level)
        _, mean, _, variance, _ = self._moments
        low = mean - special.stdtrit(self._effective - 1, 0.5 + level / 2) * np.sqrt(variance)
        result: FloatArray = np.minimum(np.maximum(0.0, low), self.b.sum(axis=1) / self.n)
        return result

    def decisions(self, limits: Limits) -> Decisions:
        """What the gate decides; of too few clusters nothing."""
        if self.sizes.size < MIN_CLUSTERS:
            none = np.zeros(len(self.counts), dtype=np.bool_)
            return Decisions(none, none)
        return super().decisions(limits)

    def _studentised(self) -> FloatArray:
        """p of `clusters.clustered_test` for each audit."""
        mean, _, variance, _, _ = self._moments
        result: FloatArray = special.stdtr(self._effective - 1, -mean / np.sqrt(variance))
        return result
