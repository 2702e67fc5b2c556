"""What a paired comparison will find, before it is made: its power by formula, and that of the exact test itself.

The formula is Connor's (1987, Biometrics 43, 207–211), which `discordance` solves for the items and for the smallest
difference. McNemar's exact test is conservative, because counts are discrete, so with few discordant items its power
is lower than the formula says: `mcnemar_power` sums it without simulation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from proctor.domain.levels import POWER, SIGNIFICANCE_ALPHA
from proctor.evidence.answers import FloatArray, IntArray
from proctor.evidence.intervals import z_quantile
from proctor.evidence.paired.discordance import minimum_detectable_difference, paired_sample_size
from proctor.evidence.search import MAX_ITEMS

#: Standard deviations of the number of discordant items that are summed over; beyond lies less than 1e-20.
_WINDOW = 10.0


class PairedPlan(NamedTuple):
    """A paired comparison at one discordance. Differences, discordance and power are fractions."""

    discordance: float
    n: int | None
    difference: float | None
    power: float
    """Of `n` items to find `difference` where both are given; otherwise the power that is asked for."""
    mde: float | None
    """Smallest difference that `n` items show with the power asked for; None where there is none."""
    items_needed: int | None
    """Items that show `difference` with the power asked for."""
    exact_power: float | None
    """Power of McNemar's exact test for what is planned here; None past ten million items."""


def plan_comparison(
    discordance: float,
    *,
    n: int | None,
    difference: float | None,
    alpha: float = SIGNIFICANCE_ALPHA,
    power: float = POWER,
) -> PairedPlan:
    """Plan a comparison from the number of items, the difference, or both.

    Where n alone is given and the smallest difference exceeds the discordance, which it cannot, the discordance grows
    with it.

    Raises:
        ValueError: where neither is given, or the difference exceeds the discordance.
    """
    if n is None and difference is None:
        raise ValueError("a plan needs the items, the difference, or both")
    mde = None if n is None else minimum_detectable_difference(n, discordance, alpha=alpha, power=power)
    items = None if difference is None else paired_sample_size(difference, discordance, alpha=alpha, power=power)
    at, effect = n if n is not None else items, difference if difference is not None else mde
    exact = None
    if at is not None and effect is not None and at <= MAX_ITEMS:
        exact = mcnemar_power(at, effect, max(discordance, effect), alpha=alpha)
    if n is not None and difference is not None:
        power = paired_power(n, difference, discordance, alpha=alpha)
    return PairedPlan(discordance, n, difference, power, mde, items, exact)


def paired_power(n: int, difference: float, discordance: float, *, alpha: float = SIGNIFICANCE_ALPHA) -> float:
    """Chance that a two-sided test at `alpha` finds `difference` in n items, by Connor's formula.

    Φ((δ√n − z_α √π) / √(π − δ²)) with the discordance π. The far tail, a significant difference of the wrong sign,
    is left out. Where every item is discordant in the same direction (π = δ = 1) the outcome is certain.

    Raises:
        ValueError: where the difference is 0 or exceeds the discordance.
    """
    delta = _checked(difference, discordance)
    reach = delta * math.sqrt(n) - z_quantile(1 - alpha / 2) * math.sqrt(discordance)
    spread = discordance - delta**2
    if spread <= 0:
        return 1.0 if reach >= 0 else 0.0
    return float(special.ndtr(reach / math.sqrt(spread)))


def mcnemar_power(n: int, difference: float, discordance: float, *, alpha: float = SIGNIFICANCE_ALPHA) -> float:
    """Chance that McNemar's exact two-sided test gives p < alpha on n items.

    The number of discordant items is binomial with π; of these, each is right in the first run alone with chance
    1/2 + δ / 2π. With difference 0 it is the test's size, which never exceeds alpha.

    Raises:
        ValueError: where the difference exceeds the discordance.
    """
    if abs(difference) > discordance or not 0 < discordance <= 1:
        raise ValueError(f"a difference of {difference!r} needs a discordance from that to 1, not {discordance!r}")
    mean, spread = n * discordance, math.sqrt(n * discordance * (1 - discordance))
    first, last = max(0, math.floor(mean - _WINDOW * spread)), min(n, math.ceil(mean + _WINDOW * spread))
    discordant = np.arange(first, last + 1)
    critical = _critical(discordant, alpha)
    favoured = 0.5 + difference / (2 * discordance)
    low = _binomial_cdf(critical, discordant, favoured)
    high = _binomial_cdf(critical, discordant, 1 - favoured)
    return min(1.0, float((_binomial_mass(discordant, n, discordance) * (low + high)).sum()))


def _critical(discordant: IntArray, alpha: float) -> IntArray:
    """The largest smaller count that is significant at each number of discordant items; -1 where none is."""
    low, high = np.full(discordant.shape, -1), (discordant + 1) // 2
    while bool((high - low > 1).any()):
        middle = (low + high) // 2
        significant = 2 * _binomial_cdf(middle, discordant, 0.5) < alpha
        low, high = np.where(significant, middle, low), np.where(significant, high, middle)
    return low


def _binomial_cdf(k: IntArray, n: IntArray, chance: float) -> FloatArray:
    """P(X <= k), and 0 where k is negative."""
    inside = np.clip(k, 0, n)
    result: FloatArray = np.where(k < 0, 0.0, special.bdtr(inside.astype(np.float64), n, chance))
    return result


def _binomial_mass(k: IntArray, n: int, chance: float) -> FloatArray:
    logs = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    result: FloatArray = np.exp(logs + special.xlogy(k, chance) + special.xlog1py(n - k, -chance))
    return result


def _checked(difference: float, discordance: float) -> float:
    delta = abs(difference)
    if not 0 < delta <= discordance <= 1:
        raise ValueError(f"a difference of {difference!r} needs a discordance from {delta!r} to 1, not {discordance!r}")
    return delta
