"""The looks of an audit: how many items each has, and at which level it is read.

A repeated confidence interval holds its level at all looks together (Jennison and Turnbull 1989, "Interim analyses:
the repeated confidence interval approach", JRSS B 51, 305–361): at look k it is the plain interval at the level of that
look's boundary, 2Φ(c_k) − 1. So an audit may stop by any rule, and its interval is true to its level all the same; and
every estimate of one look, whatever it is of, is made as it always is, at another level.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from scipy import special

from proctor.domain.suite_design import DesignSection
from proctor.evidence.sequential.boundaries import boundaries
from proctor.evidence.sequential.spending import Spending


class Look(NamedTuple):
    """A look at an audit on its way, or at its end."""

    number: int
    """From 1."""
    n_looks: int
    n_items: int
    """Items that are asked by then, in all."""
    information: float
    """Their share of all items that may be asked; 0 to 1."""
    level: float
    """Of the intervals of this look alone, so that those of all looks hold the suite's level together."""
    alpha: float
    """Largest p of this look alone that counts as significant, so that all looks together have the suite's."""

    @property
    def last(self) -> bool:
        """Whether nothing more is asked after it."""
        return self.number == self.n_looks


def schedule(design: DesignSection, sizes: Sequence[int], *, level: float, alpha: float) -> tuple[Look, ...]:
    """The looks of an audit.

    Args:
        design: of its suite.
        sizes: items that each look has in all, ascending; the last are all of them.
        level: of the suite's intervals, as a fraction.
        alpha: of the suite's test, one-sided, as a fraction.

    Raises:
        ValueError: without a look, or where one has no more items than the one before.
    """
    if not sizes or any(later <= before for before, later in pairwise((0, *sizes))):
        raise ValueError(f"looks need more items each time, not {list(sizes)}")
    information = tuple(size / sizes[-1] for size in sizes)
    levels, alphas = _levels(design.spending, information, level), _alphas(design.spending, information, alpha)
    return tuple(
        Look(number, len(sizes), *of_look)
        for number, of_look in enumerate(zip(sizes, information, levels, alphas, strict=True), 1)
    )


def repeated_p_value(spending: str, information: Sequence[float], p_values: Sequence[float]) -> float:
    """The p-value of an audit that was looked at several times: the smallest level at which a look rejects.

    Null hypothesis: that of the one-sided p-values. It is below a level just where one of the looks has a p below what
    that level lets it have, so that it is uniform or larger whatever stopped the audit.

    Args:
        spending: how the error is spent, as the suite names it.
        information: shares of the items at the looks so far, ascending.
        p_values: of these looks, each by itself.
    """
    if len(information) == 1 and information[0] == 1.0:
        return p_values[0]
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        alphas = _alphas(spending, tuple(information), middle)
        rejects = any(p < alpha for p, alpha in zip(p_values, alphas, strict=True))
        low, high = (low, middle) if rejects else (middle, high)
    return high


#: Halvings of (0, 1): a p-value to five digits where it is above a ten-thousandth.
_HALVINGS = 30


@lru_cache(maxsize=64)
def _levels(spending: str, information: tuple[float, ...], level: float) -> tuple[float, ...]:
    one_side = (1 - level) / 2
    spent = [2 * Spending(spending).spent(share, one_side) for share in information]
    return tuple(float(2 * special.ndtr(bound) - 1) for bound in boundaries(information, spent, two_sided=True))


@lru_cache(maxsize=4096)
def _alphas(spending: str, information: tuple[float, ...], alpha: float) -> tuple[float, ...]:
    spent = [Spending(spending).spent(share, alpha) for share in information]
    return tuple(float(special.ndtr(-bound)) for bound in boundaries(information, spent, two_sided=False))
