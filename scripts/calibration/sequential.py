"""Audits that stop when the evidence decides: what each design asks, decides, covers and gets wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from calibration.cells import Cell, Measure, Tally
from calibration.coverage import Truth
from calibration.designs import BETTING, DESIGNS, OPTSTOP
from calibration.itemwise import by_betting, by_optstop
from calibration.layouts import Layout, cluster_sizes
from calibration.rejection import SCORING
from proctor.domain.suite_design import DesignSection
from proctor.evidence.answers import BoolArray
from proctor.evidence.planning.pattern_chances import pattern_chances
from proctor.evidence.planning.sequential_audits import (
    Audits,
    drawn_clustered_looks,
    drawn_controlled_looks,
    drawn_looks,
    stopped,
    whole_clusters,
)
from proctor.evidence.planning.simulated_audits import Bounds, Decisions, Limits
from proctor.evidence.sequential.item_order import look_sizes
from proctor.evidence.sequential.schedule import Look, schedule

_LIMITS: Final = Limits(SCORING)
#: Bounds are compared with a truth that was computed in another order.
_ROUNDING = 1e-9


class Target(NamedTuple):
    """What an endless audit would hold against the limits: D in points and the Contamination Score, or the excess."""

    inflation: float
    score: float

    @classmethod
    def of(cls, cell: Cell) -> Target:
        """Of the cell's model, beyond what a rewording costs where there are control items."""
        truth = Truth.of(cell)
        if not cell.control_items:
            return cls(100 * truth.inflation, truth.score)
        return cls(100 * (truth.inflation - cell.cost), truth.score - cell.cost / cell.model.accuracy)

    @property
    def past_limit(self) -> bool:
        """Whether an approval would be false by the suite's default limit of D."""
        return self.inflation > SCORING.max_allowed_contaminated_items_pct


def designed(cell: Cell, rng: np.random.Generator, replications: int) -> Tally:
    """What the cell's design does."""
    target, tally = Target.of(cell), Tally()
    if cell.design in BETTING:
        by_betting(tally, cell, (target.inflation / 100, target.score), BETTING[cell.design], rng, replications)
    elif cell.design in OPTSTOP:
        by_optstop(tally, cell, (target.inflation, target.score), OPTSTOP[cell.design], rng, replications)
    else:
        _by_looks(tally, cell, target, rng, replications)
    if target.past_limit:
        tally.add(Measure.FALSELY_APPROVED, tally.hits(Measure.APPROVED), replications)
    return tally


def _by_looks(tally: Tally, cell: Cell, target: Target, rng: np.random.Generator, replications: int) -> None:
    design = DESIGNS[cell.design]
    looks, so_far = _audits(cell, design, rng, replications)
    seen = _Watched(looks, so_far, target)
    result = stopped(looks, seen, _LIMITS, futility=design.futility)
    inflation, score = Measure.INFLATION, Measure.SCORE
    if cell.control_items:
        inflation, score = Measure.EXCESS, Measure.EXCESS_SCORE
    counts = {
        Measure.ITEMS_ASKED: round(float(result.n_items.sum()) / looks[-1].n_items),
        Measure.APPROVED: result.approved.sum(),
        Measure.REVIEWED: (~result.approved & ~result.blocked).sum(),
        Measure.BLOCKED: result.blocked.sum(),
        Measure.FUTILE: result.futile.sum(),
        Measure.ANY_LOOK_P: result.rejected.sum(),
        inflation: _hold(result.inflation, target.inflation).sum(),
        score: _hold(result.score, target.score).sum(),
        Measure.INFLATION_AT_LOOKS: seen.inflation_held.sum(),
        Measure.SCORE_AT_LOOKS: seen.score_held.sum(),
        Measure.WHOLE_APPROVED: seen.whole.approved.sum(),
        Measure.WHOLE_BLOCKED: seen.whole.blocked.sum(),
    }
    for measure, hits in counts.items():
        tally.add(measure, int(hits), replications)


def _hold(bounds: Bounds, truth: float) -> BoolArray:
    result: BoolArray = (bounds.low <= truth + _ROUNDING) & (truth - _ROUNDING <= bounds.high)
    return result


class _Watched:
    """Audits on their way past the looks, and whether the intervals of all of them held the truth."""

    inflation_held: BoolArray
    score_held: BoolArray
    whole: Decisions
    """What a fixed design decides on the same answers."""

    def __init__(self, looks: Sequence[Look], so_far: Iterable[Audits], target: Target) -> None:
        self._looks, self._so_far, self._target = looks, so_far, target

    def __iter__(self) -> Iterator[Audits]:
        for look, audits in zip(self._looks, self._so_far, strict=True):
            inflation = _hold(audits.inflation(look.level), self._target.inflation)
            score = _hold(audits.contamination_score(look.level), self._target.score)
            first = look.number == 1
            self.inflation_held = inflation if first else self.inflation_held & inflation
            self.score_held = score if first else self.score_held & score
            if look.last:
                self.whole = audits.decisions(_LIMITS)
            yield audits


def _audits(
    cell: Cell, design: DesignSection, rng: np.random.Generator, replications: int
) -> tuple[tuple[Look, ...], Iterator[Audits]]:
    chances = pattern_chances(cell.model, cell.variants, leaked_share=cell.leaked_share, cost=cell.cost)
    if cell.clusters:
        sizes = rng.permutation(cluster_sizes(Layout(cell.layout), cell.clusters, cell.cluster_items))
        ends = whole_clusters(sizes, look_sizes(design, cell.items))
        looks = _schedule(design, [int(sizes[:end].sum()) for end in ends])
        return looks, drawn_clustered_looks(chances, sizes, ends, audits=replications, rng=rng, shared=cell.shared)
    looks = _schedule(design, look_sizes(design, cell.items))
    if not cell.control_items:
        return looks, drawn_looks(chances, looks, audits=replications, rng=rng)
    clean = pattern_chances(cell.model, cell.variants, cost=cell.cost)
    return looks, drawn_controlled_looks(chances, clean, looks, cell.control_items, audits=replications, rng=rng)


def _schedule(design: DesignSection, sizes: Sequence[int]) -> tuple[Look, ...]:
    return schedule(design, sizes, level=SCORING.confidence_level, alpha=SCORING.significance_alpha)
