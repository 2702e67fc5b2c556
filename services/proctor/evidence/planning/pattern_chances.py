"""How often each pattern of answers to one item comes about in a family of simulated models: exact, without drawing.

A pattern is whether the canonical answer is right and how many of the V reworded ones are. Items of a family are
independent and alike, so an audit's pattern counts are one multinomial draw of these chances, however many items it
has: simulating ten thousand audits of a million items takes no longer than of ten.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from proctor.evidence.answers import FloatArray
from proctor.evidence.planning.families import KNOWN, NOISE, RECALL, SHARED_LUCK, Dependence, Family


def largest_leaked_share(family: Family) -> float:
    """The share of all items that can leak: all of them, or those that the model does not know."""
    return 1.0 if family.unknown_chance is None else 1 - KNOWN


def pattern_chances(family: Family, variants: int, *, leaked_share: float = 0.0, cost: float = 0.0) -> FloatArray:
    """Chance of each pattern, shape (2, variants + 1): canonical answer wrong or right, by right reworded answers.

    The mean over an item's chance θ ~ Beta(a, b) is a Gauss–Jacobi sum. It is exact up to rounding, because given θ
    every chance is a polynomial of θ of degree V + 1 at most, and V + 2 nodes integrate degree 2V + 3 (Golub and
    Welsch 1969, Mathematics of Computation 23, 221–230). That holds for rewordings that share an item's luck too:
    the beta-binomial chances are products of rising factorials of 2θ and 2(1 − θ).

    Args:
        family: how answers come about.
        variants: rewordings of each item, V >= 1.
        leaked_share: expected share of all items whose canonical wording was memorised.
        cost: accuracy (a fraction) that a rewording costs a clean model.

    Raises:
        ValueError: without a variant, where more items leak than can, or a rewording costs more than the accuracy.
    """
    if variants < 1:
        raise ValueError(f"{variants!r} variants leave nothing to compare")
    if not 0 <= cost <= family.accuracy:
        raise ValueError(f"a rewording cannot cost {cost!r} of an accuracy of {family.accuracy:g}")
    if not 0 <= leaked_share <= largest_leaked_share(family):
        raise ValueError(f"a share of {leaked_share!r} leaked is not between 0 and {largest_leaked_share(family):g}")
    chance, weight, leaked = _kinds(family, variants, leaked_share)
    canonical = leaked * RECALL + (1 - leaked) * chance
    reworded = _reworded(family.dependence, chance * (1 - cost / family.accuracy), variants)
    joint = np.stack([weight * (1 - canonical), weight * canonical]) @ reworded
    result: FloatArray = joint / joint.sum()
    return result


def _kinds(family: Family, variants: int, leaked_share: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Kinds of items: the chance of a right answer, the share of items, and the share of those that leaked."""
    if family.beta is None:
        assert family.unknown_chance is not None
        return (
            np.array([1 - NOISE, family.unknown_chance]),
            np.array([KNOWN, 1 - KNOWN]),
            np.array([0.0, leaked_share / (1 - KNOWN)]),
        )
    a, b = family.beta
    nodes, weights = special.roots_jacobi(variants + 2, b - 1, a - 1)
    chance: FloatArray = (1 + nodes) / 2
    return chance, weights / weights.sum(), np.full(chance.shape, leaked_share)


def _reworded(dependence: Dependence, chance: FloatArray, variants: int) -> FloatArray:
    """Chance of each number of right reworded answers, a row for each kind of item."""
    right = np.arange(variants + 1)
    theta = chance[:, None]
    result: FloatArray
    if dependence is Dependence.TOGETHER:
        result = (right == variants) * theta + (right == 0) * (1 - theta)
    elif dependence is Dependence.SHARED_LUCK:
        ways = special.comb(variants, right) / special.poch(SHARED_LUCK, variants)
        result = ways * special.poch(SHARED_LUCK * theta, right)
        result *= special.poch(SHARED_LUCK * (1 - theta), variants - right)
    else:
        result = special.comb(variants, right) * theta**right * (1 - theta) ** (variants - right)
    return result
