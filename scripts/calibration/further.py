"""The estimators beside the channel's own: against control items, and with wordings that are asked several times."""

from __future__ import annotations

from typing import Final

import numpy as np

from calibration.cells import Cell, Measure, Tally
from calibration.coverage import Truth, holds
from calibration.rejection import SCORING, paired
from proctor.evidence.answers import BoolArray, FloatArray, IntArray
from proctor.evidence.clusters import Clusters, clustered_contamination_score, clustered_score_inflation, clustered_test
from proctor.evidence.perturbation.control import controlled_inflation
from proctor.evidence.perturbation.exchangeability import exchangeability_test
from proctor.evidence.perturbation.studentised import studentised_test
from proctor.evidence.perturbation.wording_exchange import wording_exchangeability
from proctor.evidence.planning.families import Simulated

#: Chance that an answer is not the one that its wording leads to, where wordings are asked several times.
SLIP: Final = 0.10


def control(cell: Cell, rng: np.random.Generator, replications: int) -> Tally:
    """Difference-in-differences beside the uncontrolled p, where a rewording costs a clean model accuracy."""
    truth, tally, level, alpha = Truth.of(cell), Tally(), SCORING.confidence_level, SCORING.significance_alpha
    excess_score = truth.score - cell.cost / cell.model.accuracy
    for benchmark in cell.draws(rng, replications):
        audits = len(benchmark.canonical)
        controls = cell.model.draw(rng, audits=audits, items=cell.control_items, variants=cell.variants, cost=cell.cost)
        for answers, clean in zip(paired(benchmark, cell.variants), paired(controls, cell.variants), strict=True):
            found = controlled_inflation(answers, clean, level=level, alpha=alpha)
            uncontrolled = max(exchangeability_test(answers).p_value, studentised_test(answers))
            tally.add(Measure.DEFAULT_P, uncontrolled < alpha)
            tally.add(Measure.CONTROLLED_P, found.p_value < alpha)
            tally.add(Measure.EXCESS, holds(found.excess_inflation, 100 * (truth.inflation - cell.cost)))
            tally.add(Measure.EXCESS_SCORE, holds(found.excess_score, excess_score))
    return tally


def replicates(cell: Cell, rng: np.random.Generator, replications: int) -> Tally:
    """The p and the intervals where each wording is asked several times.

    The family says which answer a wording leads to; each answer then is the other one with chance `SLIP`.
    """
    keep = 1 - 2 * SLIP
    truth, tally, level, alpha = Truth.of(cell), Tally(), SCORING.confidence_level, SCORING.significance_alpha
    inflation, canonical = keep * truth.inflation, SLIP + keep * truth.canonical
    asked = np.full((cell.items, cell.variants + 1), cell.replicates)
    clusters = Clusters.single(cell.items)
    for simulated in cell.draws(rng, replications):
        for right in _answers(simulated, cell, rng):
            share = right / cell.replicates
            canonical_share = share[:, 0]
            differences: FloatArray = canonical_share - share[:, 1:].mean(axis=1)
            p_value = max(wording_exchangeability(right, asked).p_value, clustered_test(differences, clusters))
            d = clustered_score_inflation(differences, canonical_share, clusters, level)
            score = clustered_contamination_score(differences, canonical_share, clusters, level)
            tally.add(Measure.DEFAULT_P, p_value < alpha)
            tally.add(Measure.INFLATION, holds(d, 100 * inflation))
            tally.add(Measure.SCORE, holds(score, inflation / canonical))
    return tally


def _answers(simulated: Simulated, cell: Cell, rng: np.random.Generator) -> IntArray:
    """Right answers of each wording, the canonical one first; shape (audits, items, variants + 1)."""
    leads: BoolArray = np.arange(cell.variants) < simulated.right[..., None]
    leads = np.concatenate([simulated.canonical[..., None], leads], axis=-1)
    right: IntArray = rng.binomial(cell.replicates, np.where(leads, 1 - SLIP, SLIP))
    return right
