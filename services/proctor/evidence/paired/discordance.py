"""Tests, intervals and sample sizes for two paired proportions, from the four counts of pairs.

Every function takes counts of items (pairs) that are independent of each other; the two answers to one item need not
be, and that is the point of pairing. Differences are fractions, the first run minus the second.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from proctor.domain.evidence import Estimate
from proctor.domain.levels import POWER, SIGNIFICANCE_ALPHA
from proctor.evidence.intervals import wilson, z_quantile
from proctor.evidence.search import smallest_fraction

BOOTSTRAP_REPLICATES = 10_000
#: Half a pair in each of the four cells: Agresti and Min's.
_PSEUDO = 0.5


class PairCounts(NamedTuple):
    """Items by who answered them right."""

    both: int
    only_a: int
    only_b: int
    neither: int

    @property
    def n(self) -> int:
        """Items in all."""
        return sum(self)

    @property
    def discordant(self) -> int:
        """Items that one run alone answered right."""
        return self.only_a + self.only_b

    @property
    def difference(self) -> float | None:
        """Accuracy of the first minus that of the second; None without an item."""
        return (self.only_a - self.only_b) / self.n if self.n else None


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Two-sided exact p-value of McNemar's test: of the discordant items, each run has half.

    Null hypothesis: both runs are as likely to be the one that is right where they disagree, that is, equal accuracy
    on these items. Given the number of discordant items, `only_a` is binomial with 1/2 (McNemar 1947, Psychometrika
    12, 153–157; exact form: Agresti, Categorical Data Analysis, 3rd ed., section 11.1). Without a discordant item p
    is 1. Twice the smaller tail; conservative, because the distribution is discrete.
    """
    if only_a < 0 or only_b < 0:
        raise ValueError(f"{only_a} and {only_b} are no counts")
    discordant = only_a + only_b
    if discordant == 0:
        return 1.0
    return min(1.0, 2 * float(special.bdtr(float(min(only_a, only_b)), discordant, 0.5)))


def agresti_min(counts: PairCounts, level: float) -> Estimate:
    """Interval of the difference of two paired proportions, half a pair added to each cell.

    Agresti and Min (2005), Statistics in Medicine 24, 729–740. The value is the plain difference. With no item it
    is undefined, and the bounds are those of complete ignorance.
    """
    method = "Agresti–Min interval of a paired difference"
    value = counts.difference
    if value is None:
        return Estimate(value=None, low=None, high=None, level=level, method=method)
    centre, error = _adjusted(counts)
    half = z_quantile(0.5 + level / 2) * error
    return Estimate(
        value=value,
        low=min(value, max(-1.0, centre - half)),
        high=max(value, min(1.0, centre + half)),
        level=level,
        method=method,
    )


def _adjusted(counts: PairCounts) -> tuple[float, float]:
    """Difference and its standard error with the pseudo-pairs; the error is never 0."""
    n = counts.n + 4 * _PSEUDO
    a, b = counts.only_a + _PSEUDO, counts.only_b + _PSEUDO
    centre = (a - b) / n
    return centre, math.sqrt(max((a + b) / n - centre**2, 0.0) / n)


def bootstrap_interval(
    counts: PairCounts, level: float, rng: np.random.Generator, *, replicates: int = BOOTSTRAP_REPLICATES
) -> Estimate:
    """Percentile interval of the difference over items drawn with replacement, half a pair added to each cell.

    Resampling n items is a multinomial draw of the four counts, so items need not be touched. Efron and Tibshirani
    (1993), An Introduction to the Bootstrap, chapter 13. Without the pseudo-pairs of `agresti_min` no replicate of a
    sample without a discordant item has one, and the interval has no width: near-deterministic runs were covered 77 %
    of the time at 200 items.
    """
    method = f"paired percentile bootstrap with pseudo-pairs, {replicates:,} replicates"
    value = counts.difference
    if value is None:
        return Estimate(value=None, low=None, high=None, level=level, method=method)
    padded = np.asarray(counts, dtype=np.float64) + _PSEUDO
    n = counts.n + len(padded) * _PSEUDO
    drawn = rng.multinomial(int(n), padded / n, size=replicates)
    low, high = np.quantile((drawn[:, 1] - drawn[:, 2]) / n, [0.5 - level / 2, 0.5 + level / 2])
    return Estimate(value=value, low=min(value, float(low)), high=max(value, float(high)), level=level, method=method)


def discordance_of(counts: PairCounts) -> float | None:
    """Share of discordant items; where there is none, Wilson's 95 % upper bound of that share, for 0 would promise
    that the smallest difference can be found. None without an item."""
    if counts.n == 0:
        return None
    if counts.discordant:
        return counts.discordant / counts.n
    return wilson(0, counts.n, 0.95).high


def paired_sample_size(
    difference: float, discordance: float, *, alpha: float = SIGNIFICANCE_ALPHA, power: float = POWER
) -> int:
    """Items that a two-sided test at `alpha` needs to find `difference` with `power`.

    n = ((z_α √π + z_β √(π − δ²)) / δ)² with the discordance π. Connor (1987), Biometrics 43, 207–211.

    Raises:
        ValueError: where the difference is 0, or exceeds the discordance, which it cannot.
    """
    delta = abs(difference)
    if not 0 < delta <= discordance <= 1:
        raise ValueError(f"a difference of {difference!r} needs a discordance from {delta!r} to 1, not {discordance!r}")
    root = z_quantile(1 - alpha / 2) * math.sqrt(discordance) + z_quantile(power) * math.sqrt(discordance - delta**2)
    return math.ceil((root / delta) ** 2)


def minimum_detectable_difference(
    n: int, discordance: float, *, alpha: float = SIGNIFICANCE_ALPHA, power: float = POWER
) -> float | None:
    """Smallest difference that n items show with `power`: `paired_sample_size` solved for the difference.

    A difference cannot exceed the discordance, so past it the discordance grows with the difference. None where even
    a difference of 1 would not be found.
    """
    z_alpha, z_beta = z_quantile(1 - alpha / 2), z_quantile(power)

    def found(delta: float) -> bool:
        spread = max(discordance, delta)
        return delta * math.sqrt(n) >= z_alpha * math.sqrt(spread) + z_beta * math.sqrt(max(spread - delta**2, 0.0))

    return smallest_fraction(found)
