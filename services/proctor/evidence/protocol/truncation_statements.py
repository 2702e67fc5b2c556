"""What truncation in one run, or in two, comes to in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.domain.evidence import Verdict
from proctor.evidence.written_numbers import counted, p_text, percent, points

if TYPE_CHECKING:
    from proctor.evidence.protocol.truncation_results import RateComparison, TruncationArm

_COUNTED = {
    "truncated": "were cut at a token limit",
    "empty": "are empty",
    "unreadable": "hold no answer that the log's extractor could read",
    "error": "are error rows",
}
_REMEDIES = {
    "truncated": "run them again under a limit that lets every answer end",
    "empty": "find out why nothing was written",
    "unreadable": "grade them again by an extractor that reads both",
    "error": "mend what failed and run those items again",
}
_BASES = {
    "finish_reason": "finish reasons",
    "tokens": "token counts",
    "text": "a guess at its texts",
    "unknown": "nothing",
}
_UNKNOWN = (
    "Whether answers were cut is not known: the log gives neither finish reasons nor token counts with their limit, "
    "nor texts to guess from. Log the finish reason of every answer, or name the limit with --token-limit."
)
_GUESSED = (
    "This is a guess from how the texts end, on which no verdict can rest: log the finish reason of every answer, or "
    "its token count and name the limit with --token-limit."
)


def one_run(arm: TruncationArm, verdict: Verdict, tolerance: float) -> str:
    """One run's truncation, and what it can have cost."""
    if verdict is Verdict.NOT_AUDITED or arm.accuracy_low is None or arm.accuracy_high is None:
        return _UNKNOWN
    if not arm.basis.is_fact:
        return f"{arm.truncated:,} of {counted(arm.n, 'answer')} look cut. {_GUESSED}"
    bounds = (
        f"the accuracy is {percent(arm.accuracy_low)} as logged, and at most {percent(arm.accuracy_high)} had no "
        "answer been cut"
    )
    found = (
        f"{arm.truncated:,} of {counted(arm.n, 'answer')} ({percent(arm.truncated / arm.n)}) were cut{_unknown(arm)}"
    )
    if verdict is Verdict.INVALID:
        return f"The score is invalid: {found}, so {bounds}. Run it again with a higher limit."
    if verdict is Verdict.CLEAN:
        return f"Truncation does not matter here: {found}; {bounds}, which is within {points(100 * tolerance)}."
    return f"Truncation may matter: {found}; {bounds}. Run it again with a higher limit to know."


def two_runs(
    arms: tuple[TruncationArm, TruncationArm],
    comparisons: Sequence[RateComparison],
    verdict: Verdict,
    tolerance: float,
    alpha: float,
) -> str:
    """Whether two runs can be compared, and what stands in the way."""
    facts = all(arm.basis.is_fact for arm in arms)
    if verdict is Verdict.INVALID:
        return f"These runs cannot be compared: {_why_invalid(arms, comparisons, alpha)}"
    if verdict is Verdict.CLEAN:
        a, b = arms
        return (
            f"Truncation does not stand between these runs: {percent(a.rate or 0.0)} of A's answers and "
            f"{percent(b.rate or 0.0)} of B's were cut, which is shown to differ by less than "
            f"{points(100 * tolerance)}.{_mixed(arms)}"
        )
    if verdict is Verdict.NOT_AUDITED:
        return _UNKNOWN
    if facts:
        return (
            "No difference in truncation is shown, nor is one ruled out: these items leave room for one of more than "
            f"{points(100 * tolerance)}.{_mixed(arms)}"
        )
    return f"{_guess(arms, comparisons, alpha)}{_mixed(arms)} {_GUESSED}"


def _why_invalid(arms: tuple[TruncationArm, TruncationArm], comparisons: Sequence[RateComparison], alpha: float) -> str:
    facts = all(arm.basis.is_fact for arm in arms)
    reasons = [
        f"more than half of {name}'s answers ({percent(arm.truncated / arm.n)}) were cut"
        for name, arm in zip("AB", arms, strict=True)
        if arm.mostly_cut
    ]
    remedies = [_REMEDIES["truncated"]] if reasons else []
    for one in comparisons:
        if one.differs(alpha) and (facts or one.rate != "truncated"):
            more, fewer = ("A", "B") if one.difference > 0 else ("B", "A")
            p_value = one.p_value if one.p_holm is None else one.p_holm
            reasons.append(
                f"{points(100 * abs(one.difference))} more of {more}'s answers than of {fewer}'s {_COUNTED[one.rate]} "
                f"({p_text(p_value)})"
            )
            remedies.append(_REMEDIES[one.rate])
    return (
        f"{'; '.join(reasons)}. A difference in accuracy may be one of the protocol: "
        f"{', and '.join(dict.fromkeys(remedies))}."
    )


def _guess(arms: tuple[TruncationArm, TruncationArm], comparisons: Sequence[RateComparison], alpha: float) -> str:
    truncation = next((one for one in comparisons if one.rate == "truncated"), None)
    if truncation is None:
        return "Truncation is not compared."
    counts = " and ".join(f"{arm.truncated:,} of {name}'s {arm.n:,}" for name, arm in zip("AB", arms, strict=True))
    suspected = " A difference is suspected, but not known." if truncation.differs(alpha) else ""
    return f"{counts} answers look cut ({p_text(truncation.p_value)}).{suspected}"


def _mixed(arms: tuple[TruncationArm, TruncationArm]) -> str:
    a, b = arms
    if a.basis is b.basis:
        return ""
    return f" The two are not known from the same thing: A's from {_BASES[a.basis]}, B's from {_BASES[b.basis]}."


def _unknown(arm: TruncationArm) -> str:
    return f", and of {arm.unknown:,} more it is not known" if arm.unknown else ""
