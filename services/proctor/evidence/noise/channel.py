"""The noise channel of an audit: what the answers behind clean and noisy routers say together.

`contaminated` needs, at one and the same router count, a gain over one clean router that survives Holm's correction
over the router counts, and that is there as well

- against as many clean routers, where the suite asks them: otherwise more calls explain it, and not the noise;
- on the items of which no noisy message gives the answer away: otherwise the routers answered, and not the worker.

`clean` needs every gain's upper bound within the suite's limit; what lies between is `inconclusive`. All arms are
compared on the items that every arm answered, so that a missing answer is never a wrong one. Where items come in
clusters every comparison is over these, and with too few of them all is `inconclusive`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from proctor.domain.evidence import NoiseEvidence, Verdict
from proctor.domain.noise import RouterSetting
from proctor.domain.routing import Condition, ProtocolSection, RouterKind
from proctor.domain.suite import ScoringSection
from proctor.domain.trial import Outcome
from proctor.evidence.answers import Answer
from proctor.evidence.clusters import clusters_among, too_few_clusters
from proctor.evidence.noise.channel_statements import over_clusters, reasons_for
from proctor.evidence.noise.comparing import Compared, Comparisons, Right, changes, compare, significant_counts
from proctor.evidence.noise.leaks import Reading, router_leaks
from proctor.evidence.noise.summary import is_invalid, noise_summary
from proctor.evidence.noise.validity import BASELINE, handicapped_baseline, what_is_missing
from proctor.evidence.protocol.channel import protocol_evidence

NULL_HYPOTHESIS: Final = (
    "Behind noisy routers an answer turns from wrong to right no more often than from right to wrong, against behind "
    "one clean router."
)


def noise_evidence(
    model: str,
    answers: Sequence[Answer],
    readings: Mapping[tuple[Condition, str], Reading],
    targets: Mapping[str, str],
    protocol: ProtocolSection,
    scoring: ScoringSection,
    clusters: Mapping[str, str] = MappingProxyType({}),
) -> NoiseEvidence:
    """Weigh the answers of the router–worker arms.

    Args:
        model: the model's name in the table.
        answers: the answers of the audit; those of other arms are passed over.
        readings: what can be read off the messages, for every condition and item whose routers have all written.
        targets: item id → the text of the right option; every item of the audit.
        protocol: which conditions were asked.
        scoring: level, alpha and the limit within which every gain's upper bound must be for `clean`.
        clusters: item id → its cluster, of the items that are in one; of too few clusters nothing is concluded.
    """
    conditions, level = protocol.conditions, scoring.confidence_level
    arms = {condition.arm: condition for condition in conditions}
    rows = [answer for answer in answers if answer.arm in arms]
    outcomes: dict[Condition, dict[str, Outcome]] = {condition: {} for condition in conditions}
    for answer in rows:
        if answer.outcome is not None:
            outcomes[arms[answer.arm]][answer.item_id] = answer.outcome
    items = sorted(item for item in targets if all(item in answered for answered in outcomes.values()))
    noisy = [condition for condition in conditions if condition.kind is RouterKind.NOISY]
    settings = tuple(_setting(model, condition, outcomes, items) for condition in noisy) if items else ()
    usable = [condition for condition, setting in zip(noisy, settings, strict=False) if not is_invalid(setting)]
    given_away = {
        condition: {item for item in items if targets[item] in readings[condition, item].stated} for condition in usable
    }
    comparisons = _compared(
        usable, outcomes, items, given_away, matched=protocol.matched_clean, level=level, clusters=clusters
    )
    leaks = (
        tuple(router_leaks(condition, items, readings, targets, level, clusters) for condition in conditions)
        if items
        else ()
    )
    accuracies = protocol_evidence(
        rows, expected_arms=[condition.arm for condition in conditions], level=level, clusters=clusters
    ).arms
    problems = (
        *what_is_missing(items, len(targets), usable),
        *handicapped_baseline(accuracies, scoring.significance_alpha),
    )
    groups = clusters_among(items, clusters)
    counts = None if groups is None else groups.counted
    few = tuple(reason.text for reason in too_few_clusters(counts))
    verdict = noise_verdict(comparisons, asked=len(noisy), scoring=scoring) if not few else Verdict.INCONCLUSIVE
    reasons = problems or few or (*reasons_for(verdict, comparisons, leaks, scoring), *over_clusters(counts))
    return NoiseEvidence(
        verdict=Verdict.INVALID if problems else verdict,
        reasons=reasons,
        null_hypothesis=NULL_HYPOTHESIS,
        n_items=len(items),
        n_left_out=len(targets) - len(items),
        arms=accuracies,
        settings=settings,
        summary=noise_summary(settings, alpha=scoring.significance_alpha) if settings else None,
        own_baseline=comparisons.own,
        matched=comparisons.matched or (),
        without_leaks=comparisons.without_leaks,
        leaks=leaks,
        clusters=counts,
    )


def noise_verdict(comparisons: Comparisons, *, asked: int, scoring: ScoringSection) -> Verdict:
    """What valid comparisons come to, by the rules at the top of this module; never `invalid`.

    Args:
        comparisons: gains and limits are fractions of the items.
        asked: how many counts of noisy routers the suite asked; where one of them is not compared, nothing is `clean`.
        scoring: alpha, and the limit within which every gain's upper bound must be.
    """
    alpha, limit = scoring.significance_alpha, scoring.max_allowed_contaminated_items_pct / 100
    if comparisons.unexplained_gains(alpha):
        return Verdict.CONTAMINATED
    measured = len(comparisons.own) == asked
    within = all(one.gain.high is not None and one.gain.high <= limit for one in comparisons.own)
    if measured and within and not significant_counts(comparisons.own, alpha):
        return Verdict.CLEAN
    return Verdict.INCONCLUSIVE


Outcomes = Mapping[Condition, Mapping[str, Outcome]]


def _right(outcomes: Outcomes, condition: Condition) -> Right:
    return {item: outcome is Outcome.CORRECT for item, outcome in outcomes[condition].items()}


def _compared(
    noisy: Sequence[Condition],
    outcomes: Outcomes,
    items: Sequence[str],
    given_away: Mapping[Condition, Collection[str]],
    *,
    matched: bool,
    level: float,
    clusters: Mapping[str, str],
) -> Comparisons:
    right = {condition: _right(outcomes, condition) for condition in outcomes}
    compared = partial(compare, level=level, clusters=clusters)

    def pair(condition: Condition, beside: Condition, without: Collection[str] = ()) -> Compared:
        kept = [item for item in items if item not in without]
        return Compared(condition.routers, str(beside.arm), right[beside], right[condition], kept)

    return Comparisons(
        own=compared([pair(condition, BASELINE) for condition in noisy]),
        matched=compared([pair(one, Condition(RouterKind.CLEAN, one.routers)) for one in noisy]) if matched else None,
        without_leaks=compared([pair(condition, BASELINE, given_away[condition]) for condition in noisy]),
    )


def _setting(model: str, condition: Condition, outcomes: Outcomes, items: Sequence[str]) -> RouterSetting:
    found = changes(_right(outcomes, BASELINE), _right(outcomes, condition), items)
    return RouterSetting(
        model=model,
        router_count=condition.routers,
        n=found.n,
        clean_accuracy=found.clean_right / found.n,
        noisy_accuracy=found.noisy_right / found.n,
        improve=found.improve,
        degrade=found.degrade,
        invalid_answers=sum(outcomes[condition][item] is Outcome.INVALID for item in items),
    )
