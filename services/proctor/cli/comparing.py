"""From two logs to a verdict: what `proctor compare` runs, and `proctor.compare` in Python."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.domain.errors import BadInputError

if TYPE_CHECKING:
    from proctor.domain.evidence import Estimate
    from proctor.evidence.paired import Comparison, ExtractorComparison


def compare_logs(
    a: str | Path,
    b: str | Path,
    *,
    extractor: str | None = None,
    tolerance_points: float | None = None,
    seed: int = 0,
) -> Comparison:
    """Read two logs and compare the runs that they hold, item by item.

    Args:
        a: a log in any format that is read, told by its content.
        b: another.
        extractor: the filter whose figures come first; by default the first that A's log names and B has as well.
        tolerance_points: difference, in percentage points, within which the runs count as equivalent.
        seed: of the bootstrap.

    Raises:
        BadInputError: with file and line, where a log cannot be read or the logs cannot be compared.
    """
    from proctor.evidence.paired import compare_runs
    from proctor.formats.logs.reading import read_log

    if tolerance_points is not None and not (math.isfinite(tolerance_points) and 0 < tolerance_points < 100):
        raise BadInputError(f"the tolerance {tolerance_points:g} is not a number of points between 0 and 100")
    if seed < 0:
        raise BadInputError(f"the seed {seed} is negative; use 0 or more")
    return compare_runs(
        read_log(Path(a)),
        read_log(Path(b)),
        extractor=extractor,
        tolerance=None if tolerance_points is None else tolerance_points / 100,
        seed=seed,
    )


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The JSON of `proctor compare`: the primary extractor's figures, and `by_extractor` where there are several."""
    document = {
        "a": comparison.a,
        "b": comparison.b,
        "verdict": comparison.verdict.value,
        "conclusion": comparison.conclusion,
        **_figures(comparison.primary),
        "null_hypothesis": comparison.null_hypothesis,
        "alpha": comparison.alpha,
        "seed": comparison.seed,
        "truncation": comparison.truncation.plain() if comparison.truncation is not None else None,
    }
    # The extractor's own verdict is not the whole comparison's.
    document["verdict"] = comparison.verdict.value
    if len(comparison.extractors) > 1:
        document["by_extractor"] = {one.extractor: _figures(one) for one in comparison.extractors}
        document["family"] = f"p_holm is corrected over {len(comparison.extractors)} extractors"
    if comparison.only_in_one:
        document["only_in_one"] = list(comparison.only_in_one)
    return document


def _figures(one: ExtractorComparison) -> dict[str, Any]:
    return {
        "extractor": one.extractor,
        "verdict": one.verdict.value,
        "n": one.n,
        "n_a_correct": one.n_a_correct,
        "n_b_correct": one.n_b_correct,
        "both": one.both,
        "only_a": one.only_a,
        "only_b": one.only_b,
        "neither": one.neither,
        "accuracy_a_ci": _bounds(one.accuracy_a),
        "accuracy_b_ci": _bounds(one.accuracy_b),
        "delta": one.delta.value,
        "delta_ci": _bounds(one.delta),
        "delta_ci_method": one.delta.method,
        "delta_ci_bootstrap": _bounds(one.delta_bootstrap),
        "p_value": one.p_value,
        "p_holm": one.p_holm,
        "mde": one.mde,
        "items_needed": one.items_needed,
        "equivalence": one.equivalence.plain() if one.equivalence is not None else None,
        "unread_a": one.unread_a,
        "unread_b": one.unread_b,
        "paired_by_content": one.paired_by_content,
        "excluded": [item.plain() for item in one.excluded],
    }


def _bounds(estimate: Estimate) -> list[float | None]:
    return [estimate.low, estimate.high]
