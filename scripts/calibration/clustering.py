"""Items that share a passage or a template: intervals and the test over clusters, and a batch that is still to come."""

from __future__ import annotations

from typing import Final

import numpy as np

from calibration.cells import Cell, Measure, Tally
from calibration.coverage import Truth, holds
from calibration.layouts import Layout, cluster_sizes
from calibration.rejection import SCORING, paired
from proctor.evidence.answers import IntArray
from proctor.evidence.clusters import (
    Clusters,
    clustered_contamination_score,
    clustered_score_inflation,
    clustered_share,
    clustered_test,
)
from proctor.evidence.intervals import score_inflation
from proctor.evidence.perturbation.exchangeability import exchangeability_test
from proctor.evidence.perturbation.studentised import studentised_test
from proctor.evidence.planning.families import Simulated
from proctor.evidence.protocol.conformal import conformal_future_accuracy

#: Graded items for each item of the batch to come.
_BATCHES: Final = 20


def clustered(cell: Cell, rng: np.random.Generator, replications: int) -> Tally:
    """Coverage and size over clusters, and beside them of what takes items as independent."""
    truth, tally, level, alpha = Truth.of(cell), Tally(), SCORING.confidence_level, SCORING.significance_alpha
    sizes = cluster_sizes(Layout(cell.layout), cell.clusters, cell.cluster_items)
    labels = np.repeat(np.arange(cell.clusters), sizes)
    clusters = Clusters.of(labels.tolist())
    whole = cell._replace(items=cell.clusters)
    for own, common in zip(cell.draws(rng, replications), whole.draws(rng, replications), strict=True):
        for answers in paired(_mixed(own, common, labels, cell.shared, rng), cell.variants):
            differences, canonical = answers.differences, answers.canonical.astype(np.float64)
            d = clustered_score_inflation(differences, canonical, clusters, level)
            score = clustered_contamination_score(differences, canonical, clusters, level)
            right, reworded = (
                clustered_share(share, clusters, level) for share in (canonical, canonical - differences)
            )
            over, alone = clustered_test(differences, clusters) < alpha, studentised_test(answers) < alpha
            # The exact test is slow with thousands of items, and decides only where the other part of p is small.
            exact = (over or alone) and exchangeability_test(answers).p_value < alpha
            tally.add(Measure.DEFAULT_P, over and exact)
            tally.add(Measure.INFLATION, holds(d, 100 * truth.inflation))
            tally.add(Measure.SCORE, holds(score, truth.score))
            tally.add(Measure.CANONICAL, holds(right, truth.canonical))
            tally.add(Measure.REWORDED, holds(reworded, truth.reworded))
            tally.add(Measure.UNCLUSTERED_P, alone and exact)
            tally.add(Measure.UNCLUSTERED_INFLATION, holds(score_inflation(answers, level), 100 * truth.inflation))
    return tally


def _mixed(own: Simulated, common: Simulated, labels: IntArray, shared: float, rng: np.random.Generator) -> Simulated:
    clusters_own = rng.random(own.canonical.shape) < shared
    pairs = zip(own, common, strict=True)
    return Simulated(*(np.where(clusters_own, one[:, labels], each) for each, one in pairs))


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
