"""Confidence sequences by betting: bounds that hold at every number of items together, however often one looks.

Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86, 1–27: the hedged
capital process with predictable plug-in bets. One bets that the mean is above m and one that it is below; where m is
the mean, neither wealth ever grows 1/error-fold with a chance above error (Ville's inequality). No normal approximation
is in it, and no looks need be planned. The price is width: beside the looks of `schedule`, which know how many items
there are at most, it decides late (docs/sequential.md).

Items are taken to be independent, in the order in which they were asked. Clusters and control items have no sequence
here.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from proctor.evidence.answers import BoolArray, FloatArray

#: Share of its wealth that a bet may lose at once, c in the paper; one half there too.
_AT_STAKE: Final = 0.5
#: Mean and variance that the first bet takes for granted, and how many values they are worth.
_PRIOR_MEAN, _PRIOR_VARIANCE, _PRIOR_VALUES = 0.5, 0.25, 1
#: Bounds are sought on a grid of this width on a scale of 0 to 1, and widened to its next point.
_GRID: Final = 0.001


class Crossed(NamedTuple):
    """Whether a mean is ruled out by the time of each value, shape (…, n); once it is, it stays so."""

    above: BoolArray
    """The true mean is above it."""
    below: BoolArray
    """The true mean is below it."""


class SequenceBounds(NamedTuple):
    """Lower and upper bounds after each item, shape (n,); they never widen."""

    low: FloatArray
    high: FloatArray


def crossed(values: FloatArray, mean: FloatArray | float, *, level: float, tuned_to: int | None = None) -> Crossed:
    """Which values of the mean a sequence rules out, and by when.

    Args:
        values: from 0 to 1, in order, shape (…, n).
        mean: to rule out, above 0 and below 1; shape () or that of the sequences.
        level: of both sides together, a fraction.
        tuned_to: number of values at which the bounds are to be narrowest; None where nobody knows when it ends. Either
            way they hold at every number of values.
    """
    target = np.asarray(mean, dtype=np.float64)[..., None]
    bets, gap = _bets(values, (1 - level) / 2, tuned_to), values - target
    up = np.log1p(np.minimum(bets, _AT_STAKE / target) * gap)
    down = np.log1p(-np.minimum(bets, _AT_STAKE / (1 - target)) * gap)
    # Half of the error is each side's, as in the hedge with θ = 1/2.
    threshold = math.log(2 / (1 - level))
    above, below = (np.cumsum(growth, axis=-1) >= threshold for growth in (up, down))
    return Crossed(np.logical_or.accumulate(above, axis=-1), np.logical_or.accumulate(below, axis=-1))


def _bets(values: FloatArray, error: float, tuned_to: int | None) -> FloatArray:
    """What is bet on each value, by those before it alone: √(2 log(1/error) / (σ̂² · t log(1 + t))).

    With a horizon, t log(1 + t) is that number of values.
    """
    times = np.arange(1, values.shape[-1] + 1)
    means = (_PRIOR_VALUES * _PRIOR_MEAN + np.cumsum(values, axis=-1)) / (times + _PRIOR_VALUES)
    squares = _PRIOR_VALUES * _PRIOR_VARIANCE + np.cumsum((values - means) ** 2, axis=-1)
    variances = np.roll(squares / (times + _PRIOR_VALUES), 1, axis=-1)
    variances[..., 0] = _PRIOR_VARIANCE
    horizon = times * np.log1p(times) if tuned_to is None else np.full(times.shape, float(tuned_to))
    result: FloatArray = np.sqrt(2 * math.log(1 / error) / (horizon * variances))
    return result


def inflation_crossed(
    differences: FloatArray, inflation: float, *, level: float, tuned_to: int | None = None
) -> Crossed:
    """Whether a score inflation is ruled out after each item.

    Args:
        differences: D of each item, −1 to 1, shape (…, n).
        inflation: a fraction above −1 and below 1.
        level: a fraction.
        tuned_to: as for `crossed`.
    """
    return crossed((1 + differences) / 2, (1 + inflation) / 2, level=level, tuned_to=tuned_to)


def score_crossed(
    differences: FloatArray, canonical: FloatArray, score: float, *, level: float, tuned_to: int | None = None
) -> Crossed:
    """Whether a Contamination Score is ruled out after each item.

    The score is r just where the mean of D − rB is 0. An item's D − rB lies between −1 and 1 − r, since a D above 0
    takes a right canonical answer.

    Args:
        differences: D of each item, −1 to 1, shape (…, n).
        canonical: B of each item, 0 or 1, in the same shape.
        score: r, below 1.
        level: a fraction.
        tuned_to: as for `crossed`.
    """
    width = 2 - score
    return crossed((1 + differences - score * canonical) / width, 1 / width, level=level, tuned_to=tuned_to)


def inflation_sequence(differences: FloatArray, *, level: float, tuned_to: int | None = None) -> SequenceBounds:
    """Bounds of the score inflation after each item, in points.

    Args:
        differences: D of each item, −1 to 1, shape (n,).
        level: of all bounds together, a fraction.
        tuned_to: as for `crossed`.
    """
    found = _Found(differences.size, -1.0, 1.0)
    for place in np.arange(-1 + 2 * _GRID, 1, 2 * _GRID):
        found.add(place, inflation_crossed(differences, place, level=level, tuned_to=tuned_to))
    low, high = found.bounds
    return SequenceBounds(100 * low, 100 * high)


def score_sequence(
    differences: FloatArray, canonical: FloatArray, *, level: float, tuned_to: int | None = None
) -> SequenceBounds:
    """Bounds of the Contamination Score after each item, a fraction; nothing below −1 is told apart from −∞.

    Args:
        differences: D of each item, −1 to 1, shape (n,).
        canonical: B of each item, 0 or 1, shape (n,).
        level: of all bounds together, a fraction.
        tuned_to: as for `crossed`.
    """
    found = _Found(differences.size, -math.inf, 1.0)
    for place in np.arange(-1, 1, _GRID):
        found.add(place, score_crossed(differences, canonical, place, level=level, tuned_to=tuned_to))
    return found.bounds


class _Found:
    """Bounds as they are found, from the lowest place on a grid to the highest."""

    def __init__(self, n: int, least: float, most: float) -> None:
        self._low, self._high = np.full(n, least), np.full(n, most)
        self._all_above, self._last_below = np.ones(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)

    def add(self, place: float, ruled_out: Crossed) -> None:
        # A bound moves as far as every place is ruled out from the end on, so that a gap cannot hide the truth.
        self._all_above &= ruled_out.above
        self._low[self._all_above] = place
        starts = ruled_out.below & ~self._last_below
        self._high[starts] = place
        self._high[~ruled_out.below] = 1.0
        self._last_below = ruled_out.below

    @property
    def bounds(self) -> SequenceBounds:
        return SequenceBounds(self._low, self._high)
