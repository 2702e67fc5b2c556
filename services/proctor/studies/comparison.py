"""From two logs to a verdict: what `proctor compare` runs, and `proctor.compare` in Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.domain.errors import BadInputError

if TYPE_CHECKING:
    from proctor.domain.evidence import Estimate
    from proctor.domain.recorded_card import ProtocolComparison, RecordedCard
    from proctor.domain.run_log import RunLog
    from proctor.evidence.paired.results import Comparison, ExtractorComparison


def compare_logs(
    a: str | Path,
    b: str | Path,
    *,
    filter_name: str | None = None,
    extractor: str | None = None,
    tolerance_points: float | None = None,
    seed: int = 0,
    across_protocols: bool = False,
) -> Comparison:
    """Read two logs and compare the runs that they hold, item by item.

    Where both logs have every text and target, the texts are graded again by each extractor of Proctor's that can, and
    compared under those as well.

    Args:
        a: a log in any format that is read, told by its content.
        b: another.
        filter_name: the logs' own filter whose figures come first; by default the first that A's log names and B has
            as well.
        extractor: grade the texts again by this extractor of Proctor's, `numeric` or `exact`, whose figures then come
            first. In place of `filter_name`.
        tolerance_points: difference, in percentage points, within which the runs count as equivalent.
        seed: of the bootstrap.
        across_protocols: compare runs that were made under different protocols as well; the conclusion then says what
            differs. What a log does not record of its protocol is listed as unknown, and refuses nothing.

    Raises:
        BadInputError: with file and line, where a log cannot be read, the logs cannot be compared, or the texts cannot
            be graded by the extractor that was asked for.
        ProtocolsDifferError: a BadInputError, where both logs record a setting of their protocols (token limit,
            template, filter, engine, …) and it is not the same.
    """
    from proctor.evidence.paired.comparison import compare_runs
    from proctor.formats.logs.reading import read_log

    if tolerance_points is not None and not (math.isfinite(tolerance_points) and 0 < tolerance_points < 100):
        raise BadInputError(f"the tolerance {tolerance_points:g} is not a number of points between 0 and 100")
    if seed < 0:
        raise BadInputError(f"the seed {seed} is negative; use 0 or more")
    if filter_name is not None and extractor is not None:
        raise BadInputError(
            f"the filter {filter_name!r} is the logs' own and the extractor {extractor!r} grades the texts again; "
            "name one of them"
        )
    first, second = read_log(Path(a)), read_log(Path(b))
    again_a, again_b = _graded_again(first, second, extractor)
    return compare_runs(
        (*first, *again_a),
        (*second, *again_b),
        extractor=filter_name if extractor is None else again_a[0].extractor,
        tolerance=None if tolerance_points is None else tolerance_points / 100,
        seed=seed,
        across_protocols=across_protocols,
    )


def _graded_again(
    a: Sequence[RunLog], b: Sequence[RunLog], wanted: str | None
) -> tuple[tuple[RunLog, ...], tuple[RunLog, ...]]:
    """Both runs under each extractor that can grade both, the one that is wanted first."""
    from proctor.grading.regrading import applicable_extractors, extractor_of_texts, regrade

    # Every filter of a log read the same texts.
    runs = (a[0], b[0])
    extractors = list(applicable_extractors(runs))
    if wanted is not None:
        asked = extractor_of_texts(wanted)
        extractors = [asked, *(extractor for extractor in extractors if extractor is not asked)]
    first, second = (tuple(regrade(run, extractor) for extractor in extractors) for run in runs)
    return first, second


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The JSON of `proctor compare`: the primary extractor's figures, and `by_extractor` where there are several."""
    document = {
        "a": comparison.a,
        "b": comparison.b,
        "formats": {"a": comparison.format_a, "b": comparison.format_b},
        "verdict": comparison.verdict.value,
        "conclusion": comparison.conclusion,
        **_figures(comparison.primary),
        "null_hypothesis": comparison.null_hypothesis,
        "alpha": comparison.alpha,
        "seed": comparison.seed,
        "truncation": comparison.truncation.plain() if comparison.truncation is not None else None,
        "protocol": protocol_as_json(comparison.protocol),
    }
    # The extractor's own verdict is not the whole comparison's.
    document["verdict"] = comparison.verdict.value
    if len(comparison.extractors) > 1:
        document["by_extractor"] = {one.extractor: _figures(one) for one in comparison.extractors}
        lowest, highest = comparison.sensitivity or (None, None)
        document["extractor_sensitivity"] = {
            "delta_lowest": lowest,
            "delta_highest": highest,
            "verdicts": {one.extractor: one.verdict.value for one in comparison.voting},
        }
        document["family"] = f"p_holm is corrected over the {len(comparison.voting)} extractors that vote"
    if comparison.only_in_one:
        document["only_in_one"] = list(comparison.only_in_one)
    return document


def protocol_as_json(found: ProtocolComparison) -> dict[str, Any]:
    """The JSON of two cards: each with its digests, what differs, and what may differ because it is not recorded."""
    return {
        "a": _card(found.a),
        "b": _card(found.b),
        "differs": [one.plain() for one in found.differs],
        "unknown": [one.plain() for one in found.unknown],
    }


def _card(card: RecordedCard) -> dict[str, Any]:
    return {
        "fingerprint": card.fingerprint,
        "protocol_digest": card.protocol_digest,
        "protocol": card.protocol,
        "subject": card.subject,
        "unknown": list(card.unknown),
    }


def _figures(one: ExtractorComparison) -> dict[str, Any]:
    return {
        "extractor": one.extractor,
        "regraded": one.regraded,
        "votes": one.votes,
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
