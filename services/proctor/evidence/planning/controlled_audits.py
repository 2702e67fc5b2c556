"""What the gate does with simulated audits that have control items, all of them at once.

The same bounds, p-values and limits as `control.controlled_inflation` and the gate's decision table, as array
arithmetic: a test holds the two together audit by audit. The other channels are taken to be clean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from proctor.evidence.answers import BoolArray, FloatArray
from proctor.evidence.intervals import PSEUDO_ITEMS
from proctor.evidence.perturbation.control_items import MIN_CONTROL_ITEMS
from proctor.evidence.planning.simulated_audits import Bounds, Decisions, Limits, SimulatedAudits


@dataclass(frozen=True)
class _Moments:
    """After four pseudo-items, a row for each audit; variances and covariance are of single items."""

    n: FloatArray
    mean_d: FloatArray
    mean_b: FloatArray
    var_d: FloatArray
    var_b: FloatArray
    cov: FloatArray

    @classmethod
    def of(cls, audits: SimulatedAudits) -> _Moments:
        d, b, dd, db = audits.sums
        n = (audits.n + PSEUDO_ITEMS).astype(np.float64)
        mean_d, mean_b = d / n, (b + 2) / n
        return cls(
            n,
            mean_d,
            mean_b,
            np.maximum(dd + 2 - n * mean_d**2, 0.0) / (n - 1),
            np.maximum(b + 2 - n * mean_b**2, 0.0) / (n - 1),
            (db + 1 - n * mean_d * mean_b) / (n - 1),
        )


@dataclass(frozen=True)
class _Welch:
    """A difference of two means with its standard error and degrees of freedom, a row for each audit."""

    difference: FloatArray
    error: FloatArray
    freedom: FloatArray

    @classmethod
    def of(
        cls,
        difference: FloatArray,
        variances: tuple[FloatArray, FloatArray],
        samples: tuple[_Moments, _Moments],
    ) -> _Welch:
        parts = [variance / one.n for variance, one in zip(variances, samples, strict=True)]
        total = parts[0] + parts[1]
        freedom = total**2 / sum(part**2 / (one.n - 1) for part, one in zip(parts, samples, strict=True))
        return cls(difference, np.sqrt(total), freedom)

    @property
    def p_value(self) -> FloatArray:
        result: FloatArray = special.stdtr(self.freedom, -self.difference / self.error)
        return result


@dataclass(frozen=True)
class ControlledAudits:
    """Audits of a benchmark, each beside control items of its own."""

    benchmark: SimulatedAudits
    control: SimulatedAudits

    def _points(self) -> _Welch:
        first, second = _Moments.of(self.benchmark), _Moments.of(self.control)
        return _Welch.of(first.mean_d - second.mean_d, (first.var_d, second.var_d), (first, second))

    def _share(self) -> _Welch:
        first, second = _Moments.of(self.benchmark), _Moments.of(self.control)
        share, ratio = second.mean_d / second.mean_b, first.mean_b / second.mean_b

        def spread(one: _Moments) -> FloatArray:
            return np.maximum(one.var_d - 2 * share * one.cov + share**2 * one.var_b, 0.0)

        difference = first.mean_d - share * first.mean_b
        return _Welch.of(difference, (spread(first), ratio**2 * spread(second)), (first, second))

    def inflation(self, level: float) -> Bounds:
        """The excess in points, as `controlled_inflation` gives it."""
        contrast = self._points()
        value = self.benchmark.inflation(level).value - self.control.inflation(level).value
        half = special.stdtrit(contrast.freedom, 0.5 + level / 2) * contrast.error
        low = 100 * np.maximum(-2.0, contrast.difference - half)
        high = 100 * np.minimum(2.0, contrast.difference + half)
        return Bounds(value, np.minimum(low, value), np.maximum(high, value))

    def contamination_score(self, level: float) -> Bounds:
        """The difference of the Contamination Scores, as `controlled_inflation` gives it; 0 where it is undefined."""
        first, second = self.benchmark.contamination_score(level), self.control.contamination_score(level)
        value = first.value - second.value
        known = np.isfinite([first.low, first.high, second.low, second.high]).all(axis=0)
        low = value - np.hypot(first.value - first.low, second.high - second.value)
        high = value + np.hypot(first.high - first.value, second.value - second.low)
        return Bounds(value, np.where(known, low, -np.inf), np.where(known, high, np.inf))

    @property
    def _enough(self) -> BoolArray:
        result: BoolArray = self.control.n >= MIN_CONTROL_ITEMS
        return result

    def significant(self, alpha: float, *, exact: bool = True) -> BoolArray:
        """Whether p, the larger of that in points and that as a share of right answers, is below alpha."""
        del exact
        result: BoolArray = self._enough & (np.maximum(self._points().p_value, self._share().p_value) < alpha)
        return result

    def decisions(self, limits: Limits) -> Decisions:
        """What the gate decides, as `scorer.policy.decide` does where every other channel is clean."""
        scoring, governance, _ = limits
        able = self.benchmark.above_chance(limits) & self._enough
        inflation = self.inflation(scoring.confidence_level)
        score = self.contamination_score(scoring.confidence_level)
        if scoring.method == "per_item_t_test":
            blocked = self.benchmark.decisions(limits).blocked & able
        else:
            past = inflation.low > governance.block_deployment_above_contaminated_pct
            past |= score.low > scoring.contamination_threshold
            blocked = past & self.significant(scoring.significance_alpha) & able
        within = inflation.high <= scoring.max_allowed_contaminated_items_pct
        within &= score.high <= min(scoring.contamination_threshold, governance.review_required_above_cs)
        return Decisions(within & ~blocked & able, blocked)
