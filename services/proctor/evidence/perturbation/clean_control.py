"""A clean model as the control of an audit: which one, what was lost beyond it, and what that means for the limits.

Rewording that is simply harder looks like memory. Where a clean model answered the same benchmark in rewordings by the
same strategy, what it lost is no memory, and difference-in-differences (`control.controlled_inflation`) takes it off.

Beside that test's own assumptions this one has two. Rewording costs the audited model as much as the control; no two
models are quite alike in that, so an excess counts where it is past the suite's *limit*, not where it is past 0. And
the control is clean: a person's word. So a control makes the gate only milder by one step or stricter by one step, and
never opens it: it can turn a block into a review, or an approval into a review.

Where both models were asked the same rewordings the samples share their items, whose difficulty moves both costs the
same way. The test takes them for independent, so its p-value and bounds are then conservative.
"""

from __future__ import annotations

from typing import NamedTuple

from proctor.domain.canonical import digest_matches
from proctor.domain.decision import Reason
from proctor.domain.evidence import CleanControl, Estimate
from proctor.domain.fidelity import Fidelity
from proctor.domain.strategies import MODEL_STRATEGIES, STRATEGIES
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.clusters import Compared
from proctor.evidence.intervals import wilson
from proctor.evidence.perturbation.control import controlled_inflation
from proctor.evidence.written_numbers import as_score, counted, in_points, p_text, points

NULL_HYPOTHESIS = (
    "Rewording costs the audited model as much as it cost the clean model: as many points of accuracy, or as large a "
    "share of its right answers."
)
#: Strategies whose name does not say who rewords: a file of anybody's, or one of many models.
_UNNAMED_REWORDERS = frozenset({*MODEL_STRATEGIES, "imported"})
#: The reason for each limit that D or the Contamination Score is past → that for the excess of the same.
_BEYOND = {
    "score_inflation_past_limit": "excess_inflation_past_limit",
    "contamination_score_past_limit": "excess_score_past_limit",
}


class OnRecord(NamedTuple):
    """The clean models on record, and what they are to be compared with."""

    measured: tuple[Fidelity, ...] = ()
    """All of one strategy on one benchmark."""
    model_digest: str = ""
    """Of the audited model."""
    rewordings: str = ""
    """Digest of the audit's rewordings."""


class ChosenControl(NamedTuple):
    """The clean model that an audit is held against; None where none on record can be."""

    fidelity: Fidelity | None = None
    same_rewordings: bool = False
    notes: tuple[str, ...] = ()
    """Why what is on record was passed over, in sentences."""


NONE_ON_RECORD = OnRecord()
NO_CONTROL = ChosenControl()


class Grounds(NamedTuple):
    """What limits and control come to together."""

    blocking: tuple[Reason, ...]
    doubts: tuple[Reason, ...]
    """What stands against approval, and does not block."""
    withheld: bool = False
    """Whether a limit is passed and the control alone keeps it from blocking."""


def choose_control(answers: PairedAnswers, on_record: OnRecord) -> ChosenControl:
    """The clean model whose cost of rewording is the best guess of the audited model's.

    The audited model itself is never its own control. Of the others, those that were asked the same rewordings go
    first; others by the same strategy count only where its name says who rewords. Of these the one whose *reworded*
    accuracy is nearest is taken: memory raises the canonical one. Ties go to more items, then to the smaller key.
    """
    notes = []
    measured = [one for one in on_record.measured if one.n_items]
    others = [one for one in measured if not _same(one.digest, on_record.model_digest)]
    if len(others) < len(measured):
        notes.append("What rewording cost this very model is on record and was not used: no model is its own control.")
    fitting = [one for one in others if one.variants == on_record.rewordings]
    same_rewordings = bool(fitting)
    if not same_rewordings:
        fitting = [one for one in others if all(map(_says_who_rewords, one.strategy.split("+")))]
        if others and not fitting:
            notes.append(
                f"{counted(len(others), 'clean model')} on record for this strategy and benchmark took no part: asked "
                "other rewordings, whose maker the strategy's name does not tell."
            )
    if answers.n == 0 or not fitting:
        return ChosenControl(notes=tuple(notes))
    ability = float((answers.right / answers.total).mean())

    def rank(one: Fidelity) -> tuple[float, int, str]:
        right = sum(pattern.items * pattern.right / pattern.total for pattern in one.patterns)
        return abs(right / one.n_items - ability), -one.n_items, one.key

    return ChosenControl(min(fitting, key=rank), same_rewordings, tuple(notes))


def _says_who_rewords(strategy: str) -> bool:
    """Whether the same name always means the same rewordings: a plug-in's next version may reword otherwise."""
    return strategy not in _UNNAMED_REWORDERS and STRATEGIES.origin(strategy) is None


def control_answers(fidelity: Fidelity) -> PairedAnswers:
    """A clean model's answers as a control sample; the items' identifiers are their numbers."""
    patterns = fidelity.patterns
    return PairedAnswers.of(
        [f"clean-{number}" for number in range(sum(pattern.items for pattern in patterns))],
        [pattern.canonical for pattern in patterns for _ in range(pattern.items)],
        [pattern.right for pattern in patterns for _ in range(pattern.items)],
        [pattern.total for pattern in patterns for _ in range(pattern.items)],
    )


def weigh_control(answers: Compared, chosen: ChosenControl, scoring: ScoringSection) -> CleanControl | None:
    """What the audited model lost beyond the clean one, at the suite's level; None without a clean one."""
    clean = chosen.fidelity
    if clean is None:
        return None
    level, sample = scoring.confidence_level, control_answers(clean)
    excess = controlled_inflation(answers, sample, level=level, alpha=scoring.significance_alpha).model_copy(
        update={"null_hypothesis": NULL_HYPOTHESIS}
    )
    which = "the same rewordings" if chosen.same_rewordings else "other rewordings by the same strategy"
    return CleanControl(
        model_id=clean.model_id,
        digest=clean.digest,
        digest_verified=clean.digest_verified,
        grounds=clean.grounds,
        own_decision=clean.own_decision,
        same_rewordings=chosen.same_rewordings,
        accuracy=wilson(int(sample.canonical.sum()), sample.n, level),
        excess=excess,
        conclusion=f"Over {counted(sample.n, 'item')} in {which}, rewording cost the clean model "
        f"{in_points(excess.inflation_control)}. Beyond that the audited model lost "
        f"{in_points(excess.excess_inflation)}, in Contamination Score {as_score(excess.excess_score)}; "
        f"{p_text(excess.p_value)}.",
    )


def limits_passed_beyond(
    control: CleanControl, scoring: ScoringSection, governance: GovernanceSection
) -> tuple[Reason, ...]:
    """A reason for each limit that the excess over the control is wholly past, significantly; empty for none."""
    excess, alpha = control.excess, scoring.significance_alpha
    if excess.p_value >= alpha:
        return ()
    found = []
    significant = f"and {p_text(excess.p_value)} is below {alpha:g}"
    if _past(excess.excess_inflation, governance.block_deployment_above_contaminated_pct):
        text = (
            f"Beyond the {in_points(excess.inflation_control)} that rewording cost the clean model "
            f"{control.model_id}, score inflation is {in_points(excess.excess_inflation)}, all past the limit of "
            f"{points(governance.block_deployment_above_contaminated_pct)}, {significant}."
        )
        found.append(Reason(code="excess_inflation_past_limit", text=text))
    if _past(excess.excess_score, scoring.contamination_threshold):
        text = (
            f"Beyond that of the clean model {control.model_id}, the Contamination Score is "
            f"{as_score(excess.excess_score)}, all past the limit of {scoring.contamination_threshold:g}, "
            f"{significant}."
        )
        found.append(Reason(code="excess_score_past_limit", text=text))
    return tuple(found)


def grounds(
    past: tuple[Reason, ...], control: CleanControl | None, scoring: ScoringSection, governance: GovernanceSection
) -> Grounds:
    """What blocks, and what stands against approval.

    Without a control, `past` blocks. With one, a limit blocks where the same estimate's excess over the control is
    past it too. A limit that is passed by the estimate alone, or by the excess alone, is a doubt: rewording may be
    harder than it looks for everybody, or easier for everybody, and only the control says so.

    Args:
        past: a reason for each limit that D or the Contamination Score is past, as `held.limits_passed` gives them.
    """
    if control is None:
        return Grounds(past, ())
    beyond = {reason.code: reason for reason in limits_passed_beyond(control, scoring, governance)}
    if not past:
        return Grounds((), tuple(beyond.values()))
    confirmed = [reason for reason in past if _BEYOND[reason.code] in beyond]
    if confirmed:
        return Grounds((*confirmed, *(beyond[_BEYOND[reason.code]] for reason in confirmed)), ())
    return Grounds((), (_not_beyond(control, scoring, governance),), withheld=True)


def _not_beyond(control: CleanControl, scoring: ScoringSection, governance: GovernanceSection) -> Reason:
    excess = control.excess
    return Reason(
        code="not_beyond_clean_control",
        text=f"Score inflation is {in_points(excess.inflation_benchmark)}, but rewording cost the clean model "
        f"{control.model_id} {in_points(excess.inflation_control)}. What goes beyond that, "
        f"{in_points(excess.excess_inflation)} and a Contamination Score of {as_score(excess.excess_score)} with "
        f"{p_text(excess.p_value)}, is not wholly past the limits of "
        f"{points(governance.block_deployment_above_contaminated_pct)} and {scoring.contamination_threshold:g}: "
        "rewordings that are simply harder may explain it.",
    )


def _past(estimate: Estimate, limit: float) -> bool:
    return estimate.low is not None and estimate.low > limit


def _same(one: str, other: str) -> bool:
    """Whether two digests, of which either may be a pinned prefix, name the same weights."""
    return one == other or digest_matches(one, other) or digest_matches(other, one)
