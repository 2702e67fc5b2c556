"""What the gate does with simulated audits, all of them at once, from their pattern counts.

The same bounds, p-values and limits as `perturbation_evidence` and the gate's decision table, as array arithmetic: a
test holds the two together audit by audit. The other channels are taken to be clean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from proctor.domain.suite import GovernanceSection, ScoringSection, Suite
from proctor.evidence.answers import BoolArray, FloatArray, IntArray, PairedAnswers
from proctor.evidence.intervals import PSEUDO_ITEMS, z_quantile
from proctor.evidence.perturbation.exchangeability import EXACT_LIMIT, exact_upper_tail, saddlepoint_upper_tail
from proctor.evidence.perturbation.per_item_t_test import per_item_t_test

#: An approximate p-value further than this factor from alpha settles on which side the exact one is.
_CLEARLY = 2.0
#: Halvings that find a tilt between 0 and `_MAX_TILT` to eight decimals, which gives the tail six digits.
_HALVINGS = 32
_MAX_TILT = 30.0
#: Standard deviations from the mean within which the formula is 0/0.
_NEAR_MEAN = 1e-4


class Limits(NamedTuple):
    """What a suite allows: the sections that the gate's decision table reads, and the chance that a guess is right."""

    scoring: ScoringSection = ScoringSection()
    governance: GovernanceSection = GovernanceSection()
    chance: float | None = None

    @classmethod
    def of(cls, suite: Suite, chance: float | None = None) -> Limits:
        """The limits of a suite on items of which a guess is right with this chance; None where it is not known."""
        return cls(suite.scoring, suite.governance, chance)


class Bounds(NamedTuple):
    """Estimates with their bounds, a row for each audit; infinite where an interval is unbounded."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


class Decisions(NamedTuple):
    """Which audits are approved and which blocked; the rest is reviewed."""

    approved: BoolArray
    blocked: BoolArray


@dataclass(frozen=True, eq=False)
class SimulatedAudits:
    """Pattern counts of audits, shape (audits, 2, variants + 1), as `pattern_chances` orders the patterns."""

    counts: IntArray

    @classmethod
    def draw(cls, chances: FloatArray, *, items: int, audits: int, rng: np.random.Generator) -> Self:
        """Audits of this many items each.

        Args:
            chances: of each pattern, from `pattern_chances`.
            items: of each audit.
            audits: how many.
            rng: source of randomness.

        Raises:
            ValueError: for audits without an item; the gate never decides on one.
        """
        if items < 1:
            raise ValueError(f"an audit of {items!r} items has nothing to decide on")
        drawn = rng.multinomial(items, chances.ravel(), size=audits)
        return cls(drawn.astype(np.int64).reshape(audits, *chances.shape))

    @property
    def variants(self) -> int:
        """Rewordings of each item."""
        return int(self.counts.shape[2]) - 1

    @cached_property
    def n(self) -> IntArray:
        """Items of each audit."""
        total: IntArray = self.counts.sum(axis=(1, 2))
        return total

    @cached_property
    def _differences(self) -> FloatArray:
        """D of each pattern, shape (2, variants + 1)."""
        result: FloatArray = np.arange(2)[:, None] - np.arange(self.variants + 1) / self.variants
        return result

    def _sum(self, of_pattern: FloatArray) -> FloatArray:
        result: FloatArray = (self.counts * of_pattern).sum(axis=(1, 2))
        return result

    @cached_property
    def sums(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Sums of D, B, D² and D·B over items, as in `PairSums`."""
        d = self._differences
        b = np.arange(2.0)[:, None] * np.ones_like(d)
        return self._sum(d), self._sum(b), self._sum(d * d), self._sum(d * b)

    def inflation(self, level: float) -> Bounds:
        """Score inflation in points, as `intervals.score_inflation` gives it."""
        d, _, dd, _ = self.sums
        n = self.n + PSEUDO_ITEMS
        mean = d / n
        half = z_quantile(0.5 + level / 2) * np.sqrt(np.maximum(dd + 2 - n * mean**2, 0.0) / (n - 1) / n)
        value = d / self.n
        low, high = np.maximum(-1.0, mean - half), np.minimum(1.0, mean + half)
        return Bounds(100 * value, 100 * np.minimum(low, value), 100 * np.maximum(high, value))

    def contamination_score(self, level: float) -> Bounds:
        """The Contamination Score, as `intervals.contamination_score` gives it; 0 where it is undefined."""
        d, b, dd, db = self.sums
        n = self.n + PSEUDO_ITEMS
        mean_d, mean_b, z2 = d / n, (b + 2) / n, z_quantile(0.5 + level / 2) ** 2
        var_d = np.maximum(dd + 2 - n * mean_d**2, 0.0) / (n - 1) / n
        var_b = np.maximum(b + 2 - n * mean_b**2, 0.0) / (n - 1) / n
        cov = (db + 1 - n * mean_d * mean_b) / (n - 1) / n
        first = mean_b**2 - z2 * var_b
        bounded = first > 0
        divisor = np.where(bounded, first, 1.0)
        second = mean_b * mean_d - z2 * cov
        root = np.sqrt(np.maximum(second**2 - first * (mean_d**2 - z2 * var_d), 0.0))
        low, high = (second - root) / divisor, np.minimum(1.0, (second + root) / divisor)
        defined = b > 0
        value = np.where(defined, d / np.where(defined, b, 1.0), 0.0)
        low = np.where(defined, np.minimum(low, value), low)
        high = np.where(defined, np.maximum(high, value), high)
        return Bounds(value, np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf))

    def decisions(self, limits: Limits) -> Decisions:
        """What the gate decides, as `scorer.policy.decide` does where every other channel is clean."""
        scoring, governance, _ = limits
        above = self.above_chance(limits)
        inflation = self.inflation(scoring.confidence_level)
        score = self.contamination_score(scoring.confidence_level)
        past = inflation.low > governance.block_deployment_above_contaminated_pct
        past |= score.low > scoring.contamination_threshold
        if scoring.method == "per_item_t_test":
            blocked = self._flagged_pct(limits) > governance.block_deployment_above_contaminated_pct
        else:
            blocked = self.significant(scoring.significance_alpha, among=past)
        within = inflation.high <= scoring.max_allowed_contaminated_items_pct
        within &= score.high <= min(scoring.contamination_threshold, governance.review_required_above_cs)
        blocked &= above
        return Decisions(within & ~blocked & above, blocked)

    def above_chance(self, limits: Limits) -> BoolArray:
        """Whether the model can do the benchmark, as `chance.not_above_chance` says it."""
        level = limits.scoring.confidence_level
        score, right = self.contamination_score(level), self.sums[1]
        result: BoolArray = (self.canonical_low(level) > (limits.chance or 0.0)) & np.isfinite(score.low) & (right > 0)
        return result

    def canonical_low(self, level: float) -> FloatArray:
        """The lower bound of the canonical accuracy, as `intervals.wilson` gives it."""
        n, right, z2 = self.n, self.sums[1], z_quantile(0.5 + level / 2) ** 2
        share = right / n
        half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n)))
        result: FloatArray = np.where(right > 0, (share + z2 / (2 * n) - half) / (1 + z2 / n), 0.0)
        return result

    def _flagged_pct(self, limits: Limits) -> FloatArray:
        """Share of items that the article's rule flags, in percent; it looks at each item by itself."""
        canonical, right = np.divmod(np.arange(self.counts[0].size), self.variants + 1)
        names = [str(place) for place in range(canonical.size)]
        rule = per_item_t_test(
            PairedAnswers.of(names, canonical.astype(np.bool_), right, np.full(right.shape, self.variants)),
            threshold=limits.scoring.contamination_threshold,
            alpha=limits.scoring.significance_alpha,
            block_above_pct=limits.governance.block_deployment_above_contaminated_pct,
        )
        flagged = np.isin(names, rule.flagged_items).reshape(self.counts.shape[1:])
        return 100.0 * (self._sum(flagged.astype(np.float64)) / self.n)

    def significant(self, alpha: float, *, among: BoolArray | None = None, exact: bool = True) -> BoolArray:
        """Whether p, the larger of the exchangeability and the studentised test's, is below alpha.

        Args:
            alpha: the level.
            among: audits that are asked about; the others count as not significant.
            exact: settle audits near alpha by the exact tail, one at a time; otherwise by the saddlepoint
                approximation, which is within 10 % of it from three informative items on and 2 % from fifteen.
        """
        found = self._studentised() < alpha
        if among is not None:
            found &= among
        places = np.flatnonzero(found)
        if not places.size:
            return found
        approximate = self._approximate_tail(places)
        found[places] = approximate < alpha
        if exact:
            for place in places[(approximate > alpha / _CLEARLY) & (approximate < alpha * _CLEARLY)]:
                found[place] = self._exact_tail(int(place)) < alpha
        return found

    def _studentised(self) -> FloatArray:
        """p of `studentised_test` for each audit."""
        d, _, dd, _ = self.sums
        n, degrees = self.n, np.maximum(self.n - 1, 1)
        # All wrong and all right are the two patterns without a difference; any other two patterns differ.
        present = self.counts.reshape(len(self.counts), -1) > 0
        alike = present.sum(axis=1) - (present[:, 0] & present[:, -1]) == 1
        mean = d / n
        variance = np.where(alike, 1.0, np.maximum(dd - n * mean**2, 0.0) / degrees)
        p = np.where(alike, np.where(mean > 0, 0.0, 1.0), special.stdtr(degrees, -mean / np.sqrt(variance / n)))
        result: FloatArray = np.where(n < 2, 1.0, p)
        return result

    @cached_property
    def _informative(self) -> IntArray:
        """Items that are right in 1, 2, … V of their V + 1 wordings, shape (audits, variants)."""
        result: IntArray = self.counts[:, 0, 1:] + self.counts[:, 1, :-1]
        return result

    @cached_property
    def _observed(self) -> IntArray:
        """Informative items whose canonical answer is right."""
        result: IntArray = self.counts[:, 1, :-1].sum(axis=1)
        return result

    @property
    def _chances(self) -> FloatArray:
        result: FloatArray = np.arange(1, self.variants + 1) / (self.variants + 1)
        return result

    def _exact_tail(self, place: int) -> float:
        """p of `exchangeability_test` for one audit."""
        counts, observed = self._informative[place], int(self._observed[place])
        used = counts > 0
        if not used.any():
            return 1.0
        tail = exact_upper_tail if counts.sum() <= EXACT_LIMIT else saddlepoint_upper_tail
        return tail(counts[used], self._chances[used], observed)

    def _approximate_tail(self, places: IntArray) -> FloatArray:
        """The same for many audits by `saddlepoint_upper_tail`'s formula; 1/2 at and below the mean.

        The tilt is found by halving, which all audits can do in step.
        """
        counts, chances = self._informative[places], self._chances
        target = self._observed[places] - 0.5
        low, high = np.zeros(len(places)), np.full(len(places), _MAX_TILT)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            odds = chances * np.exp(middle)[:, None]
            short = (counts * odds / (1 - chances + odds)).sum(axis=1) < target
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        odds = chances * np.exp(high)[:, None]
        tilted = odds / (1 - chances + odds)
        cumulant = (counts * np.log1p(chances * np.expm1(high)[:, None])).sum(axis=1)
        w = np.sqrt(np.maximum(2 * (high * target - cumulant), 0.0))
        u = 2 * np.sinh(high / 2) * np.sqrt((counts * tilted * (1 - tilted)).sum(axis=1))
        above = (w > _NEAR_MEAN) & (u > _NEAR_MEAN)
        w, u = np.where(above, w, 1.0), np.where(above, u, 1.0)
        density = np.exp(-w * w / 2) / np.sqrt(2 * np.pi)
        result: FloatArray = np.where(above, special.ndtr(-w) + density * (1 / u - 1 / w), 0.5)
        return result
