"""Whether the level of a short series of estimates with known standard errors changed once, and where.

Under the null all versions have one level, and the estimates differ by sampling alone. Of each place at which the
series can be cut, the precision-weighted mean after it minus that before it is divided by its standard error; the
statistic is the largest of these in size. With independent errors that is the likelihood ratio of one level shift at an
unknown place with known variances (Hawkins 1977, "Testing a sequence of observations for a shift in location", Journal
of the American Statistical Association 72, 180–186). Its distribution is found by Monte Carlo from the normal
distribution that the estimates have under the null, so that p is right for any number of versions, any sizes of the
errors, and any dependence between them; p = (b + 1) / (B + 1) (Phipson and Smyth 2010, Statistical Applications in
Genetics and Molecular Biology 9, 39).

Versions that were asked the same items err together, and neighbours more than others. Taken for independent they would
reject too seldom (one correlation throughout) or too often (neighbours alike); so the dependence is estimated from the
items (`error_correlation`). The weights stay those of independent errors: with an estimated correlation near one the
optimal ones are wild, and p is right with either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from proctor.evidence.answers import FloatArray
from proctor.evidence.intervals import z_quantile

#: With fewer versions every split has one or two of them on a side, and nothing is said.
MIN_VERSIONS: Final = 5
#: p is known to ±0.006 around 0.05.
DRAWS: Final = 4_999
#: From fewer items in common their correlation is not told.
MIN_SHARED_ITEMS: Final = 20
#: A difference whose variance is this small a share of what independent errors give it is none.
_NO_VARIANCE: Final = 1e-9


class LevelShift(NamedTuple):
    """The split of a series with the largest change, and what chance makes of such a one."""

    before: int
    """Versions before the change; it is between that one and the next."""
    shift: float
    """Mean after minus mean before. The largest of several: on the average it overstates what changed."""
    low: float
    high: float
    """Interval of the shift, as if the place had been named beforehand."""
    p_value: float
    """Over all places at which the series could be cut."""


def level_shift(
    values: Sequence[float],
    standard_errors: Sequence[float],
    *,
    rng: np.random.Generator,
    correlation: FloatArray | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
) -> LevelShift | None:
    """The most likely single level shift of a series; None below MIN_VERSIONS.

    Args:
        values: the estimates, in the order of the versions.
        standard_errors: of each, above 0.
        rng: draws the series under the null.
        correlation: of the estimates' errors, shape (T, T); None where they are independent.
        level: of the interval.
        draws: series under the null.

    Raises:
        ValueError: for standard errors that are none, or of another number than the values.
    """
    x, errors = np.asarray(values, dtype=np.float64), np.asarray(standard_errors, dtype=np.float64)
    if x.shape != errors.shape or not (np.isfinite(x).all() and np.isfinite(errors).all() and (errors > 0).all()):
        raise ValueError("level_shift needs finite values, each with a standard error above 0")
    if x.size < MIN_VERSIONS:
        return None
    shared = np.eye(x.size) if correlation is None else correlation
    covariance = shared * np.outer(errors, errors)
    contrasts = _contrasts(errors)
    variances = np.einsum("ki,ij,kj->k", contrasts, covariance, contrasts)
    apart = (contrasts**2) @ (errors**2)
    told = variances > _NO_VARIANCE * apart
    if not told.any():
        # All versions erred alike in every item: they are one and the same answers.
        return None
    deviations = np.sqrt(np.where(told, variances, 1.0))
    scaled = np.where(told, 1.0 / deviations, 0.0)[:, np.newaxis] * contrasts
    z = scaled @ x
    best = int(np.argmax(np.abs(z)))
    null = rng.standard_normal((draws, x.size)) @ _root(covariance).T @ scaled.T
    as_large = int((np.abs(null).max(axis=1) >= abs(z[best]) * (1 - 1e-9)).sum())
    shift, half = float(contrasts[best] @ x), z_quantile(0.5 + level / 2) * float(deviations[best])
    return LevelShift(best + 1, shift, shift - half, shift + half, (as_large + 1) / (draws + 1))


def error_correlation(differences: FloatArray) -> FloatArray | None:
    """The correlation of the errors of several versions' means over the same items; None with too few items.

    Args:
        differences: each version's difference of each item, shape (T, n).
    """
    if differences.shape[1] < MIN_SHARED_ITEMS:
        return None
    centred = differences - differences.mean(axis=1, keepdims=True)
    lengths = np.sqrt((centred**2).sum(axis=1))
    # A version without any difference between its items correlates with nothing.
    whole = np.where(lengths > 0, lengths, math.inf)[:, np.newaxis]
    unit = centred / whole
    correlation = np.asarray(unit @ unit.T, dtype=np.float64)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _contrasts(errors: FloatArray) -> FloatArray:
    """Weights of mean after minus mean before, one row a split; shape (T − 1, T)."""
    precision = 1.0 / errors**2
    before = np.tril(np.ones((errors.size - 1, errors.size)))
    after = 1.0 - before
    first, second = before * precision, after * precision
    weights = second / second.sum(axis=1, keepdims=True) - first / first.sum(axis=1, keepdims=True)
    return np.asarray(weights, dtype=np.float64)


def _root(covariance: FloatArray) -> FloatArray:
    """A matrix whose product with its transpose is the covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.clip(values, 0.0, None)), dtype=np.float64)
