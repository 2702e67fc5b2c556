"""The false discovery rate of exact tests, whose p-values can only take a few values each.

With k samples a test has a smallest p that it can give at all, and most tests of a family cannot give a small one
whatever happens. Corrections that take every p for uniform count those too, and then nothing can ever be found.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class DiscreteP(NamedTuple):
    """The p-value of an exact test, and all those that it could have given."""

    value: float
    attainable: tuple[float, ...]
    """In rising order. Under the null a value of at most t has a chance of the largest of them that is at most t."""


def discoveries(tests: Sequence[DiscreteP], alpha: float) -> list[bool]:
    """Which tests of a family are discoveries, at a false discovery rate of at most alpha.

    The step-up procedure DBH of Döhler, Durand & Roquain (2018), "New FDR bounds for discrete and heterogeneous tests",
    Electronic Journal of Statistics 12, 1867–1900, for independent tests. The family is here reduced to the tests that
    could give a p of alpha or less; that depends on what the tests are conditioned on, and not on their results.

    Args:
        tests: the family, in any order.
        alpha: the rate, in (0, 1).

    Returns:
        Of each test, in the order given, whether it is one.
    """
    family = [test for test in tests if test.attainable[0] <= alpha]
    found = [False] * len(tests)
    if not family:
        return found
    supports = Counter(test.attainable for test in family)
    points = sorted({point for support in supports for point in support})
    last = max((t for t in points if _odds(supports, t) <= alpha * len(family)), default=None)
    if last is None:
        return found
    weights = [(support, n / (1.0 - _chance(support, last))) for support, n in supports.items()]
    ordered = sorted(test.value for test in family)
    # Of equal values the last has the largest rank.
    ranks = {value: rank for rank, value in enumerate(ordered, start=1)}
    limit = max(
        (
            value
            for value, rank in ranks.items()
            if value <= last and math.fsum(n * _chance(support, value) for support, n in weights) <= alpha * rank
        ),
        default=None,
    )
    return found if limit is None else [test.value <= limit for test in tests]


def _chance(attainable: tuple[float, ...], t: float) -> float:
    """The chance under the null of a p of at most t."""
    place = bisect_right(attainable, t)
    return attainable[place - 1] if place else 0.0


def _odds(supports: Counter[tuple[float, ...]], t: float) -> float:
    chances = [(_chance(support, t), n) for support, n in supports.items()]
    return math.inf if any(c >= 1.0 for c, _ in chances) else math.fsum(n * c / (1.0 - c) for c, n in chances)
