"""Tests of the noise channel, from counts alone.

A table of router settings holds, for each model and router count, how many questions changed to right (improve) and to
wrong (degrade), and not which. So settings of one model depend on each other (one clean arm, the same questions) in a
way that the table does not show: every test here is either within one router count, where models answer separately, or
permutes router counts within a model, or is corrected by Holm, which holds under any dependence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy import special

from proctor.evidence.answers import FloatArray, IntArray
from proctor.evidence.intervals import PSEUDO_ITEMS

#: Permutations are counted over subsets of a model's settings: 2^10 subsets take milliseconds.
EXACT_TREND_SETTINGS: Final = 10
#: With more models the normal distribution is as good, and the convolution costs the square of their number.
EXACT_TREND_MODELS: Final = 50


class TrendResult(NamedTuple):
    """Page's statistic, its one-sided p-value and how that was computed. p is None without a model of two settings."""

    statistic: float
    p_value: float | None
    method: str


def one_sided_mcnemar(improve: int, degrade: int) -> float:
    """P(X >= improve), X binomial with improve + degrade draws of chance 1/2 (McNemar 1947, exact form).

    Null hypothesis: a question changes from wrong to right no more often than from right to wrong. Assumes independent
    questions. Without a changed question the p-value is 1.
    """
    if improve < 0 or degrade < 0:
        raise ValueError(f"improve {improve} and degrade {degrade} are counts")
    if improve == 0:
        return 1.0
    return float(special.betainc(improve, degrade + 1, 0.5))


def heterogeneity_p(improve: Sequence[int], degrade: Sequence[int], n: Sequence[int]) -> float | None:
    """Cochran's Q over the models of one router count (Cochran 1954, Biometrics 10, 101–129).

    Null hypothesis: all models have the same expected gain. Each gain has the variance of a paired difference of
    proportions after four pseudo-items, so that a model without a changed question has one too; Q is compared with
    chi-squared on models − 1. None for fewer than two models.
    """
    if len(n) < 2:
        return None
    better, worse = np.asarray(improve, dtype=np.float64) + 1, np.asarray(degrade, dtype=np.float64) + 1
    size = np.asarray(n, dtype=np.float64) + PSEUDO_ITEMS
    gains = (better - worse) / size
    weights = size / ((better + worse) / size - gains**2)
    centre = float((weights * gains).sum() / weights.sum())
    q = float((weights * (gains - centre) ** 2).sum())
    return float(special.chdtrc(len(n) - 1, q))


def page_trend(blocks: Sequence[Mapping[int, float]]) -> TrendResult:
    """Page's test that values rise with router count (Page 1963, JASA 58, 216–230), each model a block.

    Null hypothesis: within a model, values are exchangeable over its router counts. The statistic is the sum over
    models of rank(router count) · rank(value), with midranks for ties; a model may lack router counts. Exact over all
    permutations for up to `EXACT_TREND_MODELS` models of up to `EXACT_TREND_SETTINGS` settings each, else normal with
    the exact variance.
    """
    pairs = [_ranked(block) for block in blocks if len(block) >= 2]
    observed = float(sum((x * y).sum() for x, y in pairs))
    if not pairs:
        return TrendResult(observed, None, "no model has two router counts")
    if len(pairs) <= EXACT_TREND_MODELS and all(len(x) <= EXACT_TREND_SETTINGS for x, _ in pairs):
        return TrendResult(observed, _exact_tail(pairs, observed), "exact, over all permutations")
    mean = float(sum(x.sum() * y.sum() / len(x) for x, y in pairs))
    variance = float(sum(x.var() * y.var() * len(x) ** 2 / (len(x) - 1) for x, y in pairs))
    p_value = float(special.ndtr((mean - observed) / math.sqrt(variance))) if variance > 0 else 1.0
    return TrendResult(observed, p_value, "normal, with the exact variance")


def _ranked(block: Mapping[int, float]) -> tuple[FloatArray, FloatArray]:
    values = np.asarray([block[key] for key in sorted(block)], dtype=np.float64)
    below = (values[:, None] > values[None, :]).sum(axis=1)
    equal = (values[:, None] == values[None, :]).sum(axis=1)
    return np.arange(1.0, len(values) + 1), below + (equal + 1) / 2


def _exact_tail(pairs: Sequence[tuple[FloatArray, FloatArray]], observed: float) -> float:
    mass = np.ones(1)
    for _, y in pairs:
        mass = np.convolve(mass, _permutation_mass(np.rint(2 * y).astype(np.int64)))
    # Midranks are halves, so twice the statistic is whole.
    return min(1.0, float(mass[round(2 * observed) :].sum()))


def _permutation_mass(doubled: IntArray) -> FloatArray:
    """Distribution of Σ i · doubled[π(i)], i from 1, over permutations π: by dynamic programming over subsets."""
    k = len(doubled)
    width = int((np.arange(1, k + 1) * np.sort(doubled)).sum()) + 1
    table: list[FloatArray | None] = [None] * (1 << k)
    table[0] = np.eye(1, width)[0]
    for subset in range((1 << k) - 1):
        mass = table[subset]
        assert mass is not None
        table[subset] = None
        place = subset.bit_count() + 1
        for index in range(k):
            if subset >> index & 1:
                continue
            larger, shift = subset | 1 << index, place * int(doubled[index])
            target = table[larger]
            if target is None:
                target = table[larger] = np.zeros(width)
            target[shift:] += mass[: width - shift] / (k - place + 1)
    final = table[-1]
    assert final is not None
    return final
