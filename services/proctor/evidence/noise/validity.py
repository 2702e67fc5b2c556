"""Whether the arms behind routers can be compared at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proctor.domain.evidence import ArmAccuracy
from proctor.domain.levels import MAX_FAILED_SHARE
from proctor.domain.routing import Condition, RouterKind
from proctor.evidence.multiplicity import holm
from proctor.evidence.protocol.channel import MAX_INVALID_SHARE, TOLERANCE, fisher_two_sided
from proctor.evidence.written_numbers import counted, percent

#: The paper's clean baseline.
BASELINE: Final = Condition(RouterKind.CLEAN, 1)


def what_is_missing(items: Sequence[str], asked: int, usable: Sequence[Condition]) -> list[str]:
    """Why nothing can be concluded, by what is missing; empty where something can.

    Args:
        items: those that every arm answered.
        asked: the number of items of the audit.
        usable: the noisy conditions most of whose answers hold an option.
    """
    if not items:
        return ["No item was answered behind every set of routers, so there is nothing to compare."]
    problems, missing = [], asked - len(items)
    if missing > MAX_FAILED_SHARE * asked:
        problems.append(
            f"Of {percent(missing / asked)} of the {counted(asked, 'item')} a router's message or an answer is "
            f"missing, more than {percent(MAX_FAILED_SHARE)}. Mend the endpoint and run the audit again."
        )
    if not usable:
        problems.append("Most of the answers behind noisy routers hold no option, whatever the number of routers.")
    return problems


def handicapped_baseline(arms: Sequence[ArmAccuracy], alpha: float) -> list[str]:
    """Whether the clean baseline loses answers to truncation or parsing that the noisy arms do not lose.

    Only this direction makes a gain: noisy arms that lose more are found less suspicious than they are. Fisher's exact
    test, Holm over the noisy arms and both rates; a difference within TOLERANCE is left to the intervals.
    """
    clean = next(arm for arm in arms if arm.arm == BASELINE.arm)
    if clean.n_answers and clean.n_invalid > MAX_INVALID_SHARE * clean.n_answers:
        return [
            f"{percent(clean.n_invalid / clean.n_answers)} of the answers behind one clean router hold no option: "
            "there is no baseline."
        ]
    noisy = [arm for arm in arms if arm.arm.startswith(RouterKind.NOISY) and arm.n_answers]
    pairs = [
        (what, lost, of, clean.n_answers)
        for arm in noisy
        for what, lost, of in (("empty or unparsable", arm.n_invalid, arm), ("truncated", arm.n_truncated, arm))
    ]
    if not pairs or not clean.n_answers:
        return []
    lost_clean = {"empty or unparsable": clean.n_invalid, "truncated": clean.n_truncated}
    adjusted = holm([fisher_two_sided(lost_clean[what], n, lost, of.n_answers) for what, lost, of, n in pairs])
    return [
        f"{percent(lost_clean[what] / n)} of the answers behind one clean router are {what}, and "
        f"{percent(lost / of.n_answers)} in arm {of.arm}: a gain would come of that."
        for (what, lost, of, n), p in zip(pairs, adjusted, strict=True)
        if p < alpha and lost_clean[what] / n - lost / of.n_answers > TOLERANCE
    ]
