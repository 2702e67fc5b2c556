"""The claims, and whether the counts contradict them.

A claim is about the true rate of every one of its cells: at most, or at least, a bound. Each cell gets the exact
one-sided binomial p-value of its count under the bound, corrected by Holm over the claim's cells. The claim fails where
a corrected p-value is below 0.05. Beside it stands the worst raw rate, because "not contradicted" says little about a
cell that is close to its bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from scipy import special

from calibration.cells import Cell, Measure, Row
from proctor.evidence.multiplicity import holm

FAMILY_ALPHA: Final = 0.05


class Claim(NamedTuple):
    """What is said of the true rate of some measures in some cells of one study."""

    name: str
    study: str
    measures: tuple[Measure, ...]
    bound: float
    at_least: bool = False
    concerns: Callable[[Cell], bool] = lambda cell: True

    def covers(self, row: Row) -> bool:
        """Whether the claim says something of this row."""
        return row.cell.study == self.study and row.measure in self.measures and self.concerns(row.cell)

    def p_value(self, row: Row) -> float:
        """Chance of a count at least this bad where the true rate is just the bound."""
        if self.at_least:
            return float(special.bdtr(float(row.hits), row.trials, self.bound))
        return float(special.bdtrc(float(row.hits - 1), row.trials, self.bound)) if row.hits else 1.0


class Judgement(NamedTuple):
    """What a claim makes of one row."""

    claim: Claim
    p_value: float
    p_holm: float

    @property
    def holds(self) -> bool:
        """Whether the count is compatible with the claim."""
        return self.p_holm >= FAMILY_ALPHA


class Verdict(NamedTuple):
    """A claim with its worst row."""

    claim: Claim
    rows: int
    worst: Row
    smallest_p_holm: float

    @property
    def holds(self) -> bool:
        """Whether no row contradicts the claim."""
        return self.smallest_p_holm >= FAMILY_ALPHA


def judge(rows: Sequence[Row], claims: Sequence[Claim]) -> tuple[dict[Row, Judgement], list[Verdict]]:
    """Every row that a claim covers, and every claim that covers a row.

    Raises:
        ValueError: where two claims cover one row.
    """
    judged: dict[Row, Judgement] = {}
    verdicts = []
    for claim in claims:
        covered = [row for row in rows if claim.covers(row)]
        if not covered:
            continue
        if twice := [row for row in covered if row in judged]:
            raise ValueError(f"two claims about {twice[0].cell.name!r}, {twice[0].measure}")
        raw = [claim.p_value(row) for row in covered]
        adjusted = holm(raw)
        judged |= {row: Judgement(claim, p, p_holm) for row, p, p_holm in zip(covered, raw, adjusted, strict=True)}
        worst = (min if claim.at_least else max)(covered, key=lambda row: row.rate)
        verdicts.append(Verdict(claim, len(covered), worst, min(adjusted)))
    return judged, verdicts
