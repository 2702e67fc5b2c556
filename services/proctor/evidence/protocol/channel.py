"""The protocol channel: whether the arms are comparable at all. It makes other channels invalid, and is never
evidence of contamination itself.

Truncated, invalid (empty or unparsable) and failed answers are counted by arm. A rate that differs between two arms by
more than TOLERANCE and beyond chance (Fisher's exact test, Holm's correction over all pairs of arms and all three
rates) moves accuracies apart for a reason that is not the wording.

Arms that lose as many answers are comparable, and still say little of a model that was hardly heard. Of truncated
answers those count there that were *cut short*: what is read of them does not stand in them whatever followed
(`grading.settled`), and they are not right. An option that was named before the limit is an answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy import special

from proctor.domain.evidence import ArmAccuracy, Estimate, ProtocolEvidence, Verdict
from proctor.domain.levels import MAX_FAILED_SHARE, SIGNIFICANCE_ALPHA
from proctor.domain.trial import Outcome
from proctor.evidence.answers import Answer, FloatArray
from proctor.evidence.clusters import clustered_share, clusters_among
from proctor.evidence.intervals import mean_share
from proctor.evidence.multiplicity import holm
from proctor.evidence.written_numbers import counted, p_text, percent

#: Two points of answers lost in one arm move its accuracy by at most two points: less than half of the article's
#: 5-point limit. Smaller differences are left to the intervals.
TOLERANCE = 0.02
#: Beyond half, the arm's accuracy is one of the parser and not of the model.
MAX_INVALID_SHARE = 0.5
#: Of answers that were cut short. A fifth of the answers unheard can move an accuracy by twenty points, four times the
#: article's limit, in each arm.
MAX_CUT_SHORT_SHARE = 0.2
#: What to do about answers that were cut short.
RAISE_THE_LIMIT = (
    "Raise the token limit (decoding_config.max_tokens); where the model goes on after its answer, name the text at "
    "which an answer ends in decoding_config.stop."
)


class ArmCounts(NamedTuple):
    """Answers of one arm: asked, and of these truncated, cut short among those, invalid and failed."""

    arm: str
    asked: int
    truncated: int
    cut_short: int
    invalid: int
    failed: int
    accuracy: Estimate
    n_items: int


class RateDifference(NamedTuple):
    """A rate compared between two arms, with its p-value corrected over the family."""

    what: str
    first: str
    second: str
    first_rate: float
    second_rate: float
    p_adjusted: float

    @property
    def matters(self) -> bool:
        """Whether it is past the tolerance."""
        return abs(self.first_rate - self.second_rate) > TOLERANCE


def protocol_evidence(
    answers: Iterable[Answer],
    *,
    expected_arms: Sequence[str] = (),
    alpha: float = SIGNIFICANCE_ALPHA,
    level: float = 0.95,
    clusters: Mapping[str, str] = MappingProxyType({}),
) -> ProtocolEvidence:
    """Compare the arms' truncated, invalid and failed answers.

    Args:
        answers: every trial's row, error rows included.
        expected_arms: arms that must have answers; one without any makes the channel invalid.
        alpha: level of the corrected comparison.
        level: confidence level of the arms' accuracies.
        clusters: item id → its cluster, of the items that are in one: accuracies are over clusters then.

    `invalid` where a rate differs between arms by more than TOLERANCE and significantly, where more than
    MAX_INVALID_SHARE of an arm's answers is invalid, more than MAX_CUT_SHORT_SHARE cut short or more than
    MAX_FAILED_SHARE failed, or where an arm has no answer; `clean` otherwise. Fisher's test takes answers as
    independent, and those of an item or a cluster are not: it errs towards `invalid`, and TOLERANCE bounds what that
    can cost.
    """
    by_arm: dict[str, list[Answer]] = {str(arm): [] for arm in expected_arms}
    for answer in answers:
        by_arm.setdefault(str(answer.arm), []).append(answer)
    arms = [_counts(arm, rows, level, clusters) for arm, rows in sorted(by_arm.items())]
    problems: list[str] = []
    if not arms:
        problems.append("There is not one answer to compare.")
    for arm in arms:
        problems += _problems_of(arm)
    for difference in rate_differences([arm for arm in arms if arm.asked]):
        if difference.matters and difference.p_adjusted < alpha:
            problems.append(
                f"{percent(difference.first_rate)} of the answers are {difference.what} in arm {difference.first} and "
                f"{percent(difference.second_rate)} in arm {difference.second} ({p_text(difference.p_adjusted)} after "
                f"Holm's correction): their accuracies differ for that reason too."
            )
    reasons = problems or [_all_clear(arms)]
    return ProtocolEvidence(
        verdict=Verdict.INVALID if problems else Verdict.CLEAN,
        reasons=tuple(reasons),
        arms=tuple(
            ArmAccuracy(
                arm=arm.arm,
                accuracy=arm.accuracy,
                n_items=arm.n_items,
                n_answers=arm.asked - arm.failed,
                n_invalid=arm.invalid,
                n_errors=arm.failed,
                n_truncated=arm.truncated,
                n_cut_short=arm.cut_short,
            )
            for arm in arms
        ),
    )


def rate_differences(arms: Sequence[ArmCounts]) -> tuple[RateDifference, ...]:
    """Every rate compared between every two arms; one family, corrected together.

    Truncated and invalid answers are counted among those that came back, failed ones among all.
    """
    compared = [
        (what, first, second, count_of(first), base_of(first), count_of(second), base_of(second))
        for first, second in itertools.combinations(arms, 2)
        for what, count_of, base_of in (
            ("truncated", _truncated, _returned),
            ("empty or unparsable", _invalid, _returned),
            ("failed", _failed, _asked),
        )
    ]
    adjusted = holm([fisher_two_sided(a, m, b, n) for _, _, _, a, m, b, n in compared])
    return tuple(
        RateDifference(what, first.arm, second.arm, a / m if m else 0.0, b / n if n else 0.0, p)
        for (what, first, second, a, m, b, n), p in zip(compared, adjusted, strict=True)
    )


def fisher_two_sided(first: int, first_of: int, second: int, second_of: int) -> float:
    """Fisher's exact test of two proportions: the chance of a table no likelier than this one, margins fixed."""
    drawn, total = first + second, first_of + second_of
    low, high = max(0, drawn - second_of), min(first_of, drawn)
    k = np.arange(low, high + 1, dtype=np.float64)
    logs = _log_choose(float(first_of), k) + _log_choose(float(second_of), drawn - k)
    mass = np.exp(logs - _log_choose(float(total), np.asarray([float(drawn)])))
    # Equal tables differ by rounding; scipy.stats.fisher_exact uses a relative tolerance as well.
    return min(1.0, float(mass[mass <= mass[first - low] * (1 + 1e-7)].sum()))


def _log_choose(n: float, k: FloatArray) -> FloatArray:
    logs: FloatArray = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return logs


def _truncated(arm: ArmCounts) -> int:
    return arm.truncated


def _invalid(arm: ArmCounts) -> int:
    return arm.invalid


def _failed(arm: ArmCounts) -> int:
    return arm.failed


def _asked(arm: ArmCounts) -> int:
    return arm.asked


def _returned(arm: ArmCounts) -> int:
    return arm.asked - arm.failed


def _counts(arm: str, rows: Sequence[Answer], level: float, clusters: Mapping[str, str]) -> ArmCounts:
    right: dict[str, int] = {}
    total: dict[str, int] = {}
    for row in rows:
        if row.outcome is not None:
            total[row.item_id] = total.get(row.item_id, 0) + 1
            right[row.item_id] = right.get(row.item_id, 0) + (row.outcome is Outcome.CORRECT)
    # Sorted, so that rows in another order give the same bytes.
    items = sorted(total)
    shares = np.asarray([right[item] / total[item] for item in items], dtype=np.float64)
    groups = clusters_among(items, clusters)
    return ArmCounts(
        arm=arm,
        asked=len(rows),
        truncated=sum(row.truncated for row in rows),
        cut_short=sum(row.cut_short for row in rows),
        invalid=sum(row.outcome is Outcome.INVALID for row in rows),
        failed=sum(row.outcome is None for row in rows),
        accuracy=mean_share(np.sort(shares), np.ones(shares.size, dtype=np.int64), level)
        if groups is None
        else clustered_share(shares, groups, level),
        n_items=len(total),
    )


def _problems_of(arm: ArmCounts) -> list[str]:
    if not arm.asked:
        return [f"Arm {arm.arm} has no answer."]
    returned = _returned(arm)
    problems = []
    if arm.failed > MAX_FAILED_SHARE * arm.asked:
        problems.append(
            f"{percent(arm.failed / arm.asked)} of the {counted(arm.asked, 'answer')} of arm {arm.arm} failed, more "
            f"than {percent(MAX_FAILED_SHARE)}: what is missing could hide what the audit looks for. Mend the "
            "endpoint and run the audit again."
        )
    if arm.cut_short > MAX_CUT_SHORT_SHARE * returned:
        problems.append(
            f"{percent(arm.cut_short / returned)} of the {counted(returned, 'answer')} of arm {arm.arm} were cut at "
            f"the token limit before an answer stood in them, more than {percent(MAX_CUT_SHORT_SHARE)}: what the "
            f"model would have answered is not known. {RAISE_THE_LIMIT}"
        )
    if returned and arm.invalid > MAX_INVALID_SHARE * returned:
        problems.append(
            f"{percent(arm.invalid / returned)} of the {counted(returned, 'answer')} of arm {arm.arm} are empty or "
            "unparsable: look at the prompt template, the token limit and the extractor."
        )
    return problems


def _all_clear(arms: Sequence[ArmCounts]) -> str:
    each = ", ".join(f"{arm.arm} {arm.truncated:,} / {arm.invalid:,} / {arm.failed:,} of {arm.asked:,}" for arm in arms)
    return (
        "Truncated / empty or unparsable / failed answers do not differ between the arms beyond chance and "
        f"{percent(TOLERANCE)}: {each}."
    )
