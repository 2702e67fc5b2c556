"""What a sample could have found, and how many items it would take to approve."""

from __future__ import annotations

import math

from proctor.domain.levels import POWER
from proctor.evidence.intervals import Sums, contamination_score_bounds, inflation_bounds, z_quantile
from proctor.evidence.search import smallest_count, smallest_fraction


def minimum_detectable_inflation(sums: Sums, *, alpha: float, power: float = POWER) -> float:
    """Smallest D, as a fraction, that a one-sided test at `alpha` finds with `power` at this n and spread.

    Solves n = ((z_α √π + z_β √(π − δ²)) / δ)² for δ with π = var(D) + δ: leaked items bring their own spread with
    them, and leaving it out promises a third more than a sample of near-deterministic answers can find. The spread
    is that with pseudo-items, so it is never 0. Connor (1987), "Sample size for testing differences in proportions
    for the paired-sample design", Biometrics 43, 207–211.

    Over clusters, which are then taken to leak as a whole, the quantile is t's, and δ is what the pseudo-clusters leave
    of it.
    """
    moments = sums.with_pseudo_items()
    z_alpha, z_beta = sums.quantile(1 - alpha), z_quantile(power)

    def found(delta: float) -> bool:
        spread = moments.var_d + sums.leak * delta
        return sums.kept * delta * math.sqrt(moments.n) >= z_alpha * math.sqrt(spread) + z_beta * math.sqrt(
            max(spread - sums.leak * delta**2, 0.0)
        )

    smallest = smallest_fraction(found)
    return 1.0 if smallest is None else smallest


def items_needed_to_approve(
    sums: Sums, *, max_inflation: float, max_contamination_score: float, level: float
) -> int | None:
    """Items at which answers in these proportions put both upper bounds within their limits; None for never.

    An estimate at or past its limit stays there however many items follow. A sample drawn afresh varies: at this
    number it is about as likely to fall short as not. Of clusters there are then as many more, of the same sizes.
    """
    if sums.n == 0 or sums.unbounded() or sums.b <= 0:
        return None
    if sums.d / sums.n >= max_inflation or sums.d / sums.b >= max_contamination_score:
        return None

    def enough(items: int) -> bool:
        moments = sums.scaled(items / sums.n).moments(level)
        bounds = contamination_score_bounds(moments, level)
        return (
            inflation_bounds(moments, level)[1] <= max_inflation
            and bounds is not None
            and bounds[1] <= max_contamination_score
        )

    return smallest_count(enough)
