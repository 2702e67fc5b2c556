"""The exact stratified exchangeability test.

Null hypothesis: within an item, the canonical wording is exchangeable with its rewordings, so that given the item's t
right answers of its V + 1, the canonical one is among them with chance t / (V + 1). The statistic T, the number of
items whose canonical answer is right, is then Poisson-binomial given all the totals; the p-value is its upper tail.
Items with t = 0 or t = V + 1 are certain and carry no information.

With V = 1 this is the one-sided exact McNemar test. It is an exact form of the Cochran–Mantel–Haenszel test with the
item as the stratum (Mantel and Haenszel 1959). Where an item's rewordings rise and fall *together* they are not
exchangeable with the canonical wording, and the test rejects clean models too often; alone it serves only where the
canonical wording was drawn at random from the wordings.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from proctor.evidence.answers import FloatArray, IntArray, PairedAnswers
from proctor.evidence.written_numbers import counted

#: Convolution costs the square of the informative items: 20,000 take about a tenth of a second.
EXACT_LIMIT = 20_000


class TailResult(NamedTuple):
    """A one-sided p-value and how it was computed."""

    p_value: float
    method: str


class _Groups(NamedTuple):
    """Items of equal chance: how many, and the chance."""

    counts: IntArray
    chances: FloatArray


def exchangeability_test(answers: PairedAnswers, *, exact_limit: int = EXACT_LIMIT) -> TailResult:
    """Test that the canonical wording is right no more often than its share of each item's right answers.

    Exact up to `exact_limit` informative items; above it the tail is Lugannani and Rice's saddlepoint approximation
    with the second continuity correction (Daniels 1987, International Statistical Review 55, 37–48).
    Without an informative item the p-value is 1.
    """
    patterns = answers.patterns
    totals, wordings = patterns.right + patterns.canonical, patterns.total + 1
    informative = (totals > 0) & (totals < wordings)
    items = patterns.counts[informative]
    n = int(items.sum())
    if n == 0:
        return TailResult(1.0, "exact: no item was right in some wordings and wrong in others")
    observed = int(items[patterns.canonical[informative]].sum())
    groups = _grouped(items, totals[informative], wordings[informative])
    if n <= exact_limit:
        p_value = exact_upper_tail(groups.counts, groups.chances, observed)
        return TailResult(p_value, f"exact Poisson-binomial, {counted(n, 'informative item')}")
    return TailResult(
        saddlepoint_upper_tail(groups.counts, groups.chances, observed),
        f"saddlepoint (Lugannani–Rice) Poisson-binomial, {counted(n, 'informative item')}",
    )


def _grouped(items: IntArray, totals: IntArray, wordings: IntArray) -> _Groups:
    divisor = np.gcd(totals, wordings)
    fractions, places = np.unique(np.stack([totals // divisor, wordings // divisor]), axis=1, return_inverse=True)
    counts = np.zeros(fractions.shape[1], dtype=np.int64)
    np.add.at(counts, places.ravel(), items)
    return _Groups(counts, fractions[0] / fractions[1])


def exact_upper_tail(counts: IntArray, chances: FloatArray, observed: int) -> float:
    """P(T >= observed) for T a sum of binomials (counts, chances), by direct convolution.

    Every term is positive, so even a tail of 1e-200 is relatively accurate; a Fourier transform would not be.
    """
    mass = np.ones(1)
    for count, chance in sorted(zip(counts.tolist(), chances.tolist(), strict=True)):
        mass = np.convolve(mass, _binomial_mass(int(count), float(chance)))
    tail = float(np.sort(mass[max(observed, 0) :]).sum())
    return min(1.0, tail)


def _binomial_mass(count: int, chance: float) -> FloatArray:
    k = np.arange(count + 1, dtype=np.float64)
    logs = special.gammaln(count + 1) - special.gammaln(k + 1) - special.gammaln(count - k + 1)
    mass: FloatArray = np.exp(logs + k * math.log(chance) + (count - k) * math.log1p(-chance))
    return mass


def saddlepoint_upper_tail(counts: IntArray, chances: FloatArray, observed: int) -> float:
    """P(T >= observed) by the Lugannani–Rice formula for a lattice variable, second continuity correction."""
    total = int(counts.sum())
    if observed <= 0:
        return 1.0
    if observed > total:
        return 0.0
    if observed == total:
        return float(np.exp((counts * np.log(chances)).sum()))
    target = observed - 0.5
    mean = float((counts * chances).sum())
    spread = float((counts * chances * (1 - chances)).sum())
    tilt = _tilt(counts, chances, target, start=(target - mean) / spread)
    if abs(tilt) * math.sqrt(spread) < 1e-4:
        # The formula is 0/0 at the mean; there the normal tail is right to the same order.
        return float(special.ndtr((mean - target) / math.sqrt(spread)))
    cumulant = float((counts * np.log1p(chances * np.expm1(tilt))).sum())
    tilted = chances * np.exp(tilt) / (1 + chances * np.expm1(tilt))
    curvature = float((counts * tilted * (1 - tilted)).sum())
    w = math.copysign(math.sqrt(max(2 * (tilt * target - cumulant), 0.0)), tilt)
    u = 2 * math.sinh(tilt / 2) * math.sqrt(curvature)
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    return min(1.0, max(0.0, float(special.ndtr(-w)) + density * (1 / u - 1 / w)))


def _tilt(counts: IntArray, chances: FloatArray, target: float, *, start: float) -> float:
    """The tilt under which the mean is `target`: the root of an increasing function, by safeguarded Newton steps."""
    low, high, tilt = -50.0, 50.0, min(max(start, -5.0), 5.0)
    for _ in range(200):
        tilted = chances * np.exp(tilt) / (1 + chances * np.expm1(tilt))
        excess = float((counts * tilted).sum()) - target
        if abs(excess) <= 1e-11 * max(1.0, target):
            break
        low, high = (tilt, high) if excess < 0 else (low, tilt)
        slope = float((counts * tilted * (1 - tilted)).sum())
        step = tilt - excess / slope if slope > 0 else low
        tilt = step if low < step < high else (low + high) / 2
    return tilt
