"""Split-conformal intervals: between which values the accuracy on the next batch of items will lie.

A confidence interval is about the accuracy of a population of items that nobody will ever run. The question of a
release is often another one: last month's items gave this accuracy, so what will the next 200 give? The answer needs
no normal distribution and no independence, only that the items, old and new, are exchangeable: any order of them is as
likely as any other.

The definition. Split the items at random into a training part and K calibration blocks of m items, m the size of the
batch to come. The centre c is the accuracy on the training part; the score of block j is R_j = |accuracy_j − c|. With
q the ⌈(K + 1)(1 − α)⌉-th smallest score, the interval is [c − q, c + q] within [0, 1]. Given the training part, the
K blocks and the batch to come are exchangeable, so its score is as likely to have any rank among the K + 1, and the
batch's accuracy lies in the interval with probability at least 1 − α, for every K, m and model: Vovk, Gammerman and
Shafer (2005), Algorithmic Learning in a Random World, section 4.1 (inductive conformal prediction); Lei, G'Sell,
Rinaldo, Tibshirani and Wasserman (2018), JASA 113, 1094–1111, Theorem 2. Items become blocks because the score must be
that of a batch, and a batch's accuracy varies less than one item's grade.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from proctor.domain.base import Frozen
from proctor.evidence.answers import BoolArray, FloatArray

COVERS: Final = (
    "the accuracy on one future batch of as many items, exchangeable with those given; not the mean of the population, "
    "and not every future batch at once"
)


_ROUNDING: Final = 1e-12


class ConformalInterval(Frozen):
    """Where a future batch's accuracy will lie, with the guarantee and what it rests on. With a batch, the bounds are
    accuracies that a batch can have."""

    centre: float
    """Accuracy on the training part; 1/2 where nothing was left for it."""
    low: float
    high: float
    level: float
    guaranteed: float
    """Lower bound of the coverage, over the draw of all items: rank / (K + 1), `level` or more; 1 for [0, 1]."""
    n_calibration: int
    """K, the blocks (or past runs) whose scores were ranked."""
    n_needed: int
    """Fewest scores at which an interval narrower than [0, 1] is possible at this level."""
    batch: int | None
    """Items of a block; None where past runs were given."""
    covers: str = COVERS

    @property
    def informative(self) -> bool:
        """Whether it excludes anything."""
        return self.low > 0.0 or self.high < 1.0


def conformal_future_accuracy(
    correct: BoolArray, *, batch: int, rng: np.random.Generator, level: float = 0.95
) -> ConformalInterval:
    """Interval for the accuracy on the next `batch` items, from graded items exchangeable with them.

    Args:
        correct: grades, shape (n,), in any order.
        batch: m, items of the batch to come.
        rng: draws the split; the guarantee holds for every split, and for one that was not chosen by its result.
        level: 1 − α, strictly between 0 and 1.

    How many blocks are made depends on n, m and level alone, never on the grades: half of those that fit, but
    `n_needed` of them (19 at 95 %) where they fit, and at least one item is left to train on. Degenerate cases: fewer
    blocks than `n_needed`, or none, give [0, 1], which is all that can be guaranteed.

    Raises:
        ValueError: for a level or a batch that is none.
    """
    if batch < 1:
        raise ValueError(f"a batch of {batch} items is none")
    n, needed = correct.shape[0], _needed(level)
    fitting = max(n - 1, 0) // batch
    blocks = max(fitting // 2, min(needed, fitting))
    shuffled = correct[rng.permutation(n)]
    right = shuffled[: blocks * batch].reshape(blocks, batch).sum(axis=1, dtype=np.int64)
    training = shuffled[blocks * batch :]
    n_train, right_train = training.shape[0], int(training.sum())
    rank = _rank(blocks, level)
    low, high = 0, batch
    if rank <= blocks:
        # Scores as whole numbers, times m and the training items: accuracies tie often, and a bound that misses one by
        # a rounding error misses its coverage by the share of ties.
        radius = int(np.sort(np.abs(right * n_train - right_train * batch))[rank - 1])
        low = max(0, -((radius - right_train * batch) // n_train))
        high = min(batch, (right_train * batch + radius) // n_train)
    return ConformalInterval(
        centre=right_train / n_train if n_train else 0.5,
        low=low / batch,
        high=high / batch,
        level=level,
        guaranteed=_guaranteed(blocks, level),
        n_calibration=blocks,
        n_needed=needed,
        batch=batch,
    )


def conformal_next_run(accuracies: FloatArray, *, rng: np.random.Generator, level: float = 0.95) -> ConformalInterval:
    """Interval for the accuracy of the next run, from the accuracies of past runs exchangeable with it.

    Args:
        accuracies: one for each past run (or block, or seed), shape (K',), fractions. Runs are exchangeable when they
            differ by nothing but chance: same model, protocol and number of items. Runs in a trend are not.
        rng: draws the split into training and calibration runs.
        level: 1 − α.

    Half of the runs calibrate, but `n_needed` of them where there are more than that; the rest give the centre. With
    fewer the interval is [0, 1].

    Raises:
        ValueError: for a level that is none, and for accuracies outside 0 to 1.
    """
    if accuracies.size and not bool(np.all((accuracies >= 0) & (accuracies <= 1))):
        raise ValueError("accuracies are fractions between 0 and 1")
    n, needed = accuracies.shape[0], _needed(level)
    fitting = max(n - 1, 0)
    calibrating = max(fitting // 2, min(needed, fitting))
    shuffled = accuracies[rng.permutation(n)]
    training = shuffled[calibrating:]
    centre = float(training.mean()) if training.size else 0.5
    scores = np.sort(np.abs(shuffled[:calibrating] - centre))
    rank = _rank(calibrating, level)
    # Outwards by more than the rounding of a sum and a difference, for a tie with the bound is covered.
    radius = float(scores[rank - 1]) + _ROUNDING if rank <= calibrating else 1.0
    return ConformalInterval(
        centre=centre,
        low=max(0.0, centre - radius),
        high=min(1.0, centre + radius),
        level=level,
        guaranteed=_guaranteed(calibrating, level),
        n_calibration=calibrating,
        n_needed=needed,
        batch=None,
    )


def _needed(level: float) -> int:
    """Smallest K with ⌈(K + 1)(1 − α)⌉ ≤ K, that is, 1/α − 1."""
    if not 0 < level < 1:
        raise ValueError(f"the level {level!r} is not between 0 and 1")
    return math.ceil(1 / (1 - _exact(level))) - 1


def _exact(level: float) -> Fraction:
    """The level as written: 0.95 is 19/20, and 20 × 0.95 must not be a hair above 19."""
    return Fraction(repr(float(level)))


def _rank(k: int, level: float) -> int:
    """Rank of the score that is the radius; past k where k scores are too few for the level."""
    return math.ceil((k + 1) * _exact(level))


def _guaranteed(k: int, level: float) -> float:
    return min(1.0, _rank(k, level) / (k + 1))
