"""Two runs on the same items, compared: one paired verdict, and whether it stands under every extractor.

A verdict needs answers that were allowed to end: where one run is cut at its token limit more often than the other,
the comparison is `invalid`, whatever p is. Where texts were graded by several extractors, each is compared; verdicts
that differ say something of the extractors and not of the runs.

Not every extractor votes. The logs' own grades do, however little their extractor read, because theirs is the score
that somebody reported. Grades that Proctor made again from the texts vote where the extractor found an answer in at
least half of each run's texts; below that they are figures of the extractor (an exact match of worked solutions has
both runs at 0 %), reported and not counted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proctor.domain.errors import BadInputError
from proctor.domain.levels import SIGNIFICANCE_ALPHA
from proctor.domain.run_log import LoggedAnswer, RunLog
from proctor.evidence.intervals import wilson
from proctor.evidence.multiplicity import holm
from proctor.evidence.paired import statements
from proctor.evidence.paired.discordance import (
    PairCounts,
    agresti_min,
    bootstrap_interval,
    discordance_of,
    mcnemar_exact,
    minimum_detectable_difference,
    paired_sample_size,
)
from proctor.evidence.paired.equivalence import equivalence
from proctor.evidence.paired.pairing import Pairs, pair
from proctor.evidence.paired.protocols import compare_protocols, refusal
from proctor.evidence.paired.results import (
    Comparison,
    EquivalenceResult,
    ExcludedItem,
    ExtractorComparison,
    PairedVerdict,
    ProtocolsDifferError,
    TruncationComparison,
)
from proctor.evidence.protocol.channel import MAX_INVALID_SHARE, TOLERANCE


def compare_runs(
    a: Sequence[RunLog],
    b: Sequence[RunLog],
    *,
    extractor: str | None = None,
    tolerance: float | None = None,
    seed: int = 0,
    alpha: float = SIGNIFICANCE_ALPHA,
    across_protocols: bool = False,
) -> Comparison:
    """Compare two logs, each given as its runs by extractor, under every extractor that both have.

    Args:
        a: runs of the first log, its primary extractor first; those graded again from the texts, if any, last.
        b: runs of the second.
        extractor: the primary one, where it is not the first of `a` that `b` has as well.
        tolerance: difference (a fraction) within which runs count as equivalent; None: equivalence is not asked.
        seed: of the bootstrap; each extractor draws from its own stream.
        alpha: level of every test; intervals have level 1 − alpha.
        across_protocols: compare runs that were made under different protocols as well.

    Raises:
        BadInputError: where the logs share no extractor or no item, or `extractor` is in neither.
        ProtocolsDifferError: where both logs record a setting of their protocols and it is not the same.
    """
    matched = _matched(a, b, extractor)
    paired = [pair(first, second) for _, first, second in matched]
    for pairs, (name, first, second) in zip(paired, matched, strict=True):
        if not pairs.answers:
            raise BadInputError(statements.nothing_in_common(name, first, second, pairs))
    protocol = compare_protocols(*matched[0][1:], paired[0])
    if protocol.differs and not across_protocols:
        raise ProtocolsDifferError(refusal(*matched[0][1:], protocol), protocol)
    streams = np.random.SeedSequence(seed).spawn(len(paired))
    compared = tuple(
        _compare(name, pairs, first.regraded, np.random.default_rng(stream), tolerance, alpha)
        for (name, first, _), pairs, stream in zip(matched, paired, streams, strict=True)
    )
    compared = _corrected(compared)
    truncation = _truncation(paired[0], *matched[0][1:], alpha)
    comparison = Comparison(
        a=a[0].source,
        b=b[0].source,
        format_a=a[0].format,
        format_b=b[0].format,
        verdict=_overall(compared, truncation),
        conclusion="",
        alpha=alpha,
        seed=seed,
        truncation=truncation,
        protocol=protocol,
        extractors=compared,
        only_in_one=_only_in_one(a, b, matched),
    )
    return comparison.model_copy(update={"conclusion": statements.conclusion(comparison)})


def _matched(a: Sequence[RunLog], b: Sequence[RunLog], extractor: str | None) -> list[tuple[str, RunLog, RunLog]]:
    """Runs under the same extractor, the primary one first."""
    own_a, own_b = ([run for run in runs if not run.regraded] for runs in (a, b))
    second = {run.extractor: run for run in b}
    matched = [(run.extractor, run, second[run.extractor]) for run in a if run.extractor in second]
    if len(own_a) == len(own_b) == 1 and own_a[0].extractor != own_b[0].extractor:
        # Logs of two tools name their one extractor differently, and there is nothing to choose.
        matched.insert(0, (f"{own_a[0].extractor} / {own_b[0].extractor}", own_a[0], own_b[0]))
    if extractor is not None:
        matched.sort(key=lambda match: match[0] != extractor)
    if not matched or (extractor is not None and matched[0][0] != extractor):
        raise BadInputError(statements.no_such_extractor(own_a, own_b, extractor))
    return matched


def _only_in_one(
    a: Sequence[RunLog], b: Sequence[RunLog], matched: Sequence[tuple[str, RunLog, RunLog]]
) -> tuple[str, ...]:
    compared = {run.extractor for _, *runs in matched for run in runs}
    return tuple(sorted({run.extractor for run in (*a, *b)} - compared))


def _compare(
    name: str,
    pairs: Pairs,
    regraded: bool,
    rng: np.random.Generator,
    tolerance: float | None,
    alpha: float,
) -> ExtractorComparison:
    counts = pairs.counts
    level = 1 - alpha
    discordance = discordance_of(counts)
    difference = counts.difference
    assert discordance is not None
    assert difference is not None
    tested = _equivalence(counts, tolerance, alpha)
    p_value = mcnemar_exact(counts.only_a, counts.only_b)
    unread_a = sum(first.unread for first, _ in pairs.answers)
    unread_b = sum(second.unread for _, second in pairs.answers)
    return ExtractorComparison(
        extractor=name,
        regraded=regraded,
        votes=not regraded or max(unread_a, unread_b) <= MAX_INVALID_SHARE * counts.n,
        n=counts.n,
        n_a_correct=counts.both + counts.only_a,
        n_b_correct=counts.both + counts.only_b,
        both=counts.both,
        only_a=counts.only_a,
        only_b=counts.only_b,
        neither=counts.neither,
        accuracy_a=wilson(counts.both + counts.only_a, counts.n, level),
        accuracy_b=wilson(counts.both + counts.only_b, counts.n, level),
        delta=agresti_min(counts, level),
        delta_bootstrap=bootstrap_interval(counts, level, rng),
        p_value=p_value,
        p_holm=None,
        mde=minimum_detectable_difference(counts.n, discordance, alpha=alpha),
        items_needed=paired_sample_size(difference, discordance, alpha=alpha) if difference else None,
        equivalence=tested,
        unread_a=unread_a,
        unread_b=unread_b,
        paired_by_content=pairs.by_content,
        excluded=tuple(ExcludedItem(id=item.item_id, run=item.run, reason=item.reason) for item in pairs.excluded),
        verdict=_verdict(difference, p_value, tested, alpha),
    )


def _corrected(compared: Sequence[ExtractorComparison]) -> tuple[ExtractorComparison, ...]:
    """With Holm's correction over those that vote."""
    adjusted = iter(holm([one.p_value for one in compared if one.votes]))
    return tuple(one.model_copy(update={"p_holm": next(adjusted)}) if one.votes else one for one in compared)


def _equivalence(counts: PairCounts, tolerance: float | None, alpha: float) -> EquivalenceResult | None:
    if tolerance is None:
        return None
    result = equivalence(counts, tolerance, alpha)
    return EquivalenceResult(
        tolerance=tolerance, p_value=result.p_value, interval=(result.low, result.high), level=1 - 2 * alpha
    )


def _verdict(difference: float, p_value: float, tested: EquivalenceResult | None, alpha: float) -> PairedVerdict:
    # Equivalence first: with many items a difference can be beyond chance and still within what was declared to be
    # of no importance.
    if tested is not None and tested.p_value < alpha:
        return PairedVerdict.EQUIVALENT
    if p_value >= alpha:
        return PairedVerdict.INCONCLUSIVE
    return PairedVerdict.A_BETTER if difference > 0 else PairedVerdict.B_BETTER


def _overall(compared: Sequence[ExtractorComparison], truncation: TruncationComparison | None) -> PairedVerdict:
    if truncation is not None and truncation.differs:
        return PairedVerdict.INVALID
    verdicts = {one.verdict for one in compared if one.votes}
    if not verdicts:
        # Figures of extractors that read next to nothing, and no others.
        return PairedVerdict.INCONCLUSIVE
    return verdicts.pop() if len(verdicts) == 1 else PairedVerdict.EXTRACTOR_DECIDES


def _truncation(pairs: Pairs, a: RunLog, b: RunLog, alpha: float) -> TruncationComparison | None:
    """Truncation compared by item, for a long problem is long for both: McNemar's test again."""
    known: list[tuple[bool, bool]] = []
    bases: set[str] = set()
    for first, second in pairs.answers:
        cut_first, cut_second = a.cut(first), b.cut(second)
        if cut_first is not None and cut_second is not None:
            known.append((cut_first, cut_second))
            bases |= {_basis(first), _basis(second)}
    if not known:
        return None
    cut_a, cut_b = (sum(flags[index] for flags in known) for index in (0, 1))
    only_a, only_b = known.count((True, False)), known.count((False, True))
    p_value = mcnemar_exact(only_a, only_b)
    differs = p_value < alpha and abs(cut_a - cut_b) / len(known) > TOLERANCE
    return TruncationComparison(
        n=len(known),
        a=cut_a,
        b=cut_b,
        only_a=only_a,
        only_b=only_b,
        p_value=p_value,
        differs=differs,
        basis=" and ".join(sorted(bases)),
    )


def _basis(answer: LoggedAnswer) -> str:
    return "token counts" if answer.finish_reason is None else "finish reasons"
