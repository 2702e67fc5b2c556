"""Two runs on the same items, compared: one paired verdict, and whether it stands under every extractor.

A verdict needs answers that were allowed to end: where one run is cut at its token limit more often than the other,
the comparison is `invalid`, whatever p is. Where a log was graded by several extractors, each is compared; verdicts
that differ say something of the extractors and not of the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from proctor.domain.base import Frozen
from proctor.domain.errors import BadInputError
from proctor.domain.evidence import Estimate
from proctor.domain.run_log import RunLog
from proctor.evidence import comparison_words as words
from proctor.evidence.discordance import (
    PairCounts,
    agresti_min,
    bootstrap_interval,
    discordance_of,
    equivalence,
    mcnemar_exact,
    minimum_detectable_difference,
    paired_sample_size,
)
from proctor.evidence.intervals import wilson
from proctor.evidence.multiplicity import holm
from proctor.evidence.pairing import Pairs, pair
from proctor.evidence.protocol import TOLERANCE

NULL_HYPOTHESIS = "both runs have the same accuracy on these items"


class PairedVerdict(StrEnum):
    """What a comparison of two runs says."""

    A_BETTER = "a_better"
    B_BETTER = "b_better"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    EXTRACTOR_DECIDES = "extractor_decides"


class ExcludedItem(Frozen):
    """An item that is not compared."""

    id: str
    run: str
    """Whose log is the reason: a, b or both."""
    reason: str


class TruncationComparison(Frozen):
    """Answers cut at a token limit, over the items of which both logs give a finish reason."""

    n: int
    a: int
    b: int
    only_a: int
    only_b: int
    p_value: float
    differs: bool
    """Significantly, and by more than two points."""


class EquivalenceResult(Frozen):
    """Two one-sided tests against a tolerance; differences are fractions."""

    tolerance: float
    p_value: float
    interval: tuple[float, float]
    level: float


class ExtractorComparison(Frozen):
    """Two runs compared under one extractor. Differences are fractions, A minus B."""

    extractor: str
    n: int
    n_a_correct: int
    n_b_correct: int
    both: int
    only_a: int
    only_b: int
    neither: int
    accuracy_a: Estimate
    accuracy_b: Estimate
    delta: Estimate
    delta_bootstrap: Estimate
    p_value: float
    p_holm: float
    """Corrected over the extractors compared."""
    mde: float | None
    """Smallest difference that these items show with 80 % power; None where none would be shown."""
    items_needed: int | None
    """Items at which a difference such as the one seen is found with 80 % power."""
    equivalence: EquivalenceResult | None
    unread_a: int
    """Compared answers of A in which the extractor found nothing, as far as the log says."""
    unread_b: int
    paired_by_content: int
    excluded: tuple[ExcludedItem, ...]
    verdict: PairedVerdict


class Comparison(Frozen):
    """Two runs compared. `extractors` holds the primary one first; `verdict` is over all of them."""

    a: str
    b: str
    verdict: PairedVerdict
    conclusion: str
    null_hypothesis: str = NULL_HYPOTHESIS
    alpha: float
    seed: int
    truncation: TruncationComparison | None
    """None where the logs do not both give finish reasons."""
    extractors: tuple[ExtractorComparison, ...]
    only_in_one: tuple[str, ...]
    """Extractors that one log alone has, and which are therefore not compared."""

    @property
    def primary(self) -> ExtractorComparison:
        """The comparison under the logs' primary extractor, or the one that was asked for."""
        return self.extractors[0]


def compare_runs(
    a: Sequence[RunLog],
    b: Sequence[RunLog],
    *,
    extractor: str | None = None,
    tolerance: float | None = None,
    seed: int = 0,
    alpha: float = 0.05,
) -> Comparison:
    """Compare two logs, each given as its runs by extractor, under every extractor that both have.

    Args:
        a: runs of the first log, its primary extractor first.
        b: runs of the second.
        extractor: the primary one, where it is not the first of `a` that `b` has as well.
        tolerance: difference (a fraction) within which runs count as equivalent; None: equivalence is not asked.
        seed: of the bootstrap; each extractor draws from its own stream.
        alpha: level of every test; intervals have level 1 − alpha.

    Raises:
        BadInputError: where the logs share no extractor or no item, or `extractor` is in neither.
    """
    matched = _matched(a, b, extractor)
    paired = [(name, pair(first, second)) for name, first, second in matched]
    for (_, pairs), (name, first, second) in zip(paired, matched, strict=True):
        if not pairs.answers:
            raise BadInputError(words.nothing_in_common(name, first, second, pairs))
    p_values = [mcnemar_exact(pairs.counts.only_a, pairs.counts.only_b) for _, pairs in paired]
    streams = np.random.SeedSequence(seed).spawn(len(paired))
    compared = tuple(
        _compare(name, pairs, p, adjusted, np.random.default_rng(stream), tolerance, alpha)
        for (name, pairs), p, adjusted, stream in zip(paired, p_values, holm(p_values), streams, strict=True)
    )
    truncation = _truncation(paired[0][1], alpha)
    verdict = _overall(compared, truncation)
    comparison = Comparison(
        a=a[0].source,
        b=b[0].source,
        verdict=verdict,
        conclusion="",
        alpha=alpha,
        seed=seed,
        truncation=truncation,
        extractors=compared,
        only_in_one=_only_in_one(a, b, matched),
    )
    return comparison.model_copy(update={"conclusion": words.conclusion(comparison)})


def _matched(a: Sequence[RunLog], b: Sequence[RunLog], extractor: str | None) -> list[tuple[str, RunLog, RunLog]]:
    """Runs under the same extractor, the primary one first."""
    second = {run.extractor: run for run in b}
    if len(a) == len(b) == 1 and extractor is None:
        # Logs of two tools name their one extractor differently, and there is nothing to choose.
        names = dict.fromkeys((a[0].extractor, b[0].extractor))
        return [(" / ".join(names), a[0], b[0])]
    matched = [(run.extractor, run, second[run.extractor]) for run in a if run.extractor in second]
    if extractor is not None:
        matched.sort(key=lambda match: match[0] != extractor)
    if not matched or (extractor is not None and matched[0][0] != extractor):
        raise BadInputError(words.no_such_extractor(a, b, extractor))
    return matched


def _only_in_one(
    a: Sequence[RunLog], b: Sequence[RunLog], matched: Sequence[tuple[str, RunLog, RunLog]]
) -> tuple[str, ...]:
    compared = {run.extractor for _, *runs in matched for run in runs}
    return tuple(sorted({run.extractor for run in (*a, *b)} - compared))


def _compare(
    name: str,
    pairs: Pairs,
    p_value: float,
    p_holm: float,
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
    return ExtractorComparison(
        extractor=name,
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
        p_holm=p_holm,
        mde=minimum_detectable_difference(counts.n, discordance, alpha=alpha),
        items_needed=paired_sample_size(difference, discordance, alpha=alpha) if difference else None,
        equivalence=tested,
        unread_a=sum(first.unread for first, _ in pairs.answers),
        unread_b=sum(second.unread for _, second in pairs.answers),
        paired_by_content=pairs.by_content,
        excluded=tuple(ExcludedItem(id=item.item_id, run=item.run, reason=item.reason) for item in pairs.excluded),
        verdict=_verdict(difference, p_value, tested, alpha),
    )


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
    if len({one.verdict for one in compared}) > 1:
        return PairedVerdict.EXTRACTOR_DECIDES
    return compared[0].verdict


def _truncation(pairs: Pairs, alpha: float) -> TruncationComparison | None:
    """Truncation compared by item, for a long problem is long for both: McNemar's test again."""
    known = [
        (first.truncated, second.truncated)
        for first, second in pairs.answers
        if first.truncated is not None and second.truncated is not None
    ]
    if not known:
        return None
    cut_a, cut_b = (sum(bool(flags[index]) for flags in known) for index in (0, 1))
    only_a, only_b = known.count((True, False)), known.count((False, True))
    p_value = mcnemar_exact(only_a, only_b)
    differs = p_value < alpha and abs(cut_a - cut_b) / len(known) > TOLERANCE
    return TruncationComparison(
        n=len(known), a=cut_a, b=cut_b, only_a=only_a, only_b=only_b, p_value=p_value, differs=differs
    )
