"""The perturbation channel: canonical wording against admitted rewordings, suspicious when the canonical is better.

Null hypothesis: over items, mean accuracy on the canonical wording is no higher than on the rewordings (D <= 0). The
p-value is the larger of two: the exact stratified test, which needs wordings to be exchangeable within an item, and
the studentised mean, which needs many items. It holds its size where an item's rewordings depend on each other. Where
items come in clusters, the mean is studentised over these, and so is every interval (`evidence.clusters`); with fewer
than `MIN_CLUSTERS` of them the channel is `inconclusive` whatever they say.

It cannot tell memory from a rewording that is simply harder, so the p-value alone decides nothing: verdicts come from
intervals. `clean` is a claim of equivalence (both upper bounds within the suite's limits, as in two one-sided tests),
never of a test that found nothing; a sample too small to find what the limits allow stays `inconclusive`. Where a clean
model is on record as a control, both `contaminated` and `clean` need it to agree (`clean_control`).
"""

from __future__ import annotations

import numpy as np

from proctor.domain.decision import Reason
from proctor.domain.evidence import CleanControl, Estimate, PerturbationEvidence, Verdict
from proctor.domain.levels import POWER
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.clusters import (
    Clusters,
    clustered_share,
    clustered_test,
    clusters_of,
    sums_of,
    too_few_clusters,
)
from proctor.evidence.intervals import inflation_estimate, leaked_share, mean_share, score_estimate, wilson
from proctor.evidence.perturbation.clean_control import NO_CONTROL, ChosenControl, grounds, weigh_control
from proctor.evidence.perturbation.exchangeability import exchangeability_test
from proctor.evidence.perturbation.per_item_t_test import per_item_t_test
from proctor.evidence.perturbation.power import items_needed_to_approve, minimum_detectable_inflation
from proctor.evidence.perturbation.ranking import ranked_items
from proctor.evidence.perturbation.singletons import singletons
from proctor.evidence.perturbation.studentised import studentised_test
from proctor.evidence.written_numbers import as_score, counted, in_points, p_text, points

NULL_HYPOTHESIS = (
    "Over items, the model's mean accuracy on the canonical wording is no higher than on the admitted rewordings "
    "(score inflation D is at most 0)."
)


def perturbation_evidence(
    answers: PairedAnswers,
    scoring: ScoringSection,
    governance: GovernanceSection,
    guess_chance: float | None,
    chosen: ChosenControl = NO_CONTROL,
) -> PerturbationEvidence:
    """Weigh paired answers against a suite's limits.

    `contaminated` where D's lower bound is past `block_deployment_above_contaminated_pct`, or the Contamination
    Score's past `contamination_threshold`, and p < `significance_alpha`; `clean` where both upper bounds are within
    `max_allowed_contaminated_items_pct` and `contamination_threshold`; `invalid` without a single paired item; else
    `inconclusive`, also where items come in fewer than `MIN_CLUSTERS` clusters. Items are flagged only in a
    contaminated sample: the first ⌊lower bound of D × n⌋ of the ranking.

    With a control, `contaminated` needs the excess over it past the same limit too, and `clean` that no excess is;
    items are flagged by the smaller of the lower bounds of D and of its excess.
    """
    level, alpha = scoring.confidence_level, scoring.significance_alpha
    sums, clusters = sums_of(answers), clusters_of(answers)
    inflation, score = inflation_estimate(sums, level), score_estimate(sums, level)
    exact = exchangeability_test(answers)
    studentised = studentised_test(answers) if clusters is None else clustered_test(answers.differences, clusters)
    p_value = max(exact.p_value, studentised)
    counts = None if clusters is None else clusters.counted
    detectable = 100 * minimum_detectable_inflation(sums, alpha=alpha)
    control = weigh_control(answers, chosen, scoring)
    canonical, reworded = accuracies(answers, clusters, level)
    found = grounds(limits_passed(inflation, score, p_value, scoring, governance), control, scoring, governance)
    verdict: Verdict
    reasons: tuple[str, ...]
    if answers.n == 0:
        verdict, reasons = Verdict.INVALID, ("No item has both a canonical and a reworded answer.",)
    elif too_few := too_few_clusters(counts):
        verdict, reasons = Verdict.INCONCLUSIVE, tuple(reason.text for reason in too_few)
    elif found.blocking:
        verdict, reasons = Verdict.CONTAMINATED, tuple(reason.text for reason in found.blocking)
    elif not (open_questions := found.doubts + limits_not_excluded(inflation, score, scoring)):
        verdict, reasons = Verdict.CLEAN, (_within(inflation, score, scoring),)
    else:
        verdict, reasons = Verdict.INCONCLUSIVE, tuple(reason.text for reason in open_questions)
        if detectable > scoring.max_allowed_contaminated_items_pct:
            reasons += (
                f"With {counted(answers.n, 'item')} the smallest inflation found with {100 * POWER:.0f} % power is "
                f"{points(detectable)}, more than the {points(scoring.max_allowed_contaminated_items_pct)} that the "
                f"suite allows, so a test that finds nothing ({p_text(p_value)}) is no sign of a clean model.",
            )
    if answers.excluded:
        reasons += (_exclusions(answers),)
    reasons += chosen.notes
    return PerturbationEvidence(
        verdict=verdict,
        reasons=reasons,
        null_hypothesis=NULL_HYPOTHESIS,
        score_inflation=inflation,
        contamination_score=score,
        leaked_share=leaked_share(inflation, guess_chance),
        p_value=p_value,
        p_exchangeability=exact.p_value,
        p_exchangeability_method=exact.method,
        p_studentised=studentised,
        minimum_detectable_points=detectable,
        accuracy_canonical=canonical,
        accuracy_perturbed=reworded,
        n_items=answers.n,
        n_variants=int(answers.total.max()) if answers.n else 0,
        items=ranked_items(
            answers, flagged_at_least=_flagged_share(inflation, control) if verdict is Verdict.CONTAMINATED else 0.0
        ),
        per_item_t_test=per_item_t_test(
            answers,
            threshold=scoring.contamination_threshold,
            alpha=alpha,
            block_above_pct=governance.block_deployment_above_contaminated_pct,
        ),
        singletons=singletons(answers),
        items_needed_to_approve=items_needed_to_approve(
            sums,
            max_inflation=scoring.max_allowed_contaminated_items_pct / 100,
            max_contamination_score=scoring.contamination_threshold,
            level=level,
        ),
        control=control,
        clusters=counts,
    )


def accuracies(answers: PairedAnswers, clusters: Clusters | None, level: float) -> tuple[Estimate, Estimate]:
    """Canonical and reworded accuracy."""
    if clusters is None:
        canonical = wilson(int(np.count_nonzero(answers.canonical)), answers.n, level)
        return canonical, mean_share(answers.patterns.reworded_share, answers.patterns.counts, level)
    return (
        clustered_share(answers.canonical.astype(np.float64), clusters, level),
        clustered_share(answers.right / answers.total, clusters, level),
    )


def limits_passed(
    inflation: Estimate, score: Estimate, p_value: float, scoring: ScoringSection, governance: GovernanceSection
) -> tuple[Reason, ...]:
    """A reason for each limit whose wrong side the whole interval is on, significantly; empty for none."""
    if p_value >= scoring.significance_alpha:
        return ()
    found = []
    significant = f"and {p_text(p_value)} is below {scoring.significance_alpha:g}"
    if inflation.low is not None and inflation.low > governance.block_deployment_above_contaminated_pct:
        limit = points(governance.block_deployment_above_contaminated_pct)
        text = f"Score inflation is {in_points(inflation)}, all past the limit of {limit}, {significant}."
        found.append(Reason(code="score_inflation_past_limit", text=text))
    if score.low is not None and score.low > scoring.contamination_threshold:
        limit = f"{scoring.contamination_threshold:g}"
        text = f"The Contamination Score is {as_score(score)}, all past the limit of {limit}, {significant}."
        found.append(Reason(code="contamination_score_past_limit", text=text))
    return tuple(found)


def limits_not_excluded(inflation: Estimate, score: Estimate, scoring: ScoringSection) -> tuple[Reason, ...]:
    """A reason for each limit that the interval does not stay within; empty where both hold."""
    found = []
    if inflation.high is None or inflation.high > scoring.max_allowed_contaminated_items_pct:
        limit = points(scoring.max_allowed_contaminated_items_pct)
        text = f"Score inflation is {in_points(inflation)}; approval needs its upper bound within {limit}."
        found.append(Reason(code="score_inflation_not_excluded", text=text))
    if score.high is None or score.high > scoring.contamination_threshold:
        limit = f"{scoring.contamination_threshold:g}"
        text = f"Contamination Score is {as_score(score)}; approval needs its upper bound within {limit}."
        found.append(Reason(code="contamination_score_not_excluded", text=text))
    return tuple(found)


def _flagged_share(inflation: Estimate, control: CleanControl | None) -> float:
    bounds = (inflation.low, control.excess.excess_inflation.low if control is not None else None)
    return max(0.0, min(bound for bound in bounds if bound is not None)) / 100


def _within(inflation: Estimate, score: Estimate, scoring: ScoringSection) -> str:
    return (
        f"Score inflation is {in_points(inflation)}, the Contamination Score {as_score(score)}: both upper bounds are "
        f"within the suite's limits ({points(scoring.max_allowed_contaminated_items_pct)}; "
        f"{scoring.contamination_threshold:g})."
    )


def _exclusions(answers: PairedAnswers) -> str:
    reasons: dict[str, int] = {}
    for exclusion in answers.excluded:
        reasons[exclusion.reason] = reasons.get(exclusion.reason, 0) + 1
    listed = "; ".join(f"{count:,}: {reason}" for reason, count in sorted(reasons.items()))
    return f"{counted(len(answers.excluded), 'item')} could not be paired and took no part ({listed})."
