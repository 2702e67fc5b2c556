"""How often each 95 % interval holds the truth, and how often the plain ones beside them do."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from calibration.cells import Cell, Measure, Tally
from calibration.rejection import SCORING, paired
from proctor.domain.evidence import Estimate
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.intervals import (
    PairMoments,
    PairSums,
    contamination_score,
    contamination_score_bounds,
    leaked_share,
    mean_share,
    score_inflation,
    wilson,
)
from proctor.evidence.paired.discordance import PairCounts, agresti_min, bootstrap_interval, mcnemar_exact

#: Enough for a percentile of a bootstrap that is shown beside the others, and not proposed.
_RESAMPLES = 1_000
#: Bounds are compared with a truth that was computed in another order.
_ROUNDING = 1e-9


class Truth(NamedTuple):
    """What an endless audit of the cell's model would find; fractions."""

    inflation: float
    canonical: float
    reworded: float

    @classmethod
    def of(cls, cell: Cell) -> Truth:
        """From the family's closed form."""
        clean = cell.model.accuracy
        leaks = cell.model.inflation(cell.leaked_share)
        return cls(leaks + cell.cost, clean + leaks, clean - cell.cost)

    @property
    def score(self) -> float:
        """The Contamination Score."""
        return self.inflation / self.canonical


def holds(estimate: Estimate, truth: float) -> bool:
    """Whether the interval holds the truth; one that is unbounded does."""
    return within(None if estimate.low is None or estimate.high is None else (estimate.low, estimate.high), truth)


def within(bounds: tuple[float, float] | None, truth: float) -> bool:
    """Whether the truth lies between the bounds, or there are none."""
    return bounds is None or bounds[0] - _ROUNDING <= truth <= bounds[1] + _ROUNDING


def channel_coverage(cell: Cell, rng: np.random.Generator, replications: int) -> Tally:
    """Coverage of the perturbation channel's intervals, and of plain ones without pseudo-items.

    The leaked share is estimated where its assumption holds: in families in which only unknown items leak, with the
    chance that such an item is answered right. The percentile bootstrap is costly, and stands beside 3 variants.
    """
    truth, tally, level, guess = Truth.of(cell), Tally(), SCORING.confidence_level, cell.model.unknown_chance
    for simulated in cell.draws(rng, replications):
        for answers in paired(simulated, cell.variants):
            patterns = answers.patterns
            inflation = score_inflation(answers, level)
            reworded = mean_share(patterns.reworded_share, patterns.counts, level)
            tally.add(Measure.INFLATION, holds(inflation, 100 * truth.inflation))
            tally.add(Measure.SCORE, holds(contamination_score(answers, level), truth.score))
            tally.add(Measure.CANONICAL, holds(wilson(int(answers.canonical.sum()), answers.n, level), truth.canonical))
            tally.add(Measure.REWORDED, holds(reworded, truth.reworded))
            share = leaked_share(inflation, guess)
            if share is not None:
                tally.add(Measure.LEAKED_SHARE, holds(share, 100 * cell.leaked_share))
            plain = _plain_moments(PairSums.of(answers))
            tally.add(Measure.PLAIN_INFLATION, within(_plain_bounds(plain, level), truth.inflation))
            tally.add(Measure.PLAIN_SCORE, within(contamination_score_bounds(plain, level), truth.score))
            if cell.variants == 3:
                tally.add(Measure.BOOTSTRAP_INFLATION, within(_bootstrap_bounds(answers, level, rng), truth.inflation))
    return tally


def _plain_moments(sums: PairSums) -> PairMoments:
    n, mean_d, mean_b = sums.n, sums.d / sums.n, sums.b / sums.n
    return PairMoments(
        n,
        mean_d,
        mean_b,
        max(sums.dd - n * mean_d**2, 0.0) / (n - 1),
        max(sums.b - n * mean_b**2, 0.0) / (n - 1),
        (sums.db - n * mean_d * mean_b) / (n - 1),
    )


def _plain_bounds(moments: PairMoments, level: float) -> tuple[float, float]:
    half = float(special.stdtrit(moments.n - 1, 0.5 + level / 2)) * math.sqrt(moments.var_d / moments.n)
    return moments.mean_d - half, moments.mean_d + half


def _bootstrap_bounds(answers: PairedAnswers, level: float, rng: np.random.Generator) -> tuple[float, float]:
    patterns = answers.patterns
    drawn = rng.multinomial(answers.n, patterns.counts / answers.n, size=_RESAMPLES) @ patterns.differences
    low, high = np.quantile(drawn / answers.n, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


def comparison_coverage(cell: Cell, rng: np.random.Generator, replications: int) -> Tally:
    """Two runs on the same items, of which the first may have memorised a share: intervals of their difference.

    The clean cells are two equal models, whose McNemar test should reject in 5 % at most.
    """
    truth, tally, level = Truth.of(cell).inflation, Tally(), SCORING.confidence_level
    for simulated in cell.draws(rng, replications):
        for a, b in zip(simulated.canonical, simulated.right.astype(np.bool_), strict=True):
            counts = PairCounts(int((a & b).sum()), int((a & ~b).sum()), int((b & ~a).sum()), int((~a & ~b).sum()))
            tally.add(Measure.PAIRED_DIFFERENCE, holds(agresti_min(counts, level), truth))
            bootstrap = bootstrap_interval(counts, level, rng, replicates=_RESAMPLES)
            tally.add(Measure.PAIRED_BOOTSTRAP, holds(bootstrap, truth))
            p_value = mcnemar_exact(counts.only_a, counts.only_b)
            tally.add(Measure.MCNEMAR_P, p_value < SCORING.significance_alpha)
    return tally
