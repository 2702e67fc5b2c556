"""The exact test of whether two wordings are answered alike, by one solver or several. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from proctor.evidence.discrete_fdr import DiscreteP

Counts = Mapping[str | None, int]
"""How often each answer was given to a wording; None counts the answers in which none could be read."""
_Null = tuple[tuple[int, int], ...]


class TwoWordings(NamedTuple):
    """What one solver answered to an item's own wording, and to a rewording of it."""

    item: Counts
    rewording: Counts


def same_answers(solvers: Sequence[TwoWordings]) -> DiscreteP:
    """Test that every solver's answers to both wordings come from one distribution, which is each solver's own.

    The statistic is the total variation distance of the two samples, added over the solvers; its distribution is that
    over all ways to part each solver's answers between the wordings (multivariate hypergeometric), computed exactly. An
    answer that cannot be read is an answer like others. It is exact where a solver's samples are independent draws.

    Args:
        solvers: each with at least one answer to either wording.

    Returns:
        The chance of a distance at least as large, and the chances that were possible with these answers.
    """
    margins, scale = list[_Margin](), math.lcm(*(sum(s.item.values()) * sum(s.rewording.values()) for s in solvers))
    observed = 0
    for solver in solvers:
        n, m = sum(solver.item.values()), sum(solver.rewording.values())
        pairs = [
            (solver.item.get(answer, 0), solver.rewording.get(answer, 0))
            for answer in {*solver.item, *solver.rewording}
        ]
        observed += sum(abs(m * first - n * second) for first, second in pairs) * (scale // (n * m))
        margins.append(_Margin(tuple(sorted(first + second for first, second in pairs if first + second)), n, m))
    tails = _tails(tuple(sorted(margins)), scale)
    return DiscreteP(tails[observed], tuple(tails.values()))


class _Margin(NamedTuple):
    """All that the null distribution of one solver's distance depends on."""

    totals: tuple[int, ...]
    """How often each answer was given, to either wording."""
    n: int
    """Answers to the item's own wording."""
    m: int
    """Answers to the rewording."""


# Few margins occur: most solvers give one or two answers to an item.
@lru_cache(maxsize=65_536)
def _tails(margins: tuple[_Margin, ...], scale: int) -> Mapping[int, float]:
    """Distance over all solvers, times scale → the chance of at least as much, from the largest down."""
    combined = {0: 1}
    for margin in margins:
        unit, together = scale // (margin.n * margin.m), defaultdict[int, int](int)
        null = _null(*margin)
        for distance, ways in combined.items():
            for further, more in null:
                together[distance + further * unit] += ways * more
        combined = together
    total, beyond, tails = sum(combined.values()), 0, dict[int, float]()
    for distance in sorted(combined, reverse=True):
        beyond += combined[distance]
        tails[distance] = beyond / total
    return tails


@lru_cache(maxsize=65_536)
def _null(totals: tuple[int, ...], n: int, m: int) -> _Null:
    """(n·m times the distance, ways) over all ways to choose n of the answers, of which there are `totals` of each."""
    # (chosen, n·m times the distance so far) → ways.
    states: dict[tuple[int, int], int] = {(0, 0): 1}
    for total in totals:
        following: dict[tuple[int, int], int] = defaultdict(int)
        ways_of = [math.comb(total, first) for first in range(total + 1)]
        for (chosen, distance), ways in states.items():
            for first in range(min(total, n - chosen) + 1):
                following[chosen + first, distance + abs(m * first - n * (total - first))] += ways * ways_of[first]
        states = following
    together: dict[int, int] = defaultdict(int)
    for (chosen, distance), ways in states.items():
        if chosen == n:
            together[distance] += ways
    return tuple(sorted(together.items()))
