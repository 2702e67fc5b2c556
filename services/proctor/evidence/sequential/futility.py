"""How likely an audit is still to decide: below the suite's share of that, further items are asked in vain.

The estimate of the last look is predicted from this one's: over items, a mean with standard error s at the share t of
the information will be normal around what it is now, with variance s² − s²t, where nothing but the sample is known (a
flat prior; Spiegelhalter, Freedman and Blackburn 1986, Controlled Clinical Trials 7, 8–17). Stopping by it can approve
and block nobody, so that no error rate rises; it costs decisions that would have come against the odds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from proctor.domain.estimate import Estimate
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.evidence.answers import FloatArray
from proctor.evidence.intervals import z_quantile
from proctor.evidence.sequential.schedule import Look

#: Where a prediction has no spread left: at the last look itself.
_LEAST_SPREAD = 1e-12


class Interval(NamedTuple):
    """An estimate with its bounds, or those of many audits, a row each; infinite where it is unbounded."""

    value: ArrayLike
    low: ArrayLike
    high: ArrayLike

    @classmethod
    def of(cls, estimate: Estimate) -> Interval | None:
        """Of one estimate; None where it is undefined or unbounded."""
        if estimate.value is None or estimate.low is None or estimate.high is None:
            return None
        return cls(estimate.value, estimate.low, estimate.high)


def decision_chance(
    inflation: Interval,
    score: Interval,
    scoring: ScoringSection,
    governance: GovernanceSection,
    *,
    now: Look,
    last: Look,
) -> FloatArray:
    """Chance that the last look approves or blocks, by what is seen now; 1 where an interval is unbounded.

    That p is below its level too is left to the lower bound, which implies it nearly always. Looks between are left
    out: who decides there mostly would at the last. Approval needs both estimates, so its chance is the smaller of
    theirs; one of them blocks, so that is the larger.

    Args:
        inflation: of D in points, at the level of this look.
        score: the Contamination Score, a fraction.
        scoring: the suite's, of which the limits alone are looked at.
        governance: the same.
        now: this look.
        last: the last one.
    """
    limits = (
        (inflation, scoring.max_allowed_contaminated_items_pct, governance.block_deployment_above_contaminated_pct),
        (
            score,
            min(scoring.contamination_threshold, governance.review_required_above_cs),
            scoring.contamination_threshold,
        ),
    )
    (approve, block), (approve_too, block_too) = (
        _chances(interval, now, last, allowed, blocked) for interval, allowed, blocked in limits
    )
    chance = np.minimum(approve, approve_too) + np.maximum(block, block_too)
    bounded = np.isfinite(np.asarray(score.high)) & np.isfinite(np.asarray(score.low))
    result: FloatArray = np.where(bounded, np.minimum(chance, 1.0), 1.0)
    return result


def _chances(
    interval: Interval, now: Look, last: Look, allowed: float, blocked: float
) -> tuple[FloatArray, FloatArray]:
    value, low, high = (np.nan_to_num(np.asarray(side, dtype=np.float64), posinf=0.0, neginf=0.0) for side in interval)
    error = (high - low) / 2 / z_quantile(0.5 + now.level / 2)
    at_last = error * np.sqrt(now.information)
    reach = z_quantile(0.5 + last.level / 2) * at_last
    spread = np.sqrt(np.maximum(error**2 - at_last**2, _LEAST_SPREAD))
    return special.ndtr((allowed - reach - value) / spread), special.ndtr((value - reach - blocked) / spread)
