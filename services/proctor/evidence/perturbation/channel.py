"""The perturbation channel: canonical wording against admitted rewordings, suspicious when the canonical is better.

Null hypothesis: over items, mean accuracy on the canonical wording is no higher than on the rewordings (D <= 0). The
p-value is the larger of two: the exact stratified test, which needs wordings to be exchangeable within an item, and
the studentised mean, which needs many items. It holds its size where an item's rewordings depend on each other. Where
items come in clusters, the mean is studentised over these, and so is every interval (`evidence.clusters`); with fewer
than `MIN_CLUSTERS` of them the channel is `inconclusive` whatever they say.

It cannot tell memory from a rewording that is simply harder, so the p-value alone decides nothing: verdicts come from
intervals. `clean` is a claim of equivalence (both upper bounds within the suite's limits, as in two one-sided tests),
never of a test that found nothing; a sample too small to find what the limits allow stays `inconclusive`, and so does
a model that answers no better than chance (`chance`). Where the
suite has control items, what goes beyond theirs is held against the limits in place of D and the Contamination Score
(`control_items`). Else, where a clean model is on record as a control, both `contaminated` and `clean` need it to agree
(`clean_control`).
"""

from __future__ import annotations

from collections.abc import Sequence

from proctor.domain.evidence import CleanControl, ControlItems, Estimate, PerturbationEvidence, Verdict
from proctor.domain.levels import POWER
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.evidence.answers import Exclusion, PairedAnswers
from proctor.evidence.clusters import too_few_clusters
from proctor.evidence.intervals import leaked_share
from proctor.evidence.perturbation.chance import not_above_chance
from proctor.evidence.perturbation.clean_control import NO_CONTROL, ChosenControl, grounds, weigh_control
from proctor.evidence.perturbation.control_items import control_says_nothing
from proctor.evidence.perturbation.held import Held, limits_not_excluded, limits_passed, within_limits
from proctor.evidence.perturbation.measured import measured, measured_replicates
from proctor.evidence.perturbation.per_item_t_test import per_item_t_test
from proctor.evidence.perturbation.power import items_needed_to_approve
from proctor.evidence.perturbation.ranking import ranked_items
from proctor.evidence.perturbation.replicates import ranked_replicates
from proctor.evidence.perturbation.singletons import singletons
from proctor.evidence.replicated_answers import ReplicatedAnswers
from proctor.evidence.written_numbers import counted, p_text, points

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
    control_items: ControlItems | None = None,
    repeated: ReplicatedAnswers | None = None,
) -> PerturbationEvidence:
    """Weigh paired answers against a suite's limits.

    `contaminated` where D's lower bound is past `block_deployment_above_contaminated_pct`, or the Contamination
    Score's past `contamination_threshold`, and p < `significance_alpha`; `clean` where both upper bounds are within
    `max_allowed_contaminated_items_pct` and `contamination_threshold`; `invalid` without a single paired item; else
    `inconclusive`, also where items come in fewer than `MIN_CLUSTERS` clusters, and where the canonical accuracy is not
    above chance (`not_above_chance`), of which nothing else is said then. Items are flagged only in a
    contaminated sample: the first ⌊lower bound of D × n⌋ of the ranking.

    With control items all of that is said of what goes beyond theirs; where these say nothing it is `inconclusive`, and
    `invalid` where their own arms are not comparable. With a clean model as control, `contaminated` needs the excess
    over it past the same limit too, and `clean` that no excess is. With either, items are flagged by the smaller of the
    lower bounds of D and of its excess.

    Where each wording was asked several times, `repeated` has all answers and is what decides, by item; `answers` are
    the first to each wording, of which only what is descriptive is said (the article's rule, items right in one wording
    alone).
    """
    level, alpha = scoring.confidence_level, scoring.significance_alpha
    if repeated is None:
        sample = measured(answers, level=level, alpha=alpha)
    else:
        sample = measured_replicates(repeated, level=level, alpha=alpha)
    inflation, score, p_value, detectable = sample.inflation, sample.score, sample.p_value, sample.detectable
    counts = None if sample.clusters is None else sample.clusters.counted
    control = weigh_control(answers if repeated is None else repeated, chosen, scoring)
    needed = items_needed_to_approve(
        sample.sums,
        max_inflation=scoring.max_allowed_contaminated_items_pct / 100,
        max_contamination_score=scoring.contamination_threshold,
        level=level,
    )
    held = Held(inflation, score, p_value, detectable, needed)
    if control_items is not None:
        held = Held.beyond_control(control_items)
    found = grounds(limits_passed(held, scoring, governance), control, scoring, governance)
    too_few = too_few_clusters(counts)
    # Of too few clusters no interval is known to hold its level.
    unable = None
    if sample.n and not too_few:
        unable = not_above_chance(sample.n, sample.canonical, score, guess_chance)
    verdict: Verdict
    reasons: tuple[str, ...]
    if sample.n == 0:
        verdict, reasons = Verdict.INVALID, ("No item has both a canonical and a reworded answer.",)
    elif control_items is not None and control_items.incomparable:
        verdict, reasons = Verdict.INVALID, ("Of the control items: " + control_items.incomparable[0],)
        reasons += control_items.incomparable[1:]
    elif too_few:
        verdict, reasons = Verdict.INCONCLUSIVE, tuple(reason.text for reason in too_few)
    elif unable is not None:
        verdict, reasons = Verdict.INCONCLUSIVE, (unable,)
    elif silent := control_says_nothing(control_items):
        verdict, reasons = Verdict.INCONCLUSIVE, tuple(reason.text for reason in silent)
    elif found.blocking:
        verdict, reasons = Verdict.CONTAMINATED, tuple(reason.text for reason in found.blocking)
    elif not (open_questions := found.doubts + limits_not_excluded(held, scoring)):
        verdict, reasons = Verdict.CLEAN, (within_limits(held, scoring),)
    else:
        verdict, reasons = Verdict.INCONCLUSIVE, tuple(reason.text for reason in open_questions)
        if held.detectable > scoring.max_allowed_contaminated_items_pct:
            beside = "" if control_items is None else f" and {counted(control_items.n_items, 'control item')}"
            reasons += (
                f"With {counted(sample.n, 'item')}{beside} the smallest inflation{held.beyond} found with "
                f"{100 * POWER:.0f} % power is {points(held.detectable)}, more than the "
                f"{points(scoring.max_allowed_contaminated_items_pct)} that the suite allows, so a test that finds "
                f"nothing ({p_text(held.p_value)}) is no sign of a clean model.",
            )
    if sample.excluded:
        reasons += (_exclusions(sample.excluded),)
    if control_items is not None and not control_items.problems and unable is None:
        reasons += (control_items.conclusion,)
    reasons += chosen.notes
    flagged = _flagged_share(inflation, control, control_items) if verdict is Verdict.CONTAMINATED else 0.0
    return PerturbationEvidence(
        verdict=verdict,
        reasons=reasons,
        null_hypothesis=NULL_HYPOTHESIS,
        score_inflation=inflation,
        contamination_score=score,
        leaked_share=leaked_share(held.inflation, guess_chance),
        p_value=p_value,
        p_exchangeability=sample.exact.p_value,
        p_exchangeability_method=sample.exact.method,
        p_studentised=sample.studentised,
        minimum_detectable_points=detectable,
        accuracy_canonical=sample.canonical,
        accuracy_perturbed=sample.reworded,
        n_items=sample.n,
        n_variants=sample.n_variants,
        items=(
            ranked_items(answers, flagged_at_least=flagged)
            if repeated is None
            else ranked_replicates(repeated, flagged_at_least=flagged)
        ),
        per_item_t_test=per_item_t_test(
            answers,
            threshold=scoring.contamination_threshold,
            alpha=alpha,
            block_above_pct=governance.block_deployment_above_contaminated_pct,
        ),
        singletons=singletons(answers),
        items_needed_to_approve=needed,
        not_above_chance=unable,
        control=control,
        control_items=control_items,
        clusters=counts,
    )


def _flagged_share(inflation: Estimate, control: CleanControl | None, control_items: ControlItems | None) -> float:
    excesses = [one.excess.excess_inflation.low for one in (control, control_items) if one is not None]
    bounds = (inflation.low, *excesses)
    return max(0.0, min(bound for bound in bounds if bound is not None)) / 100


def _exclusions(excluded: Sequence[Exclusion]) -> str:
    reasons: dict[str, int] = {}
    for exclusion in excluded:
        reasons[exclusion.reason] = reasons.get(exclusion.reason, 0) + 1
    listed = "; ".join(f"{count:,}: {reason}" for reason, count in sorted(reasons.items()))
    return f"{counted(len(excluded), 'item')} could not be paired and took no part ({listed})."
