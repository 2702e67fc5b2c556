"""The end of the semantic window and the margin, learned from pairs that are known to be equivalent or different.

Pure: numbers in, numbers out.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.domain.errors import BadInputError
from proctor.domain.gate_calibration import Roc, RocPoint
from proctor.perturbation.admission.gate import Placed

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
    """Where a gate ends, and which of the two kinds of pairs decided it."""

    high: float
    """The greatest distance from the own item."""
    margin: float
    """The least margin to any other item."""
    bounded_by: Literal["equivalent", "different"]

    def admits(self, placed: Placed) -> bool:
        """Whether it admits what another check does not turn away."""
        return placed.distance <= self.high and (placed.margin is None or placed.margin >= self.margin)


def learn_window(
    equivalent: Sequence[Placed], different: Sequence[Placed], different_total: int, goals: Goals
) -> LearnedWindow:
    """Where the window ends, and how large a margin is asked for.

    Both are as narrow as rewordings allow, and together: by turns the window gives up the farthest of the equivalent
    pairs and the margin the one with the least margin, as long as the wanted share of them all is held; and further,
    where more different pairs would be admitted than are allowed. So there is one row of gates, each within the one
    before it, and the goals pick one of them: a higher share of equivalent pairs never narrows the gate, and a lower
    one of different pairs never widens it.

    The window does not end at the greatest distance that the different pairs allow: the other checks leave so few of
    them that they hardly bound it, and a gate wider than rewordings need lets in only what is none. The margin is
    above 0 whatever was learned: another item must never be as near as the own one.

    Args:
        equivalent: where equivalent pairs stand that pass the gate's other checks, rounded to 4 digits. Without a
            margin where they have their item's question as it is.
        different: the same of different pairs that pass them.
        different_total: all different pairs, whether or not they pass.
        goals: the shares to reach.

    Raises:
        BadInputError: with too few pairs, and where the different pairs leave no room for any equivalent one.
    """
    _check_counts(len(equivalent), different_total, goals)
    near = sorted(one.distance for one in equivalent)
    # Without any, as where options alone are reordered, nothing says how large a margin may be.
    wide = sorted((one.margin for one in equivalent if one.margin is not None), reverse=True) or [STEP]
    wanted = math.ceil(goals.true_admits * len(near) - 1e-9)
    allowed = math.floor(goals.false_admits * different_total + 1e-9)

    def gate(given_up: int, bounded_by: Literal["equivalent", "different"] = "equivalent") -> LearnedWindow:
        farthest = near[len(near) - 1 - (given_up + 1) // 2]
        least = wide[max(0, len(wide) - 1 - given_up // 2)]
        # A window from 0 to 0 would be empty.
        return LearnedWindow(max(STEP, farthest), max(STEP, least), bounded_by)

    def holds(given_up: int) -> bool:
        return sum(map(gate(given_up).admits, equivalent)) >= wanted

    def keeps(given_up: int) -> bool:
        return sum(map(gate(given_up).admits, different)) <= allowed

    steps = range(2 * len(near) - 1)
    first = max(0, bisect_left(steps, True, key=lambda given_up: not holds(given_up)) - 1)
    last = bisect_left(steps, True, lo=first, key=keeps)
    if last == len(steps) or not any(map(gate(last).admits, equivalent)):
        raise BadInputError(
            f"more than {allowed} of the {different_total} different pairs are as near to the item, and as far from "
            f"all others, as any equivalent pair ({near[0]:.4f}): this encoder cannot tell them apart. Check the "
            "labels, raise --false-admits, or use another encoder"
        )
    # Where no gate holds the wanted share, it is other items that are as near as the own one.
    return gate(last, "equivalent" if last == first and holds(first) else "different")


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
