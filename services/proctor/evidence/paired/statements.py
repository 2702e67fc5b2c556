"""What a comparison of two runs says in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.domain.run_log import RunLog
from proctor.evidence.paired.protocols import caveat
from proctor.evidence.written_numbers import counted, p_text, percent, points

if TYPE_CHECKING:
    from proctor.evidence.paired.pairing import Pairs
    from proctor.evidence.paired.results import Comparison, ExtractorComparison, TruncationComparison


def conclusion(comparison: Comparison) -> str:
    """The comparison in a sentence, with what a reader must know before believing it."""
    return f"{_found_out(comparison)}{caveat(comparison.protocol)}"


def _found_out(comparison: Comparison) -> str:
    truncation = comparison.truncation
    if comparison.verdict == "invalid":
        assert truncation is not None
        return _invalid(truncation)
    voting = comparison.voting
    if comparison.verdict == "extractor_decides":
        each = "; ".join(f"under {one.extractor} {_found(one)}{_unread(one)}" for one in voting)
        return (
            f"The extractor decides, not the runs: {each}. Over these extractors A − B runs "
            f"{_range(comparison.sensitivity)}. Find out which extractor reads these answers rightly before saying "
            f"which run is better.{_unknown_truncation(truncation)}"
        )
    first = comparison.primary
    if not first.votes:
        return (
            f"Under {first.extractor} {first.n_a_correct:,} of A's answers and {first.n_b_correct:,} of B's are "
            f"right{_unread(first)}, of {first.n:,}: that says more of the extractor than of the runs."
            f"{_others(comparison)}{_unknown_truncation(truncation)}"
        )
    return f"{_single(first, comparison.alpha)}{_agreement(comparison)}{_unknown_truncation(truncation)}"


def _others(comparison: Comparison) -> str:
    if not comparison.voting:
        return " No extractor reads enough of these texts."
    one = comparison.voting[0]
    return f" Under {one.extractor}, {_found(one)}.{_agreement(comparison)}"


def _agreement(comparison: Comparison) -> str:
    """What the other extractors say, where there are any."""
    voting = comparison.voting
    silent = [one for one in comparison.extractors if not one.votes and one is not comparison.primary]
    agree = ""
    if len(voting) > 1:
        agree = f" All {len(voting)} extractors agree ({_names(voting)}): A − B runs {_range(comparison.sensitivity)}."
    if not silent:
        return agree
    return f"{agree} Without a vote, because too few of these texts give it an answer: {_names(silent)}."


def _names(extractors: Sequence[ExtractorComparison]) -> str:
    return ", ".join(one.extractor for one in extractors)


def _range(bounds: tuple[float, float] | None) -> str:
    low, high = (f"{100 * bound:.1f}" for bound in bounds or (0.0, 0.0))
    return f"from {low} to {high} points"


def _single(one: ExtractorComparison, alpha: float) -> str:
    found = _found(one)
    sentence = f"On {counted(one.n, 'item')}, {found}"
    if one.verdict != "inconclusive":
        return f"{sentence}."
    if one.mde is None:
        return f"{sentence}: no difference is shown, and this few items could not show one."
    asked = "" if one.equivalence is None else f", nor that they are within {points(100 * one.equivalence.tolerance)}"
    return (
        f"{sentence}: no difference is shown{asked}. This many items show a difference of {points(100 * one.mde)} with "
        "80 % power, and smaller ones less often."
    )


def _found(one: ExtractorComparison) -> str:
    value, low, high = one.delta.value, one.delta.low, one.delta.high
    assert value is not None
    assert low is not None
    assert high is not None
    if one.verdict == "equivalent":
        assert one.equivalence is not None
        return (
            f"A and B are equivalent within {points(100 * one.equivalence.tolerance)} "
            f"(difference {points(100 * value)}, {p_text(one.equivalence.p_value)} for being further apart)"
        )
    interval = f"{100 * one.delta.level:g} % interval {100 * low:.1f} to {100 * high:.1f}, {p_text(one.p_value)}"
    if one.verdict == "inconclusive":
        return (
            f"A has {one.n_a_correct:,} right and B {one.n_b_correct:,}, a difference of {points(100 * value)} "
            f"({interval})"
        )
    better, worse = ("A", "B") if one.verdict == "a_better" else ("B", "A")
    return f"{better} is better than {worse}: A − B is {points(100 * value)} ({interval})"


def _unread(one: ExtractorComparison) -> str:
    if not one.unread_a and not one.unread_b:
        return ""
    return f", and it found no answer in {one.unread_a:,} of A's texts and {one.unread_b:,} of B's"


def _invalid(truncation: TruncationComparison) -> str:
    more = "A" if truncation.a > truncation.b else "B"
    return (
        f"The comparison is invalid because of truncation: {percent(truncation.a / truncation.n)} of A's answers and "
        f"{percent(truncation.b / truncation.n)} of B's were cut at a token limit (by {truncation.basis}, "
        f"{p_text(truncation.p_value)}), so a difference in accuracy may be one of the limit. Run {more} again with a "
        "higher one."
    )


def _unknown_truncation(truncation: TruncationComparison | None) -> str:
    if truncation is not None:
        return ""
    return (
        " The logs do not both give finish reasons, or token counts and their limit, so whether answers were cut is "
        "not known."
    )


def nothing_in_common(name: str, a: RunLog, b: RunLog, pairs: Pairs) -> str:
    """Why not one item could be compared."""
    reasons = {item.reason.partition(":")[0] for item in pairs.excluded}
    if reasons <= {"not in A", "not in B"}:
        return (
            f"{b.source}:{b.answers[0].line}: no common items: not one id of {a.source}:{a.answers[0].line} "
            f"({a.answers[0].item_id!r}, …) is in it ({b.answers[0].item_id!r}, …); compare logs of one benchmark"
        )
    return (
        f"{b.source}:{b.answers[0].line}: not one item can be compared with {a.source} under {name!r}: "
        f"{'; '.join(sorted(reasons))}; compare logs of one benchmark"
    )


def no_such_extractor(a: Sequence[RunLog], b: Sequence[RunLog], wanted: str | None) -> str:
    """Which extractors there are, where the one wanted is missing or none is common."""
    what = f"the filter {wanted!r} is not in both logs" if wanted is not None else "the logs have no filter in common"
    have = "; ".join(f"{runs[0].source} has {', '.join(repr(run.extractor) for run in runs)}" for runs in (a, b))
    return f"{what}: {have}"
