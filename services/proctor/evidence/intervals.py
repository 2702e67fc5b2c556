"""Confidence intervals, with four pseudo-items where plain ones fail.

Before an interval is computed, four pseudo-items are added: canonical and reworded right–right, right–wrong,
wrong–right and wrong–wrong. This is Agresti and Min (2005), "Simple improved confidence intervals for comparing
matched proportions", Statistics in Medicine 24, 729–740 (one half in each cell there, one here, which also holds the
coverage of an item's *mean* over variants); its marginal is Agresti and Coull's "add two successes and two failures"
(1998). Without them the interval of a near-deterministic model has no width.

Items are the sampling unit throughout, so answers to rewordings of one item never count as independent.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, Self

from scipy import special

from proctor.domain.evidence import Estimate
from proctor.evidence.answers import FloatArray, IntArray, PairedAnswers

PSEUDO_ITEMS = 4


def z_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return float(special.ndtri(probability))


class PairMoments(NamedTuple):
    """Mean and (co)variance, over items, of the difference D and the canonical answer B."""

    n: float
    mean_d: float
    mean_b: float
    var_d: float
    var_b: float
    cov: float


class Sums(Protocol):
    """What a sample's estimates follow from: sums over independent items, or over clusters of them."""

    @property
    def n(self) -> float:
        """Items."""

    @property
    def d(self) -> float:
        """Sum of D over items."""

    @property
    def b(self) -> float:
        """Sum of B over items."""

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the variances."""

    @property
    def leak(self) -> float:
        """What a unit of leaked share adds to the variance of D: 1 where items leak one by one."""

    @property
    def kept(self) -> float:
        """What is left of D once pseudo-items are added, where a test is of that; 1 where it is of D itself."""

    def quantile(self, probability: float) -> float:
        """Quantile that bounds and tests are made of."""

    def scaled(self, factor: float) -> Self:
        """The sums of a sample `factor` times as large with the same answers."""

    def with_pseudo_items(self) -> PairMoments:
        """Moments after right–right, right–wrong, wrong–right and wrong–wrong are added."""

    def moments(self, level: float) -> PairMoments:
        """The same, of which normal bounds hold the level."""

    def method(self, kind: str) -> str:
        """How an interval of this kind is made."""

    def unbounded(self) -> str:
        """Why nothing is bounded, as the end of a sentence; empty where something is."""


class PairSums(NamedTuple):
    """Sums over items of D, B, D², B² (= B) and D·B."""

    n: float
    d: float
    b: float
    dd: float
    db: float

    @classmethod
    def of(cls, answers: PairedAnswers) -> PairSums:
        """The sums of a sample."""
        patterns = answers.patterns
        counts, d, b = patterns.counts, patterns.differences, patterns.canonical
        return cls(
            float(answers.n),
            float((counts * d).sum()),
            float((counts * b).sum()),
            float((counts * d * d).sum()),
            float((counts * d * b).sum()),
        )

    @property
    def freedom(self) -> float:
        """Degrees of freedom with pseudo-items."""
        return self.n + PSEUDO_ITEMS - 1

    @property
    def leak(self) -> float:
        """Items leak one by one."""
        return 1.0

    @property
    def kept(self) -> float:
        """The test is of D itself."""
        return 1.0

    def quantile(self, probability: float) -> float:
        """Of the standard normal distribution."""
        return z_quantile(probability)

    def scaled(self, factor: float) -> PairSums:
        """The sums of a sample `factor` times as large with the same answers."""
        return PairSums(*(value * factor for value in self))

    def moments(self, level: float) -> PairMoments:
        """Those with pseudo-items, whatever the level."""
        return self.with_pseudo_items()

    def method(self, kind: str) -> str:
        """How an interval of this kind is made."""
        return f"{kind} interval with four pseudo-items, clustered by item"

    def unbounded(self) -> str:
        """Something is always bounded."""
        return ""

    def with_pseudo_items(self) -> PairMoments:
        """Moments after right–right, right–wrong, wrong–right and wrong–wrong are added."""
        n = self.n + PSEUDO_ITEMS
        d, b, dd, db = self.d, self.b + 2, self.dd + 2, self.db + 1
        mean_d, mean_b = d / n, b / n
        return PairMoments(
            n,
            mean_d,
            mean_b,
            max(dd - n * mean_d**2, 0.0) / (n - 1),
            max(b - n * mean_b**2, 0.0) / (n - 1),
            (db - n * mean_d * mean_b) / (n - 1),
        )


def inflation_bounds(moments: PairMoments, level: float) -> tuple[float, float]:
    """Normal bounds of the mean difference, as a fraction; within -1 and 1."""
    half = z_quantile(0.5 + level / 2) * math.sqrt(moments.var_d / moments.n)
    return max(-1.0, moments.mean_d - half), min(1.0, moments.mean_d + half)


def contamination_score_bounds(moments: PairMoments, level: float) -> tuple[float, float] | None:
    """Fieller bounds of mean D / mean B; None where the set is unbounded, that is, where mean B may be 0.

    Fieller (1954), "Some problems in interval estimation", JRSS B 16, 175–185: the ratios r for which the mean of
    D - rB does not differ from 0.
    """
    z2 = z_quantile(0.5 + level / 2) ** 2
    var_d, var_b, cov = moments.var_d / moments.n, moments.var_b / moments.n, moments.cov / moments.n
    a = moments.mean_b**2 - z2 * var_b
    if a <= 0:
        return None
    b = moments.mean_b * moments.mean_d - z2 * cov
    c = moments.mean_d**2 - z2 * var_d
    root = math.sqrt(max(b * b - a * c, 0.0))
    # The score is 1 minus a ratio of accuracies, so it is never above 1.
    return (b - root) / a, min(1.0, (b + root) / a)


def score_inflation(answers: PairedAnswers, level: float) -> Estimate:
    """`inflation_estimate` of items that are independent."""
    return inflation_estimate(PairSums.of(answers), level)


def inflation_estimate(sums: Sums, level: float) -> Estimate:
    """D = canonical − reworded accuracy, averaged over items, in percentage points.

    The value is the plain mean; the bounds are the normal ones with pseudo-items, widened to hold the value where a
    handful of items would leave it outside.
    """
    method = sums.method("normal")
    if sums.n == 0:
        return Estimate(value=None, low=None, high=None, level=level, method=method)
    value = sums.d / sums.n
    if why := sums.unbounded():
        return Estimate(value=100 * value, low=None, high=None, level=level, method=method + why)
    low, high = inflation_bounds(sums.moments(level), level)
    return Estimate(
        value=100 * value, low=100 * min(low, value), high=100 * max(high, value), level=level, method=method
    )


def contamination_score(answers: PairedAnswers, level: float) -> Estimate:
    """`score_estimate` of items that are independent."""
    return score_estimate(PairSums.of(answers), level)


def score_estimate(sums: Sums, level: float) -> Estimate:
    """(Acc_base − Acc_pert) / Acc_base; undefined where no canonical answer is right."""
    method = sums.method("Fieller")
    value = sums.d / sums.b if sums.b > 0 else None
    why = sums.unbounded()
    bounds = contamination_score_bounds(sums.moments(level), level) if sums.n and not why else None
    if bounds is None:
        method += why or "; unbounded, because canonical accuracy is not clearly above 0"
        return Estimate(value=value, low=None, high=None, level=level, method=method)
    low, high = bounds
    if value is not None:
        low, high = min(low, value), max(high, value)
    return Estimate(value=value, low=low, high=high, level=level, method=method)


def leaked_share(inflation: Estimate, guess_chance: float | None) -> Estimate | None:
    """D / (1 − g) in points: the share of leaked items, where an unknown item is guessed right with chance g.

    Assumes that every leaked item would otherwise be guessed; leaked items that the model also knows change no
    answer and are not counted, so the lower bound is one of the leaked share.
    """
    if guess_chance is None or inflation.value is None or inflation.low is None or inflation.high is None:
        return None

    def scaled(points: float) -> float:
        return max(-100.0, min(100.0, points / (1 - guess_chance)))

    return Estimate(
        value=scaled(inflation.value),
        low=scaled(inflation.low),
        high=scaled(inflation.high),
        level=inflation.level,
        method=f"score inflation / (1 − {guess_chance:g})",
    )


def wilson(right: int, n: int, level: float) -> Estimate:
    """Wilson's score interval of a proportion of independent answers (Wilson 1927, JASA 22, 209–212)."""
    if not 0 <= right <= n:
        raise ValueError(f"{right} right of {n} is no proportion")
    if n == 0:
        return Estimate(value=None, low=None, high=None, level=level, method="Wilson")
    z2 = z_quantile(0.5 + level / 2) ** 2
    share = right / n
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    low = 0.0 if right == 0 else max(0.0, centre - half)
    high = 1.0 if right == n else min(1.0, centre + half)
    return Estimate(value=share, low=low, high=high, level=level, method="Wilson")


def mean_share(shares: FloatArray, counts: IntArray, level: float) -> Estimate:
    """Mean over items of a share in [0, 1], where `counts` items have each share.

    Wilson's interval where every share is 0 or 1, else the normal one with four pseudo-items, two right and two wrong.
    """
    n = int(counts.sum())
    whole = int(counts[shares == 1.0].sum())
    if whole + int(counts[shares == 0.0].sum()) == n:
        return wilson(whole, n, level)
    value = float((counts * shares).sum()) / n
    padded = n + PSEUDO_ITEMS
    centre = (n * value + 2) / padded
    variance = (float((counts * shares**2).sum()) + 2 - padded * centre**2) / (padded - 1)
    half = z_quantile(0.5 + level / 2) * math.sqrt(max(variance, 0.0) / padded)
    return Estimate(
        value=value,
        low=min(value, max(0.0, centre - half)),
        high=max(value, min(1.0, centre + half)),
        level=level,
        method="normal interval with four pseudo-items, clustered by item",
    )
