"""Items that share a passage or a template: intervals and the test over clusters, and a batch that is still to come."""

from __future__ import annotations

from typing import Final

import numpy as np

from calibration.cells import Cell, Measure, Tally
from calibration.coverage import Truth, holds
from calibration.rejection import SCORING, paired
from proctor.evidence.answers import IntArray
from proctor.evidence.clusters import (
    Clusters,
    clustered_accuracy,
    clustered_contamination_score,
    clustered_score_inflation,
    clustered_test,
)
from proctor.evidence.intervals import score_inflation
from proctor.evidence.planning.families import Simulated
from proctor.evidence.protocol.conformal import conformal_future_accuracy

#: Chance that an item's answers are its cluster's own, the same for all of them, and not the item's.
SHARED: Final = 0.5
#: Graded items for each item of the batch to come.
_BATCHES: Final = 20


def clustered(cell: Cell, rng: np.random.Generator, replications: int) -> Tally:
    """Coverage and size over clusters, and beside them of what takes items as independent."""
    truth, tally, level = Truth.of(cell), Tally(), SCORING.confidence_level
    labels = np.arange(cell.items) // cell.cluster_items
    clusters = Clusters.of(labels.tolist())
    whole = cell._replace(items=int(labels[-1]) + 1)
    for own, common in zip(cell.draws(rng, replications), whole.draws(rng, replications), strict=True):
        for answers in paired(_mixed(own, common, labels, rng), cell.variants):
            differences, canonical = answers.differences, answers.canonical.astype(np.float64)
            d = clustered_score_inflation(differences, canonical, clusters, level)
            score = clustered_contamination_score(differences, canonical, clusters, level)
            tally.add(Measure.CLUSTERED_P, clustered_test(differences, clusters) < SCORING.significance_alpha)
            tally.add(Measure.INFLATION, holds(d, 100 * truth.inflation))
            tally.add(Measure.SCORE, holds(score, truth.score))
            tally.add(Measure.CANONICAL, holds(clustered_accuracy(canonical, clusters, level), truth.canonical))
            tally.add(Measure.UNCLUSTERED_INFLATION, holds(score_inflation(answers, level), 100 * truth.inflation))
    return tally


def _mixed(own: Simulated, common: Simulated, labels: IntArray, rng: np.random.Generator) -> Simulated:
    shared = rng.random(own.canonical.shape) < SHARED
    pairs = zip(own, common, strict=True)
    return Simulated(*(np.where(shared, one[:, labels], each) for each, one in pairs))


def future_batch(cell: Cell, rng: np.random.Generator, replications: int) -> Tally:
    """Whether the split-conformal interval holds the accuracy of the next batch, of a twentieth of the graded items."""
    tally, batch = Tally(), cell.items // _BATCHES
    longer = cell._replace(items=cell.items + batch)
    for simulated in longer.draws(rng, replications):
        for right in simulated.canonical:
            found = conformal_future_accuracy(right[: cell.items], batch=batch, rng=rng, level=SCORING.confidence_level)
            accuracy = float(right[cell.items :].mean())
            tally.add(Measure.FUTURE_ACCURACY, found.low <= accuracy <= found.high)
    return tally
