"""The gate's decision from an audit's evidence: intervals against limits, first match wins.

1. A required channel `invalid` or `not_audited` → review. An invalid protocol invalidates every comparison, so it
   counts as required always, and so does the perturbation channel, whose intervals the table is made of. Items that
   come in too few clusters → review: no interval of theirs is known to hold its level. A canonical accuracy that is
   not above chance by its interval → review: the model cannot do the benchmark, and nothing else is said. Control items
   that do not tell what rewording costs → review: the plain comparison does not take the place of the one that was
   asked for.
2. Block: a lower bound past its limit with p < alpha; or the article's rule where the suite asks for it by name.
   Where the suite has control items, what goes beyond theirs is what is held against the limits, here and below.
   Where a clean model is on record as a control, the excess over it must be past the same limit too.
3. Approve: both upper bounds within their limits, every required channel clean, and nothing past review. A control
   approves nothing that would not be approved without it, and stands against approval where the excess is past a limit.
4. Otherwise review, saying what sample would settle it.
"""

from __future__ import annotations

from proctor.domain.channels import ALWAYS_REQUIRED, REQUIRED_BY_PROFILE
from proctor.domain.decision import Decision, DecisionOutcome, Reason
from proctor.domain.evidence import Evidence, PerturbationEvidence, Verdict
from proctor.domain.suite import Suite
from proctor.evidence.clusters import too_few_clusters
from proctor.evidence.perturbation import chance
from proctor.evidence.perturbation.clean_control import Grounds, grounds
from proctor.evidence.perturbation.control_items import control_says_nothing
from proctor.evidence.perturbation.held import Held, limits_not_excluded, limits_passed
from proctor.evidence.written_numbers import as_score, counted, in_points, percent, points
from proctor.scorer.channels.registry import channels_of

_UNUSABLE = (Verdict.INVALID, Verdict.NOT_AUDITED)


def decide(evidence: Evidence, suite: Suite) -> Decision:
    """Decide on a suite. A missing or invalid input never approves; the deciding reason stands first.

    The scope, how far the evidence reaches past the wording, goes along and decides nothing by itself: a suite that
    wants more requires the channel.
    """
    return _decided(evidence, suite).model_copy(update={"scope": evidence.scope})


def _decided(evidence: Evidence, suite: Suite) -> Decision:
    unusable = unusable_channels(evidence, suite)
    result = evidence.perturbation
    if unusable or result is None:
        return Decision(outcome=DecisionOutcome.REVIEW, reasons=unusable)
    if unsaid := _nothing_said(result):
        return Decision(outcome=DecisionOutcome.REVIEW, reasons=unsaid)
    past_review = _past_review(result, suite)
    found = _grounds(result, suite)
    if found.blocking:
        return Decision(outcome=DecisionOutcome.BLOCK, reasons=found.blocking + past_review)
    doubts = (
        found.doubts
        + past_review
        + _other_channels(evidence, suite)
        + limits_not_excluded(Held.of(result), suite.scoring)
    ) or _perhaps_past_review(result, suite)
    if not doubts:
        return Decision(outcome=DecisionOutcome.APPROVE, reasons=_approving(result, suite))
    settling = _another_strategy(result) if found.withheld else _what_would_settle(result, suite)
    return Decision(outcome=DecisionOutcome.REVIEW, reasons=doubts + settling)


def _nothing_said(result: PerturbationEvidence) -> tuple[Reason, ...]:
    """Why the comparison says nothing, whatever its figures are; empty where it says something."""
    unable = result.not_above_chance
    return (
        too_few_clusters(result.clusters)
        or (() if unable is None else (Reason(code=chance.CODE, text=unable),))
        or control_says_nothing(result.control_items)
    )


def unusable_channels(evidence: Evidence, suite: Suite) -> tuple[Reason, ...]:
    """A reason for each required channel that is invalid or was not audited; empty where all of them say something."""
    reasons = []
    # An invalid protocol is the cause of what follows from it, so it is named first.
    for channel in sorted(suite.required_channels, key=lambda channel: (channel != "protocol", channel)):
        verdict = evidence.verdict_of(channel)
        if verdict is Verdict.NOT_AUDITED:
            why = evidence.not_audited.get(channel, "it did not run").strip().rstrip(".")
            named = f"The {channel} channel{_required_by_profile(channel, suite)}"
            reasons.append(Reason(code=f"{channel}_not_audited", text=f"{named} was not audited: {why}."))
        elif verdict is Verdict.INVALID:
            found = evidence.result_of(channel)
            assert found is not None
            reasons.append(
                Reason(code=f"{channel}_invalid", text=f"The {channel} channel is invalid. {' '.join(found.reasons)}")
            )
    return tuple(reasons)


def _required_by_profile(channel: str, suite: Suite) -> str:
    profile = suite.governance.profile
    return f", which the profile {profile} requires," if channel in REQUIRED_BY_PROFILE.get(profile, ()) else ""


def _grounds(result: PerturbationEvidence, suite: Suite) -> Grounds:
    scoring, governance = suite.scoring, suite.governance
    if scoring.method == "per_item_t_test":
        # The article knows no control, so none withholds its block.
        return Grounds(_article_rule(result, suite), grounds((), result.control, scoring, governance).doubts)
    past = limits_passed(Held.of(result), scoring, governance)
    return grounds(past, result.control, scoring, governance)


def _article_rule(result: PerturbationEvidence, suite: Suite) -> tuple[Reason, ...]:
    rule = result.per_item_t_test
    if not rule.would_block:
        return ()
    return (
        Reason(
            code="per_item_t_test_past_limit",
            text="The suite blocks by the article's per-item t-test: it flags "
            f"{counted(len(rule.flagged_items), 'item')} ({rule.flagged_pct:.2f} %), past the limit of "
            f"{suite.governance.block_deployment_above_contaminated_pct:g} %. {rule.note}",
        ),
    )


def _past_review(result: PerturbationEvidence, suite: Suite) -> tuple[Reason, ...]:
    held, limit = Held.of(result), suite.governance.review_required_above_cs
    score = held.score
    if score.value is None or score.value <= limit:
        return ()
    return (
        Reason(
            code="contamination_score_past_review_limit",
            text=f"The Contamination Score{held.beyond} is {as_score(score)}, past the suite's review limit of "
            f"{limit:g}.",
        ),
    )


def _perhaps_past_review(result: PerturbationEvidence, suite: Suite) -> tuple[Reason, ...]:
    """What stands between approval and a review limit below the threshold: approval goes by upper bounds."""
    held, limit = Held.of(result), suite.governance.review_required_above_cs
    score = held.score
    if score.high is not None and score.high <= limit:
        return ()
    return (
        Reason(
            code="review_limit_not_excluded",
            text=f"The Contamination Score{held.beyond} is {as_score(score)}; its upper bound is not within "
            f"{limit:g}, above which the suite requires a review.",
        ),
    )


def _other_channels(evidence: Evidence, suite: Suite) -> tuple[Reason, ...]:
    """Channels beside those that the table is made of that stand against approval."""
    reasons = []
    for channel in dict.fromkeys((*channels_of(suite), *evidence.others)):
        if channel in ALWAYS_REQUIRED:
            continue
        verdict, result = evidence.verdict_of(channel), evidence.result_of(channel)
        lacking = channel in suite.required_channels and (result is None or not result.allows_approval)
        if verdict is Verdict.CONTAMINATED or lacking:
            said = None if result is None else result.against
            reasons.append(Reason(code=f"{channel}_{verdict}", text=said or f"The {channel} channel says {verdict}."))
    return tuple(reasons)


def _approving(result: PerturbationEvidence, suite: Suite) -> tuple[Reason, ...]:
    scoring, held = suite.scoring, Held.of(result)
    return (
        Reason(
            code="within_limits",
            text=f"On {counted(result.n_items, 'item')} score inflation{held.beyond} is {in_points(held.inflation)}, "
            f"and its upper bound is within the {points(scoring.max_allowed_contaminated_items_pct)} that the suite "
            f"allows; the Contamination Score{held.beyond} is {as_score(held.score)}, and its upper bound is within "
            f"{scoring.contamination_threshold:g}.",
        ),
    )


def _another_strategy(result: PerturbationEvidence) -> tuple[Reason, ...]:
    """What would settle a review for which a control withheld the block."""
    assert result.control is not None
    detectable = points(result.control.excess.minimum_detectable_points)
    return (
        Reason(
            code="rewording_costs_clean_models",
            text="A strategy that costs a clean model less, or more items for both models, would tell memory from "
            f"harder rewordings: these two samples find an excess of {detectable} with 80 % power.",
        ),
    )


def _what_would_settle(result: PerturbationEvidence, suite: Suite) -> tuple[Reason, ...]:
    """What sample would turn this review into a decision."""
    held = Held.of(result)
    asked, needed = result.n_items, held.needed
    inflation, score = held.inflation.value, held.score.value
    beside = "" if result.control_items is None else ", with as many more control items,"
    further = beside if result.clusters is None else ", in further clusters of these sizes,"
    if needed is not None and needed > asked:
        return (
            Reason(
                code="too_few_items",
                text=f"A sample of {counted(asked, 'item')} is too small. With answers in these proportions about "
                f"{counted(needed, 'item')}{further} would bring both upper bounds within their limits; plan for "
                "more, because a fresh sample varies.",
            ),
        )
    if needed is None and inflation is not None and score is not None:
        limit = points(suite.scoring.max_allowed_contaminated_items_pct)
        return (
            Reason(
                code="estimate_past_allowance",
                text="More items of this kind would not approve the model: the estimates themselves "
                f"({points(inflation)}; Contamination Score {score:.3f}{held.beyond}) are not within what the suite "
                f"allows ({limit}; {suite.scoring.contamination_threshold:g}). More items, or more rewordings an item, "
                "would tell whether it is to be blocked; this sample finds no less than "
                f"{percent(held.detectable / 100)} with 80 % power.",
            ),
        )
    if needed is None:
        return (
            Reason(
                code="control_accuracy_too_low",
                text="No canonical answer to a control item is right, so what rewording costs without memory cannot be "
                "told: name control items that the model can answer.",
            ),
        )
    return ()
