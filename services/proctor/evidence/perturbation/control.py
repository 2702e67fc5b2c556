"""Difference-in-differences: inflation of the benchmark beyond what rewording costs on control items.

The perturbation channel cannot tell memory from a rewording that is simply harder. Control items can: no model has seen
them (they were written after its training, or drawn at random from a generator), and they are reworded by the same
strategy. What rewording costs there is no memory, so D_benchmark − D_control is D without that cost.

What has to be assumed is that rewording would have cost as much on the benchmark. In points that is wrong where the
model can do little with the control items: what is wrong in any wording cannot get worse. So two costs are compared,
in points (D) and as a share of the right answers (the Contamination Score), and p is the larger of the two: an excess
counts where neither reading of "as much" explains it. With equal accuracies on both kinds of items they agree.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy import special

from proctor.domain.evidence import ControlledInflation, Estimate
from proctor.domain.levels import POWER
from proctor.evidence.clusters import ClusterSums, Compared, item_sums, sums_of
from proctor.evidence.intervals import (
    PairMoments,
    PairSums,
    Sums,
    inflation_estimate,
    score_estimate,
    z_quantile,
)
from proctor.evidence.search import smallest_count, smallest_fraction

NULL_HYPOTHESIS = (
    "Rewording costs the model as much on control items, which it cannot have seen, as on the benchmark's: as many "
    "points of accuracy, or as large a share of its right answers."
)


class _Contrast(NamedTuple):
    """A difference of two independent means with its standard error and Welch–Satterthwaite degrees of freedom."""

    difference: float
    error: float
    freedom: float

    @classmethod
    def of(
        cls,
        difference: float,
        variances: tuple[float, float],
        sizes: tuple[float, float],
        freedoms: tuple[float, float],
    ) -> _Contrast:
        """Welch (1947), Biometrika 34, 28–35: variances of single items with their freedoms, and numbers of items."""
        parts = [variance / size for variance, size in zip(variances, sizes, strict=True)]
        total = sum(parts)
        freedom = total**2 / sum(part**2 / own for part, own in zip(parts, freedoms, strict=True))
        return cls(difference, math.sqrt(total), freedom)

    @property
    def p_value(self) -> float:
        """One-sided: the difference is at most 0."""
        return float(special.stdtr(self.freedom, -self.difference / self.error))

    def half_width(self, level: float) -> float:
        """Of the interval at this level."""
        return float(special.stdtrit(self.freedom, 0.5 + level / 2)) * self.error


def controlled_inflation(benchmark: Compared, control: Compared, *, level: float, alpha: float) -> ControlledInflation:
    """Compare what rewording costs on the benchmark with what it costs on control items.

    Null hypothesis: `NULL_HYPOTHESIS`. Items are independent of each other and the two samples of one another, so
    variances add; four pseudo-items are added to each sample as in `intervals`. p-values and bounds are Welch's, for
    the spread of D differs between the kinds of items. A permutation test of the kind over items was rejected: it
    tests that D has the same *distribution*, and rejects too often where only the spread and the numbers of items
    differ (Romano 1990, JASA 85, 686–692). The interval of the Contamination Scores' difference is put together from
    Fieller's (MOVER: Zou and Donner 2008, Statistics in Medicine 27, 1693–1702).

    Where the benchmark's items come in clusters, its variances are over them. Those of the control's items need not be
    known: they are then taken to be clustered as the benchmark's are (`ClusterSums.alike`).

    Few control items widen the bounds and nothing else. Without one, or without a benchmark item, the excess is
    undefined and p is 1. With a single cluster the excess is unbounded, and p is 1 too.
    """
    sums = _both(benchmark, control)
    inflation = inflation_estimate(sums[0], level), inflation_estimate(sums[1], level)
    scores = score_estimate(sums[0], level), score_estimate(sums[1], level)
    known = benchmark.n > 0 and control.n > 0 and min(sums[0].freedom, sums[1].freedom) > 0
    if not known:
        sums = item_sums(benchmark), item_sums(control)
    first, second = sums[0].with_pseudo_items(), sums[1].with_pseudo_items()
    freedoms = sums[0].freedom, sums[1].freedom
    in_points, in_share = _points(first, second, freedoms), _share(first, second, freedoms)
    p_points, p_share = (in_points.p_value, in_share.p_value) if known else (1.0, 1.0)
    return ControlledInflation(
        null_hypothesis=NULL_HYPOTHESIS,
        n_benchmark=benchmark.n,
        n_control=control.n,
        inflation_benchmark=inflation[0],
        inflation_control=inflation[1],
        excess_inflation=_excess_inflation(inflation, in_points, level),
        excess_score=_excess_score(scores, level),
        p_value=max(p_points, p_share),
        p_points=p_points,
        p_share=p_share,
        minimum_detectable_points=100 * minimum_detectable_excess(*sums, alpha=alpha),
    )


def _both(benchmark: Compared, control: Compared) -> tuple[Sums, Sums]:
    first, second = sums_of(benchmark), sums_of(control)
    if isinstance(first, ClusterSums) and isinstance(second, PairSums):
        return first, ClusterSums.alike(second, first, item_sums(benchmark))
    return first, second


def _points(benchmark: PairMoments, control: PairMoments, freedoms: tuple[float, float]) -> _Contrast:
    difference = benchmark.mean_d - control.mean_d
    return _Contrast.of(difference, (benchmark.var_d, control.var_d), (benchmark.n, control.n), freedoms)


def _share(benchmark: PairMoments, control: PairMoments, freedoms: tuple[float, float]) -> _Contrast:
    """D_benchmark minus the cost that the control's Contamination Score predicts from the benchmark's accuracy."""
    share, ratio = control.mean_d / control.mean_b, benchmark.mean_b / control.mean_b

    def spread(moments: PairMoments) -> float:
        # Of D − share · B, whose mean is 0 where rewording costs that share.
        return max(moments.var_d - 2 * share * moments.cov + share**2 * moments.var_b, 0.0)

    difference = benchmark.mean_d - share * benchmark.mean_b
    variances = spread(benchmark), ratio**2 * spread(control)
    return _Contrast.of(difference, variances, (benchmark.n, control.n), freedoms)


def _excess_inflation(inflation: tuple[Estimate, Estimate], contrast: _Contrast, level: float) -> Estimate:
    method = "Welch interval of two independent means, four pseudo-items in each sample"
    if inflation[0].value is None or inflation[1].value is None:
        return Estimate(value=None, low=None, high=None, level=level, method=method)
    value, half = inflation[0].value - inflation[1].value, contrast.half_width(level)
    if inflation[0].low is None or inflation[1].low is None:
        method += "; unbounded, because one cluster shows no spread between clusters"
        return Estimate(value=value, low=None, high=None, level=level, method=method)
    # Two accuracies differ by 1 at most, so two differences of them by 2.
    low, high = max(-2.0, contrast.difference - half), min(2.0, contrast.difference + half)
    return Estimate(value=value, low=min(100 * low, value), high=max(100 * high, value), level=level, method=method)


def _excess_score(scores: tuple[Estimate, Estimate], level: float) -> Estimate:
    method = "MOVER of two Fieller intervals with four pseudo-items"
    first, second = scores
    value = None if first.value is None or second.value is None else first.value - second.value
    if value is None or first.low is None or first.high is None or second.low is None or second.high is None:
        method += "; unbounded, because a canonical accuracy is not clearly above 0"
        return Estimate(value=value, low=None, high=None, level=level, method=method)
    assert first.value is not None
    assert second.value is not None
    low = value - math.hypot(first.value - first.low, second.high - second.value)
    high = value + math.hypot(first.high - first.value, second.value - second.low)
    return Estimate(value=value, low=low, high=high, level=level, method=method)


def minimum_detectable_excess(benchmark: Sums, control: Sums, *, alpha: float, power: float = POWER) -> float:
    """Smallest D_benchmark − D_control, as a fraction, that a one-sided test at `alpha` finds with `power`.

    As `minimum_detectable_inflation`, with the control's variance added; 1 where nothing smaller would be found.
    """
    smallest = smallest_fraction(lambda excess: _found(excess, benchmark, control, alpha, power))
    return 1.0 if smallest is None else smallest


def control_items_needed(
    benchmark: PairSums, control: PairSums, *, excess: float, alpha: float, power: float = POWER
) -> int | None:
    """Control items with which an excess (a fraction) over what rewording costs is found with `power`.

    Args:
        benchmark: sums of the benchmark's answers, or of a pilot scaled to their number.
        control: sums of control items whose answers the others will resemble; the benchmark's own where none was asked.
        excess: D_benchmark − D_control to be found, above 0.
        alpha: level of the one-sided test.
        power: wanted chance to find it.

    None where no number suffices, because the benchmark itself has too few items.

    Raises:
        ValueError: for an excess outside 0 to 1, or a control sample without an item, whose spread is unknown.
    """
    if not 0.0 < excess <= 1.0:
        raise ValueError(f"the excess {excess!r} is not a fraction above 0")
    if control.n == 0:
        raise ValueError("the spread of control items is needed: give sums of a pilot, or the benchmark's own")

    def enough(items: int) -> bool:
        return _found(excess, benchmark, control.scaled(items / control.n), alpha, power)

    return smallest_count(enough)


def items_needed_beyond(
    benchmark: Compared,
    control: Compared,
    *,
    max_inflation: float,
    max_contamination_score: float,
    level: float,
) -> int | None:
    """Benchmark items at which answers in these proportions, with control items in the same ratio as now, put both
    upper bounds of the excess within their limits; None for never. The limit of inflation is in points.

    As `items_needed_to_approve` of one sample: an estimate at or past its limit stays there.
    """
    if benchmark.n == 0 or control.n == 0:
        return None
    sums = _both(benchmark, control)
    if min(one.freedom for one in sums) <= 0:
        return None

    def bounds(factor: float) -> tuple[Estimate, Estimate]:
        first, second = (one.scaled(factor) for one in sums)
        contrast = _points(first.with_pseudo_items(), second.with_pseudo_items(), (first.freedom, second.freedom))
        inflation = inflation_estimate(first, level), inflation_estimate(second, level)
        scores = score_estimate(first, level), score_estimate(second, level)
        return _excess_inflation(inflation, contrast, level), _excess_score(scores, level)

    inflation, score = bounds(1.0)
    if inflation.value is None or score.value is None:
        return None
    if inflation.value >= max_inflation or score.value >= max_contamination_score:
        return None

    def enough(items: int) -> bool:
        inflation, score = bounds(items / benchmark.n)
        return (
            inflation.high is not None
            and inflation.high <= max_inflation
            and score.high is not None
            and score.high <= max_contamination_score
        )

    return smallest_count(enough)


def _found(excess: float, benchmark: Sums, control: Sums, alpha: float, power: float) -> bool:
    first, second = benchmark.with_pseudo_items(), control.with_pseudo_items()
    # Leaked items bring their own spread with them: see `minimum_detectable_inflation`.
    leak = benchmark.leak
    null = (first.var_d + leak * excess) / first.n + second.var_d / second.n
    alternative = max(first.var_d + leak * excess - leak * excess**2, 0.0) / first.n + second.var_d / second.n
    wanted = benchmark.quantile(1 - alpha) * math.sqrt(null) + z_quantile(power) * math.sqrt(alternative)
    return benchmark.kept * excess >= wanted
