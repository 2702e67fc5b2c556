"""Contamination sensitivity and score confidence of the noise channel, one model at a time.

The paper (arXiv 2603.21636, equations 4 and 5) defines CS as the derivative of expected correctness by cue intensity
λ, and Conf = φ(|Δ|) for some falling φ; it fixes neither λ nor φ nor an estimator. Here λ is the router count, CS the
slope of noisy accuracy over it (the clean arm is another regime and is no point of the line), Δ the change of accuracy
over the range of router counts that was tried, CS · (r_max − r_min), and φ(x) = 1 − min(1, x).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from proctor.domain.evidence import Estimate


def contamination_sensitivity(router_counts: Sequence[int], accuracies: Sequence[float], level: float) -> Estimate:
    """Least-squares slope of accuracy (a fraction) over router count, per router, with its t interval.

    Assumes that settings scatter independently about a line; what they share (the questions) moves the whole line. Two
    settings have a slope without an interval, one has neither.
    """
    k = len(router_counts)
    method = "least-squares slope over router count, t interval"
    if k < 2:
        return Estimate(value=None, low=None, high=None, level=level, method=f"{method}; needs two router counts")
    r, y = np.asarray(router_counts, dtype=np.float64), np.asarray(accuracies, dtype=np.float64)
    spread = float(((r - r.mean()) ** 2).sum())
    slope = float(((r - r.mean()) * y).sum()) / spread
    if k == 2:
        return Estimate(value=slope, low=None, high=None, level=level, method=f"{method}; needs three router counts")
    residuals = y - y.mean() - slope * (r - r.mean())
    error = math.sqrt(float((residuals**2).sum()) / (k - 2) / spread)
    half = float(special.stdtrit(k - 2, 0.5 + level / 2)) * error
    return Estimate(value=slope, low=slope - half, high=slope + half, level=level, method=method)


def score_confidence(sensitivity: Estimate, router_counts: Sequence[int]) -> Estimate:
    """1 − min(1, |Δ|), Δ = CS · (r_max − r_min): 1 where accuracy does not move with noise, 0 where it moves wholly.

    The bounds are those of the slope, mapped. A falling accuracy lowers it as much as a rising one, as |Δ| does in the
    paper; only a rise is the sign of contamination.
    """
    span = max(router_counts, default=0) - min(router_counts, default=0)
    method = "1 − |slope · range of router counts|"
    if sensitivity.value is None:
        return Estimate(value=None, low=None, high=None, level=sensitivity.level, method=method)
    value = _confidence(sensitivity.value * span)
    if sensitivity.low is None or sensitivity.high is None:
        return Estimate(value=value, low=None, high=None, level=sensitivity.level, method=method)
    ends = [_confidence(sensitivity.low * span), _confidence(sensitivity.high * span)]
    high = 1.0 if sensitivity.low <= 0 <= sensitivity.high else max(ends)
    return Estimate(value=value, low=min(ends), high=high, level=sensitivity.level, method=method)


def _confidence(change: float) -> float:
    return 1.0 - min(1.0, abs(change))
