"""How likely an audit is to find a cell's leak: the channels' verdicts over items drawn again and again."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planted_leaks.cells import Cell
from planted_leaks.grades import Grades
from planted_leaks.judging import FRESH, PERTURBATION, verdicts_of

RESAMPLES: Final = 200
CHANNELS: Final = (PERTURBATION, FRESH)


class Power(NamedTuple):
    """Share of the resampled audits in which a channel says contaminated, and in which the gate approves by wording."""

    contaminated: dict[str, float]
    approved: float


def power(cell: Cell, grades: Grades, *, resamples: int = RESAMPLES, seed: int = 0) -> Power:
    """Draw the items of a cell's audit anew, with replacement, and judge each draw."""
    rng = np.random.default_rng([seed, cell.seed, cell.dose, cell.forgotten])
    found, approved = dict.fromkeys(CHANNELS, 0), 0
    for _ in range(resamples):
        drawn = _drawn(grades, rng)
        verdicts, outcome = verdicts_of(cell.kind, drawn)
        for channel in CHANNELS:
            found[channel] += verdicts[channel] == "contaminated"
        approved += outcome == "approve"
    return Power({channel: count / resamples for channel, count in found.items()}, approved / resamples)


def _drawn(grades: Grades, rng: np.random.Generator) -> Grades:
    items, fresh = len(grades.canonical), len(grades.fresh)
    places, others = rng.integers(items, size=items).tolist(), rng.integers(fresh, size=fresh).tolist()

    def taken(signs: str, places: list[int]) -> str:
        return "".join(signs[place] for place in places)

    return Grades(
        taken(grades.leaked, places),
        taken(grades.canonical, places),
        tuple(taken(arm, places) for arm in grades.reworded),
        taken(grades.fresh, others),
    )
