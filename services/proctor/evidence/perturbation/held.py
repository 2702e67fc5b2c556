"""The estimates that a suite's limits are held against: plain ones, or what goes beyond control items."""

from __future__ import annotations

from typing import NamedTuple

from proctor.domain.decision import Reason
from proctor.domain.evidence import ControlItems, Estimate, PerturbationEvidence
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.evidence.written_numbers import as_score, in_points, p_text, points

_BEYOND = " beyond that of the control items"


class Held(NamedTuple):
    """Score inflation, Contamination Score and p, with what their sample could find and would take."""

    inflation: Estimate
    score: Estimate
    p_value: float
    detectable: float
    """Smallest inflation of the kind, in points, that is found with 80 % power."""
    needed: int | None
    """Benchmark items that would bring both upper bounds within their limits; None: never."""
    beyond: str = ""
    """What follows the estimates' names in a sentence."""

    @classmethod
    def of(cls, found: PerturbationEvidence) -> Held:
        """Those of a channel's result: the difference where it has control items, and never the plain ones then."""
        if found.control_items is not None:
            return cls.beyond_control(found.control_items)
        return cls(
            found.score_inflation,
            found.contamination_score,
            found.p_value,
            found.minimum_detectable_points,
            found.items_needed_to_approve,
        )

    @classmethod
    def beyond_control(cls, control: ControlItems) -> Held:
        """Benchmark minus control items, with the noise of both samples."""
        excess = control.excess
        return cls(
            excess.excess_inflation,
            excess.excess_score,
            excess.p_value,
            excess.minimum_detectable_points,
            control.items_needed_to_approve,
            _BEYOND,
        )


def with_p_value(found: PerturbationEvidence, p_value: float) -> PerturbationEvidence:
    """A channel's result with another p of what is held against the limits."""
    control = found.control_items
    if control is None:
        return found.model_copy(update={"p_value": p_value})
    excess = control.excess.model_copy(update={"p_value": p_value})
    return found.model_copy(update={"control_items": control.model_copy(update={"excess": excess})})


def limits_passed(held: Held, scoring: ScoringSection, governance: GovernanceSection) -> tuple[Reason, ...]:
    """A reason for each limit whose wrong side the whole interval is on, significantly; empty for none."""
    if held.p_value >= scoring.significance_alpha:
        return ()
    found = []
    significant = f"and {p_text(held.p_value)} is below {scoring.significance_alpha:g}"
    if held.inflation.low is not None and held.inflation.low > governance.block_deployment_above_contaminated_pct:
        limit = points(governance.block_deployment_above_contaminated_pct)
        text = (
            f"Score inflation{held.beyond} is {in_points(held.inflation)}, all past the limit of {limit}, "
            f"{significant}."
        )
        found.append(Reason(code="score_inflation_past_limit", text=text))
    if held.score.low is not None and held.score.low > scoring.contamination_threshold:
        limit = f"{scoring.contamination_threshold:g}"
        text = (
            f"The Contamination Score{held.beyond} is {as_score(held.score)}, all past the limit of {limit}, "
            f"{significant}."
        )
        found.append(Reason(code="contamination_score_past_limit", text=text))
    return tuple(found)


def limits_not_excluded(held: Held, scoring: ScoringSection) -> tuple[Reason, ...]:
    """A reason for each limit that the interval does not stay within; empty where both hold."""
    found = []
    inflation, score = held.inflation, held.score
    if inflation.high is None or inflation.high > scoring.max_allowed_contaminated_items_pct:
        limit = points(scoring.max_allowed_contaminated_items_pct)
        text = f"Score inflation{held.beyond} is {in_points(inflation)}; approval needs its upper bound within {limit}."
        found.append(Reason(code="score_inflation_not_excluded", text=text))
    if score.high is None or score.high > scoring.contamination_threshold:
        limit = f"{scoring.contamination_threshold:g}"
        text = f"Contamination Score{held.beyond} is {as_score(score)}; approval needs its upper bound within {limit}."
        found.append(Reason(code="contamination_score_not_excluded", text=text))
    return tuple(found)


def within_limits(held: Held, scoring: ScoringSection) -> str:
    """That both upper bounds are within their limits, as a sentence."""
    return (
        f"Score inflation{held.beyond} is {in_points(held.inflation)}, the Contamination Score{held.beyond} "
        f"{as_score(held.score)}: both upper bounds are within the suite's limits "
        f"({points(scoring.max_allowed_contaminated_items_pct)}; {scoring.contamination_threshold:g})."
    )
