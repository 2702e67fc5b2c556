"""Peers that look after every item: a confidence sequence by betting, and optstop's rule. For comparison alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from calibration.cells import BLOCK, Cell, Measure, Tally
from calibration.rejection import GOVERNANCE, SCORING
from proctor.evidence.answers import BoolArray, FloatArray, IntArray
from proctor.evidence.intervals import z_quantile
from proctor.evidence.planning.pattern_chances import pattern_chances
from proctor.evidence.planning.simulated_audits import Limits, SimulatedAudits
from proctor.evidence.sequential.betting import Crossed, inflation_crossed, score_crossed

_LIMITS: Final = Limits(SCORING)
#: Jeffreys' prior of each pattern's chance. optstop has a model of its own, fitted by PyMC; the rule is its.
_PRIOR: Final = 0.5
#: Bounds are compared with a truth that was computed in another order.
_ROUNDING = 1e-9


class _Items(NamedTuple):
    """Answers of simulated audits item by item, shape (audits, n)."""

    patterns: IntArray
    """Places among the chances of `pattern_chances`, row by row."""
    differences: FloatArray
    canonical: FloatArray

    @classmethod
    def drawn(cls, cell: Cell, rng: np.random.Generator, audits: int) -> Iterator[_Items]:
        chances = pattern_chances(cell.model, cell.variants, leaked_share=cell.leaked_share, cost=cell.cost).ravel()
        for start in range(0, audits, BLOCK):
            drawn = rng.choice(chances.size, size=(min(BLOCK, audits - start), cell.items), p=chances)
            canonical, right = np.divmod(drawn, cell.variants + 1)
            yield cls(drawn, canonical - right / cell.variants, canonical.astype(np.float64))


def by_betting(
    tally: Tally, cell: Cell, truth: tuple[float, float], tuned: bool, rng: np.random.Generator, replications: int
) -> None:
    """A confidence sequence that is looked at after every item, and stops where it would approve or block.

    Args:
        tally: to count in.
        cell: its model and size.
        truth: D and the Contamination Score, fractions.
        tuned: whether the bets are tuned to the whole sample.
        rng: source of randomness.
        replications: audits.
    """
    tuned_to, level = cell.items if tuned else None, SCORING.confidence_level
    allowed, passed = SCORING.max_allowed_contaminated_items_pct, GOVERNANCE.block_deployment_above_contaminated_pct
    within = min(SCORING.contamination_threshold, GOVERNANCE.review_required_above_cs)
    for items in _Items.drawn(cell, rng, replications):

        def inflation(value: float, of: _Items = items, held: float = level) -> Crossed:
            return inflation_crossed(of.differences, value, level=held, tuned_to=tuned_to)

        def score(value: float, of: _Items = items) -> Crossed:
            return score_crossed(of.differences, of.canonical, value, level=level, tuned_to=tuned_to)

        approves = inflation(allowed / 100).below & score(within).below
        blocks = inflation(passed / 100).above | score(SCORING.contamination_threshold).above
        asked = _first(approves | blocks)
        outside = [of[0] | of[1] for of in (inflation(truth[0]), score(truth[1]))]
        found = inflation(0.0, held=1 - 2 * SCORING.significance_alpha).above
        at_stop = [_at(asked, of) for of in (approves, blocks, found, *outside)]
        _count(tally, cell, asked, at_stop[0], at_stop[1] & ~at_stop[0])
        tally.add(Measure.ANY_LOOK_P, int(at_stop[2].sum()), asked.size)
        tally.add(Measure.INFLATION, int((~at_stop[3]).sum()), asked.size)
        tally.add(Measure.SCORE, int((~at_stop[4]).sum()), asked.size)
        tally.add(Measure.INFLATION_AT_LOOKS, int((~outside[0][:, -1]).sum()), asked.size)
        tally.add(Measure.SCORE_AT_LOOKS, int((~outside[1][:, -1]).sum()), asked.size)


def by_optstop(
    tally: Tally, cell: Cell, truth: tuple[float, float], cap: float, rng: np.random.Generator, replications: int
) -> None:
    """Stop where D's 95 % credible interval is no wider than the cap, and decide by the ordinary interval there.

    The rule of optstop (Pilditch 2026, arXiv 2608.14425), whose model is replaced by the conjugate one of pattern
    counts: a Dirichlet posterior, of which D is taken to be normal.

    Args:
        tally: to count in.
        cell: its model and size.
        truth: D in points, and the Contamination Score.
        cap: width, as a fraction of the scale of D.
        rng: source of randomness.
        replications: audits.
    """
    canonical, right = np.divmod(np.arange(2 * (cell.variants + 1)), cell.variants + 1)
    each, prior = canonical - right / cell.variants, _PRIOR * 2 * (cell.variants + 1)
    level = SCORING.confidence_level
    for items in _Items.drawn(cell, rng, replications):
        mass = prior + np.arange(1, cell.items + 1)
        mean = (_PRIOR * each.sum() + np.cumsum(items.differences, axis=1)) / mass
        square = (_PRIOR * (each**2).sum() + np.cumsum(items.differences**2, axis=1)) / mass
        width = 2 * z_quantile(0.5 + level / 2) * np.sqrt((square - mean**2) / (mass + 1))
        asked = _first(width <= cap)
        until = np.arange(cell.items) < asked[:, None]
        counts = np.stack([((items.patterns == place) & until).sum(axis=1) for place in range(each.size)], axis=1)
        audits = SimulatedAudits(counts.reshape(-1, 2, cell.variants + 1))
        approved, blocked = audits.decisions(_LIMITS)
        _count(tally, cell, asked, approved, blocked)
        found = audits.significant(SCORING.significance_alpha, exact=False)
        tally.add(Measure.ANY_LOOK_P, int(found.sum()), asked.size)
        held = (
            (Measure.INFLATION, audits.inflation(level), truth[0]),
            (Measure.SCORE, audits.contamination_score(level), truth[1]),
        )
        for measure, (_, low, high), value in held:
            holds = (low <= value + _ROUNDING) & (value - _ROUNDING <= high)
            tally.add(measure, int(holds.sum()), asked.size)


def _first(stops: BoolArray) -> IntArray:
    """Items asked until the first stop of each audit, or all of them."""
    result: IntArray = np.where(stops.any(axis=1), stops.argmax(axis=1) + 1, stops.shape[1])
    return result


def _at(asked: IntArray, of: BoolArray) -> BoolArray:
    result: BoolArray = np.take_along_axis(of, asked[:, None] - 1, axis=1)[:, 0]
    return result


def _count(tally: Tally, cell: Cell, asked: IntArray, approved: BoolArray, blocked: BoolArray) -> None:
    tally.add(Measure.ITEMS_ASKED, round(float(asked.sum()) / cell.items), asked.size)
    tally.add(Measure.APPROVED, int(approved.sum()), asked.size)
    tally.add(Measure.REVIEWED, int((~approved & ~blocked).sum()), asked.size)
    tally.add(Measure.BLOCKED, int(blocked.sum()), asked.size)
