"""The exact stratified exchangeability test of wordings that were each asked several times.

Null hypothesis: within an item, the canonical wording is exchangeable with its rewordings, so that given the item's
V + 1 shares of right answers, the canonical wording has each of them with chance 1 / (V + 1). The statistic is the sum
over items of the canonical share; the p-value is its upper tail given all the shares. The wording is the unit: repeated
answers sharpen its share and add no information on how wordings differ from each other. Asked once each, shares are 0
and 1 and this is `exchangeability_test`, with the same limits where an item's rewordings depend on each other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from proctor.evidence.answers import FloatArray, IntArray
from proctor.evidence.perturbation.exchangeability import EXACT_LIMIT, TailResult
from proctor.evidence.written_numbers import counted

#: A finer common denominator of the shares is treated as none: half a step of it moves no tail.
_FINEST_STEP = 10_000


class _Group(NamedTuple):
    """Items with the same shares, which lie `offsets` steps above the item's smallest."""

    items: int
    offsets: FloatArray
    """Shape (V + 1,), ascending; the first is 0 and the last above it."""


def wording_exchangeability(right: IntArray, asked: IntArray, *, exact_limit: int = EXACT_LIMIT) -> TailResult:
    """Test that the canonical wording is right no more often than the item's wordings on average.

    Args:
        right: right answers of each wording, the canonical one first; shape (n, V + 1).
        asked: answers of each wording; 0 for a wording that an item does not have. The canonical one has at least one.
        exact_limit: points of the common lattice of the shares up to which the distribution is convolved; above, the
            tail is Lugannani and Rice's saddlepoint approximation (continuity-corrected by half a step: Daniels 1987,
            International Statistical Review 55, 37–48).

    Without an item whose wordings differ the p-value is 1.
    """
    step = math.lcm(*np.unique(asked[asked > 0]).tolist())
    lattice = step <= _FINEST_STEP
    shares = np.where(asked > 0, right / np.maximum(asked, 1), np.nan)
    offsets = shares - np.nanmin(shares, axis=1, keepdims=True, initial=1.0)
    offsets = offsets[np.nanmax(offsets, axis=1, initial=0.0) > 0]
    if len(offsets) == 0:
        return TailResult(1.0, "exact: no item was right in some wordings more often than in others")
    unit = 1.0
    if lattice:
        offsets = np.rint(offsets * step)
        unit = float(np.gcd.reduce(offsets[~np.isnan(offsets)].astype(np.int64)))
        offsets = offsets / unit
    observed = float(offsets[:, 0].sum())
    groups = _grouped(offsets)
    points = sum(group.items * group.offsets[-1] for group in groups)
    informative = counted(len(offsets), "informative item")
    if lattice and points <= exact_limit:
        return TailResult(_exact_tail(groups, round(observed)), f"exact convolution of wordings, {informative}")
    p_value = _saddlepoint_tail(groups, observed, 1.0 if lattice else 0.0)
    return TailResult(p_value, f"saddlepoint (Lugannani–Rice) of wordings, {informative}")


def _grouped(offsets: FloatArray) -> list[_Group]:
    # Sorting puts the missing wordings, which are no numbers, last.
    rows, counts = np.unique(np.sort(offsets, axis=1), axis=0, return_counts=True, equal_nan=True)
    return [_Group(int(count), row[~np.isnan(row)]) for row, count in zip(rows, counts, strict=True)]


def _exact_tail(groups: list[_Group], observed: int) -> float:
    """P(T >= observed) by convolution; every term is positive, so even the smallest tail is relatively accurate."""
    mass = np.ones(1)
    for group in groups:
        places, wordings = np.unique(group.offsets.astype(np.int64), return_counts=True)
        one = np.zeros(places[-1] + 1)
        one[places] = wordings / group.offsets.size
        mass = np.convolve(mass, _power(one, group.items))
    return min(1.0, float(np.sort(mass[max(observed, 0) :]).sum()))


def _power(mass: FloatArray, times: int) -> FloatArray:
    """The distribution of a sum of `times` independent draws, by repeated squaring."""
    result = np.ones(1)
    while times:
        if times & 1:
            result = np.convolve(result, mass)
        times >>= 1
        if times:
            mass = np.convolve(mass, mass)
    return result


class _Cumulants(NamedTuple):
    """The cumulant generating function of T at a tilt, and its first two derivatives."""

    value: float
    mean: float
    spread: float


def _cumulants(groups: list[_Group], tilt: float) -> _Cumulants:
    value = mean = spread = 0.0
    for group in groups:
        logs = tilt * group.offsets
        log_sum = float(special.logsumexp(logs))
        weights = np.exp(logs - log_sum)
        centre = float((weights * group.offsets).sum())
        value += group.items * (log_sum - math.log(group.offsets.size))
        mean += group.items * centre
        spread += group.items * float((weights * (group.offsets - centre) ** 2).sum())
    return _Cumulants(value, mean, spread)


def _saddlepoint_tail(groups: list[_Group], observed: float, step: float) -> float:
    """P(T >= observed) for T on a lattice of this step, or on none where it is 0."""
    largest = sum(group.items * group.offsets[-1] for group in groups)
    if observed <= 0:
        return 1.0
    if observed >= largest - 1e-9 * largest:
        shares = ((group.offsets == group.offsets[-1]).mean() for group in groups)
        return math.exp(sum(group.items * math.log(share) for group, share in zip(groups, shares, strict=True)))
    target = observed - step / 2
    at_zero = _cumulants(groups, 0.0)
    if target <= 0 or abs(target - at_zero.mean) < 1e-4 * math.sqrt(at_zero.spread):
        # The formula is 0/0 at the mean; there the normal tail is right to the same order.
        return float(special.ndtr((at_zero.mean - target) / math.sqrt(at_zero.spread)))
    tilt = _tilt(groups, target, at_zero)
    found = _cumulants(groups, tilt)
    w = math.copysign(math.sqrt(max(2 * (tilt * target - found.value), 0.0)), tilt)
    u = (2 * math.sinh(tilt * step / 2) / step if step else tilt) * math.sqrt(found.spread)
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    return min(1.0, max(0.0, float(special.ndtr(-w)) + density * (1 / u - 1 / w)))


def _tilt(groups: list[_Group], target: float, at_zero: _Cumulants) -> float:
    """The tilt under which the mean is `target`: the root of an increasing function, by safeguarded Newton steps."""
    widest = max(float(group.offsets[-1]) for group in groups)
    low, high = -100.0 * widest, 100.0 * widest
    if widest < 1:
        low, high = -100.0 / widest, 100.0 / widest
    tilt = (target - at_zero.mean) / at_zero.spread
    for _ in range(200):
        here = _cumulants(groups, tilt)
        excess = here.mean - target
        if abs(excess) <= 1e-11 * max(1.0, target):
            break
        low, high = (tilt, high) if excess < 0 else (low, tilt)
        step = tilt - excess / here.spread if here.spread > 0 else low
        tilt = step if low < step < high else (low + high) / 2
    return tilt
