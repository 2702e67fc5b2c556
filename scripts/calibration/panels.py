"""The fresh channel: models of differing ability on a benchmark, on a fresh set that may be harder, and a panel."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy import special

from calibration.cells import Cell, Measure, Tally
from calibration.coverage import holds
from calibration.rejection import SCORING
from proctor.evidence.answers import FloatArray
from proctor.evidence.fresh.bootstrap import FreshAnswers
from proctor.evidence.fresh.channel import fresh_evidence
from proctor.evidence.planning.families import RECALL

#: Its name in the table: abilities and difficulties, and no family of answers to wordings.
RASCH: Final = "rasch"
#: Ability of the audited model, in logits; reference models are standard normal about 0, as items' difficulties are.
ABILITY: Final = 0.5
#: How much harder the fresh items are for everyone where a panel can show it, in logits.
HARDER: Final = 0.3
#: Fewer than an audit draws: a standard error of a standard error of 3.5 %.
RESAMPLES: Final = 400


def fresh(cell: Cell, rng: np.random.Generator, replications: int) -> Tally:
    """Size, power and coverage of the excess; as many fresh items as benchmark ones, none of them leaked.

    Answers follow a Rasch model. A leaked item is one of any difficulty; the audited model alone memorised it.
    """
    tally, level, alpha = Tally(), SCORING.confidence_level, SCORING.significance_alpha
    harder = HARDER if cell.reference_models else 0.0
    truth = 100 * cell.leaked_share * (RECALL - _accuracy(ABILITY))
    for audit in range(replications):
        ability = np.append(ABILITY, rng.standard_normal(cell.reference_models))[:, None]
        benchmark = _answers(ability, rng.standard_normal(cell.items), rng)
        leaked = rng.random(cell.items) < cell.leaked_share
        benchmark[0, leaked] = rng.random(int(leaked.sum())) < RECALL
        later = _answers(ability, rng.standard_normal(cell.items) + harder, rng)
        found = fresh_evidence(
            FreshAnswers.of(benchmark[0], later[0], benchmark[1:], later[1:]),
            allowed_points=SCORING.max_allowed_contaminated_items_pct,
            block_points=SCORING.max_allowed_contaminated_items_pct,
            alpha=alpha,
            level=level,
            seed=audit,
            replicates=RESAMPLES,
        )
        tally.add(Measure.FRESH_P, found.p_value < alpha)
        tally.add(Measure.FRESH_EXCESS, holds(found.excess, truth))
    return tally


def _answers(ability: FloatArray, difficulty: FloatArray, rng: np.random.Generator) -> FloatArray:
    chance = special.expit(ability - difficulty)
    right: FloatArray = (rng.random(chance.shape) < chance).astype(np.float64)
    return right


def _accuracy(ability: float) -> float:
    """Mean over items of standard normal difficulty, by Gauss–Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return float((special.expit(ability - nodes) * weights).sum() / weights.sum())
