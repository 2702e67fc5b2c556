"""What the fresh channel found, in plain sentences."""

from __future__ import annotations

from proctor.domain.evidence import Estimate
from proctor.evidence.written_numbers import counted, in_points, p_text, percent, points

_LIMIT_OF_ONE = (
    "Without reference models, fresh items that are simply harder look like memory: this comparison trusts that they "
    "were drawn like the benchmark's."
)
_SAME_SLOPE = (
    "With fewer than five reference models the fresh items are taken to be harder for every model alike, in logits."
)

CLUSTERED = (
    "Items come in clusters, and these bounds take every item as independent: they say less than they seem to, and "
    "settle nothing."
)


def null_hypothesis(reference_models: int) -> str:
    """What a small p speaks against."""
    if reference_models == 0:
        return "The model's accuracy on the benchmark is no higher than on fresh items of the same distribution."
    return (
        "The model's accuracy on the benchmark is no higher than that of clean models with its accuracy on the fresh "
        f"items, as {counted(reference_models, 'reference model')} show it."
    )


def past_limit(excess: Estimate, limit: float, p_value: float, alpha: float) -> str:
    """Why the channel says contaminated."""
    return f"{_excess(excess)}, all past the limit of {points(limit)}, and {p_text(p_value)} is below {alpha:g}."


def within_limit(excess: Estimate, limit: float) -> str:
    """Why it says clean."""
    return f"{_excess(excess)}; the upper bound is within the limit of {points(limit)}."


def not_excluded(excess: Estimate, limit: float, p_value: float, detectable: float) -> tuple[str, ...]:
    """Why it says neither."""
    found: tuple[str, ...] = (f"{_excess(excess)}; a clean verdict needs the upper bound within {points(limit)}.",)
    if detectable > limit:
        found += (
            f"The smallest excess found with 80 % power is {points(detectable)}, more than the {points(limit)} that "
            f"the suite allows, so a test that finds nothing ({p_text(p_value)}) is no sign of a clean model.",
        )
    return found


def one_reference_model(excess: Estimate) -> str:
    """Why a panel of one settles nothing."""
    return (
        f"{_excess(excess)}, but one reference model does not show by how much clean models differ from each other; "
        "ask at least one more."
    )


def missing(n_benchmark: int, n_fresh: int) -> str:
    """Why nothing can be said."""
    what = "benchmark" if n_benchmark == 0 else "fresh"
    return f"There is no {what} item that every model answered ({n_benchmark:,} benchmark, {n_fresh:,} fresh)."


def caveats(
    reference_models: int, slope_models: int, scatter: float, outside: tuple[float, float, float] | None
) -> tuple[str, ...]:
    """What a reader must know before believing the verdict.

    Args:
        reference_models: K.
        slope_models: K from which the panel's curve has a slope.
        scatter: of clean models about the curve, in points.
        outside: the model's accuracy on fresh items with the panel's lowest and highest, where it lies outside.
    """
    if reference_models == 0:
        return (_LIMIT_OF_ONE,)
    found: tuple[str, ...] = ()
    if reference_models < slope_models:
        found += (_SAME_SLOPE,)
    if scatter > 0:
        found += (
            f"The reference models themselves lie about {points(scatter)} from their curve beyond the noise of items; "
            "the interval allows the audited model as much.",
        )
    if outside is not None:
        fresh, low, high = outside
        found += (
            f"The model's {percent(fresh)} on fresh items lies outside the reference models' {percent(low)} to "
            f"{percent(high)}, so what is expected of it is extrapolated.",
        )
    return found


def _excess(excess: Estimate) -> str:
    return f"Benchmark accuracy minus what the fresh items lead to expect is {in_points(excess)}"
