"""Answers that were cut, empty, unreadable or missing: their rates in one run, and whether two runs differ in them.

An answer that was not allowed to end is scored as wrong. Where one run is cut more often than another, the difference
of their accuracies is partly one of the limit, and no test of accuracy sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.evidence import Verdict
from proctor.domain.levels import SIGNIFICANCE_ALPHA
from proctor.domain.run_log import LoggedAnswer, RunLog
from proctor.evidence.intervals import wilson
from proctor.evidence.multiplicity import holm
from proctor.evidence.paired import statements as comparison_words
from proctor.evidence.paired.discordance import PairCounts, agresti_min, mcnemar_exact
from proctor.evidence.paired.equivalence import equivalence
from proctor.evidence.paired.pairing import Pairs, pair
from proctor.evidence.protocol import truncation_statements
from proctor.evidence.protocol.channel import TOLERANCE
from proctor.evidence.protocol.truncation_results import (
    FAMILY,
    Basis,
    Rate,
    RateComparison,
    RateName,
    TruncationArm,
    TruncationEvidence,
)


class Cuts(NamedTuple):
    """Which answers of a run were cut, by item, for those of which it is known, and from what."""

    basis: Basis
    flags: Mapping[str, bool]


def cuts(run: RunLog, *, token_limit: int | None, looks_cut: Callable[[str], bool]) -> Cuts:
    """Which answers were cut: by finish reason, else by tokens that reach the limit, else guessed from the text.

    Args:
        run: a run; its error rows are left out.
        token_limit: most tokens of an answer, in place of the log's own.
        looks_cut: the guess. Asked only where the run has not one answer of which the log says it.

    Where finish reasons are missing here and there and tokens fill the gap, the basis is `tokens`.
    """
    limited = run if token_limit is None else replace(run, token_limit=token_limit)
    returned = [answer for answer in run.answers if answer.correct is not None]
    facts = {row.item_id: cut for row in returned if (cut := limited.cut(row)) is not None}
    if facts:
        by_tokens = any(row.truncated is None and row.item_id in facts for row in returned)
        return Cuts(Basis.TOKENS if by_tokens else Basis.FINISH_REASON, facts)
    guesses = {row.item_id: looks_cut(row.text) for row in returned if row.text is not None}
    return Cuts(Basis.TEXT if guesses else Basis.UNKNOWN, guesses)


def truncation_of(
    run: RunLog, found: Cuts, *, token_limit: int | None = None, alpha: float = SIGNIFICANCE_ALPHA
) -> TruncationEvidence:
    """Truncation of one run, judged by what it can have cost this run's accuracy.

    `invalid` where more than half of the answers were cut; `clean` where the accuracy could not rise by more than
    TOLERANCE if every cut answer were right, which is a bound and no test; `inconclusive` otherwise, and for a guess;
    `not_audited` where nothing is known.
    """
    arm = _arm(run, found, token_limit, alpha)
    verdict = _verdict_of_one(arm)
    return TruncationEvidence(
        verdict=verdict,
        conclusion=truncation_statements.one_run(arm, verdict, TOLERANCE),
        arms=(arm,),
        difference=None,
        difference_ci=(None, None),
        p_value=None,
        comparisons=(),
        alpha=alpha,
    )


def compare_truncation(
    a: RunLog,
    b: RunLog,
    cuts_a: Cuts,
    cuts_b: Cuts,
    *,
    token_limits: tuple[int | None, int | None] = (None, None),
    alpha: float = SIGNIFICANCE_ALPHA,
) -> TruncationEvidence:
    """Truncation, empty, unreadable and error rows of two runs, compared item by item.

    Null hypothesis of each test: an item is as likely to be counted in one run as in the other (McNemar's exact test;
    items are independent, the two answers to one item need not be). Truncation is tested at alpha, the other three
    with Holm's correction over them.

    `invalid` where a rate differs beyond chance and by more than TOLERANCE (truncation only where it is known), or
    where more than half of a run's answers were cut. `clean` where no rate does, and truncation, known in both runs, is
    shown to be within TOLERANCE: two one-sided tests at alpha, which takes 180 common items even where no answer was
    cut. `inconclusive` otherwise, so always where truncation is guessed. `not_audited` where it is known or
    guessed in neither run and nothing else differs. Where it is known in one run and guessed in the other, the two are
    not compared: they are not the same measure.

    Raises:
        BadInputError: where the runs have no item in common.
    """
    pairs = pair(_ungraded(a), _ungraded(b))
    if not pairs.answers:
        name = " / ".join(dict.fromkeys((a.extractor, b.extractor)))
        raise BadInputError(comparison_words.nothing_in_common(name, a, b, pairs))
    arms = _arm(a, cuts_a, token_limits[0], alpha), _arm(b, cuts_b, token_limits[1], alpha)
    rows = {run: {row.item_id: row for row in log.answers} for run, log in (("a", a), ("b", b))}
    comparable = cuts_a.basis.is_fact == cuts_b.basis.is_fact
    compared: list[RateComparison] = []
    for name in RateName:
        flags = _paired_flags(name, pairs, rows, cuts_a, cuts_b)
        if flags and (comparable or name is not RateName.TRUNCATED):
            compared.append(_compared(name, flags, alpha))
    comparisons = _with_holm(compared)
    truncation = next((one for one in comparisons if one.rate is RateName.TRUNCATED), None)
    verdict = _verdict_of_two(arms, comparisons, truncation, alpha)
    return TruncationEvidence(
        verdict=verdict,
        conclusion=truncation_statements.two_runs(arms, comparisons, verdict, TOLERANCE, alpha),
        arms=arms,
        difference=truncation.difference if truncation else None,
        difference_ci=truncation.difference_ci if truncation else (None, None),
        p_value=truncation.p_value if truncation else None,
        comparisons=comparisons,
        alpha=alpha,
    )


def _ungraded(run: RunLog) -> RunLog:
    """The run with error rows as answers like others, for an item that failed in one run is a pair here."""
    return replace(run, answers=tuple(replace(row, correct=bool(row.correct)) for row in run.answers))


def _flag(name: RateName, row: LoggedAnswer, found: Cuts) -> bool | None:
    """Whether an answer counts; None where it is not known, or where there is no answer to count."""
    if name is RateName.ERROR:
        return row.correct is None
    if row.correct is None:
        return None
    if name is RateName.TRUNCATED:
        return found.flags.get(row.item_id)
    empty = None if row.text is None else not row.text.strip()
    if name is RateName.EMPTY:
        return empty
    return None if row.answer is None else row.unread and not empty


def _paired_flags(
    name: RateName, pairs: Pairs, rows: Mapping[str, Mapping[str, LoggedAnswer]], cuts_a: Cuts, cuts_b: Cuts
) -> list[tuple[bool, bool]]:
    flags = (
        (_flag(name, rows["a"][first.item_id], cuts_a), _flag(name, rows["b"][second.item_id], cuts_b))
        for first, second in pairs.answers
    )
    return [(first, second) for first, second in flags if first is not None and second is not None]


def _compared(name: RateName, flags: list[tuple[bool, bool]], alpha: float) -> RateComparison:
    both, only_a, only_b = (flags.count(cell) for cell in ((True, True), (True, False), (False, True)))
    counts = PairCounts(both, only_a, only_b, len(flags) - both - only_a - only_b)
    interval = agresti_min(counts, 1 - alpha)
    assert interval.value is not None
    return RateComparison(
        rate=name,
        n=counts.n,
        only_a=only_a,
        only_b=only_b,
        difference=interval.value,
        difference_ci=(interval.low, interval.high),
        p_value=mcnemar_exact(only_a, only_b),
        p_holm=None,
        p_equivalence=equivalence(counts, TOLERANCE, alpha).p_value,
    )


def _with_holm(compared: list[RateComparison]) -> tuple[RateComparison, ...]:
    family = [one for one in compared if one.rate in FAMILY]
    adjusted = dict(zip((one.rate for one in family), holm([one.p_value for one in family]), strict=True))
    return tuple(one.model_copy(update={"p_holm": adjusted.get(one.rate)}) for one in compared)


def _rate(name: RateName, run: RunLog, found: Cuts, alpha: float) -> Rate:
    flags = [flag for row in run.answers if (flag := _flag(name, row, found)) is not None]
    estimate = wilson(sum(flags), len(flags), 1 - alpha)
    return Rate(n=len(flags), count=sum(flags), rate=estimate.value, rate_ci=(estimate.low, estimate.high))


def _arm(run: RunLog, found: Cuts, token_limit: int | None, alpha: float) -> TruncationArm:
    truncated = _rate(RateName.TRUNCATED, run, found, alpha)
    graded = [row for row in run.answers if row.correct is not None]
    correct = sum(row.correct is True for row in graded)
    wrong = [found.flags.get(row.item_id) for row in graded if not row.correct]
    lost, unknown = wrong.count(True), wrong.count(None)
    known = found.basis is not Basis.UNKNOWN
    return TruncationArm(
        run=run.source,
        format=run.format,
        n=truncated.n,
        truncated=truncated.count,
        rate=truncated.rate,
        rate_ci=truncated.rate_ci,
        basis=found.basis,
        token_limit=token_limit if token_limit is not None else run.token_limit,
        unknown=len(graded) - truncated.n,
        graded=len(graded),
        correct=correct,
        wrong_and_truncated=lost,
        wrong_and_unknown=unknown,
        accuracy_low=correct / len(graded) if graded else None,
        accuracy_high=(correct + lost + unknown) / len(graded) if graded and known else None,
        empty=_rate(RateName.EMPTY, run, found, alpha),
        unreadable=_rate(RateName.UNREADABLE, run, found, alpha),
        error=_rate(RateName.ERROR, run, found, alpha),
    )


def _verdict_of_one(arm: TruncationArm) -> Verdict:
    if arm.basis is Basis.UNKNOWN:
        return Verdict.NOT_AUDITED
    if arm.mostly_cut:
        return Verdict.INVALID
    # Counts, for a difference of two shares may pass the tolerance by rounding alone.
    harmless = arm.wrong_and_truncated + arm.wrong_and_unknown <= TOLERANCE * arm.graded
    return Verdict.CLEAN if arm.basis.is_fact and harmless else Verdict.INCONCLUSIVE


def _verdict_of_two(
    arms: tuple[TruncationArm, TruncationArm],
    comparisons: tuple[RateComparison, ...],
    truncation: RateComparison | None,
    alpha: float,
) -> Verdict:
    facts = all(arm.basis.is_fact for arm in arms)
    telling = [one for one in comparisons if facts or one.rate is not RateName.TRUNCATED]
    if any(one.differs(alpha) for one in telling) or any(arm.mostly_cut for arm in arms):
        return Verdict.INVALID
    if facts and truncation is not None and truncation.p_equivalence < alpha:
        return Verdict.CLEAN
    if all(arm.basis is Basis.UNKNOWN for arm in arms):
        return Verdict.NOT_AUDITED
    return Verdict.INCONCLUSIVE
