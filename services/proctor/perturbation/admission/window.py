"""The end of the semantic window, learned from distances of pairs that are known to be equivalent or different.

Pure: numbers in, numbers out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.domain.errors import BadInputError
from proctor.domain.gate_calibration import Roc, RocPoint

#: One unit of the last digit to which distances are rounded before they are weighed.
STEP: Final = 1e-4
_MAX_POINTS: Final = 200

FloatArray = NDArray[np.float64]


class Goals(NamedTuple):
    """What a window is to reach, as shares of pairs."""

    true_admits: float = 0.99
    """Of the equivalent pairs that pass the gate's other checks."""
    false_admits: float = 0.001
    """Of all different pairs."""

    @property
    def equivalent_needed(self) -> int:
        """Fewer pairs than this cannot tell the wanted share from all of them."""
        return _whole(1 / (1 - self.true_admits))

    @property
    def different_needed(self) -> int:
        """Among fewer pairs than this even a single admitted one would be too many."""
        return _whole(1 / self.false_admits)


class LearnedWindow(NamedTuple):
    """The end of a window, and which of the two kinds of pairs decided it."""

    high: float
    bounded_by: Literal["equivalent", "different"]


def learn_window(
    equivalent: Sequence[float], different: Sequence[float], different_total: int, goals: Goals
) -> LearnedWindow:
    """Where the window ends.

    At the smallest distance that holds the wanted share of the equivalent pairs; nearer, where that would admit more
    of the different pairs than is allowed. Not at the greatest distance that the different pairs allow: the other
    checks leave so few of them that they hardly bound it, and a window wider than rewordings need lets in only what
    is none. Pairs at the same distance are admitted, or not, together.

    Args:
        equivalent: distances, rounded to 4 digits, of equivalent pairs that pass the gate's other checks.
        different: the same of different pairs that pass them.
        different_total: all different pairs, whether or not they pass.
        goals: the shares to reach.

    Raises:
        BadInputError: with too few pairs, and where the different pairs leave no room for any equivalent one.
    """
    _check_counts(len(equivalent), different_total, goals)
    near = sorted(equivalent)
    # A window from 0 to 0 would be empty.
    wanted = max(STEP, near[math.ceil(goals.true_admits * len(near) - 1e-9) - 1])
    allowed = math.floor(goals.false_admits * different_total + 1e-9)
    if len(different) <= allowed or (first := sorted(different)[allowed]) > wanted:
        return LearnedWindow(wanted, "equivalent")
    high = round(first - STEP, 4)
    if high < near[0] or high <= 0:
        raise BadInputError(
            f"{allowed + 1} of the {different_total} different pairs are as near as {first:.4f}, nearer than any "
            f"equivalent pair ({near[0]:.4f}): this encoder cannot tell them apart. Check the labels, raise "
            "--false-admits, or use another encoder"
        )
    return LearnedWindow(high, "different")


def roc(equivalent: FloatArray, different: FloatArray) -> Roc:
    """The curve over the window's end. Distances are infinite for pairs that are admitted at none.

    Both arrays must hold a pair; the curve has at most 200 points, evenly spread over the distances that occur.
    """
    positive, negative = np.sort(equivalent), np.sort(different)
    thresholds = np.unique(np.concatenate([positive, negative]))
    thresholds = thresholds[np.isfinite(thresholds)]
    if len(thresholds) > _MAX_POINTS:
        thresholds = thresholds[np.linspace(0, len(thresholds) - 1, _MAX_POINTS).round().astype(int)]
    farther = len(negative) - np.searchsorted(negative, positive, side="right")
    not_nearer = len(negative) - np.searchsorted(negative, positive, side="left")
    return Roc(
        auc=float((farther + not_nearer).sum() / (2 * len(positive) * len(negative))),
        points=tuple(
            RocPoint(
                max_semantic_distance=float(threshold),
                false_admits=float(np.searchsorted(negative, threshold, side="right") / len(negative)),
                true_admits=float(np.searchsorted(positive, threshold, side="right") / len(positive)),
            )
            for threshold in thresholds
        ),
    )


def _check_counts(equivalent: int, different: int, goals: Goals) -> None:
    if equivalent < goals.equivalent_needed:
        raise BadInputError(
            f"{equivalent} equivalent pairs that pass the gate's other checks are in the half to learn from, and to "
            f"admit {100 * goals.true_admits:g} % of such pairs takes {goals.equivalent_needed}: give about "
            f"{2 * goals.equivalent_needed} in all, or lower --true-admits"
        )
    if different < goals.different_needed:
        raise BadInputError(
            f"{different} different pairs are in the half to learn from, and to admit at most "
            f"{100 * goals.false_admits:g} % of such pairs takes {goals.different_needed}: give about "
            f"{2 * goals.different_needed} in all, or raise --false-admits"
        )


def _whole(count: float) -> int:
    return math.ceil(count - 1e-6)
