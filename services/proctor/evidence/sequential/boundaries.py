"""Boundaries of a statistic that is looked at several times, from what each look may spend.

A mean over n items, standardised, is at several n as a Brownian motion with that drift at the times n / n_max: jointly
normal, with correlation √(t_i / t_j) (Jennison and Turnbull 1999, "Group Sequential Methods", ch. 3). How often a
boundary is first crossed at each look follows by integrating over the looks one by one (Armitage, McPherson and Rowe
1969, JRSS A 132, 235–244; ch. 19 there).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

import numpy as np
from scipy import optimize, special

from proctor.evidence.answers import FloatArray

#: Nodes of the Gauss–Legendre rule over what has not crossed: the density is smooth there, and 48 give eight digits.
_NODES: Final = 96
#: Standard deviations past which a normal density is nothing.
_FAR: Final = 9.0
#: Boundaries beyond it are crossed with less than 1e-19.
_NEVER: Final = 9.0


def boundaries(information: Sequence[float], spent: Sequence[float], *, two_sided: bool) -> tuple[float, ...]:
    """The standardised boundary of each look, of which the chance to be crossed by then is what is spent by then.

    Args:
        information: share of the items that each look has, increasing, above 0 and at most 1.
        spent: error spent by each look in all, not decreasing.
        two_sided: whether crossing −c counts as well as crossing c.

    Raises:
        ValueError: where looks do not increase, or what is spent decreases.
    """
    times, errors = list(information), list(spent)
    if not times or len(times) != len(errors):
        raise ValueError(f"{len(times)} looks and {len(errors)} errors: each look needs what it may spend")
    if any(later <= before for before, later in zip([0.0, *times], times, strict=False)) or times[-1] > 1:
        raise ValueError(f"shares of the items do not increase within (0, 1]: {times}")
    if any(later < before for before, later in zip([0.0, *errors], errors, strict=False)) or errors[-1] >= 1:
        raise ValueError(f"what is spent decreases, or is all: {errors}")
    found, before, crossed = list[float](), 0.0, 0.0
    nodes, mass = np.zeros(1), np.ones(1)
    for time, error in zip(times, errors, strict=True):
        spread, root = math.sqrt(time - before), math.sqrt(time)
        bound = _bound(_exit(nodes, mass, spread, root, two_sided=two_sided), error - crossed)
        found.append(bound)
        crossed, before = error, time
        low = -bound * root if two_sided else -_FAR * root
        nodes, mass = _stays(nodes, mass, spread, low, bound * root)
    return tuple(found)


def _exit(
    nodes: FloatArray, mass: FloatArray, spread: float, root: float, *, two_sided: bool
) -> Callable[[float], float]:
    """The chance that a look is the first to be past a standardised boundary."""

    def chance(bound: float) -> float:
        above = special.ndtr((nodes - bound * root) / spread)
        below = special.ndtr((-bound * root - nodes) / spread) if two_sided else 0.0
        return float((mass * (above + below)).sum())

    return chance


def _bound(chance: Callable[[float], float], error: float) -> float:
    if error <= chance(_NEVER):
        return _NEVER
    return float(optimize.brentq(lambda bound: chance(bound) - error, -_NEVER, _NEVER, xtol=1e-12))


@cache
def _rule() -> tuple[FloatArray, FloatArray]:
    places, weights = np.polynomial.legendre.leggauss(_NODES)
    return places, weights


def _stays(
    nodes: FloatArray, mass: FloatArray, spread: float, low: float, high: float
) -> tuple[FloatArray, FloatArray]:
    """Nodes of the motion at the next look, where it has crossed nothing, and the mass of each."""
    places, weights = _rule()
    new = (high + low) / 2 + (high - low) / 2 * places
    density = np.exp(-(((new[:, None] - nodes) / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi))
    result: FloatArray = (high - low) / 2 * weights * (density @ mass)
    return new, result
