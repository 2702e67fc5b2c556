"""The part of the report's page that shows control items beside the benchmark."""

from __future__ import annotations

from typing import Final

from proctor.domain.channel_results import Section
from proctor.domain.evidence import ArmAccuracy, ControlItems, Estimate, PerturbationEvidence
from proctor.domain.trial import CONTROL_ARMS
from proctor.scorer.page import phrases

_COLUMNS: Final = ("Items", "Canonical", "Reworded", "Cost of rewording", "In both wordings")


def control_section(found: PerturbationEvidence) -> Section | None:
    """Accuracy in both wordings, and the difference; None where the suite has no control items."""
    control = found.control_items
    if control is None:
        return None
    arms = {arm.arm: arm for arm in control.arms}
    canonical, reworded = (_of_arm(arms.get(str(arm))) for arm in CONTROL_ARMS)
    return Section(
        title="The benchmark and control items",
        introduction=f"{phrases.counted(control.n_selected, 'control item', 'control items')}, which the model cannot "
        f"have seen, went through the same rewording and the same gate; {phrases.count(control.n_reworded)} of them "
        f"got a rewording, and {phrases.count(control.n_items)} were answered in both wordings. What rewording costs "
        "there is no memory. Only what it costs beyond that is held against the limits.",
        label="What rewording costs on the benchmark and on control items",
        columns=_COLUMNS,
        rows=(
            (
                "the benchmark",
                _percent(found.accuracy_canonical),
                _percent(found.accuracy_perturbed),
                _points(control.excess.inflation_benchmark),
                phrases.count(found.n_items),
            ),
            (
                "control items",
                canonical,
                reworded,
                _points(control.excess.inflation_control),
                phrases.count(control.n_items),
            ),
        ),
        caption=_caption(control),
    )


def _caption(control: ControlItems) -> str:
    if problems := (*control.problems, *control.incomparable):
        return " ".join(problems)
    excess = control.excess
    return (
        f"Beyond the control items the benchmark lost {_points(excess.excess_inflation)}, in Contamination Score "
        f"{_score(excess.excess_score)}; p {phrases.p_value(excess.p_value)}, the larger of that in points "
        f"({phrases.p_value(excess.p_points)}) and that as a share of right answers "
        f"({phrases.p_value(excess.p_share)}). An excess of {phrases.points(excess.minimum_detectable_points)} is "
        "found with 80 % power."
    )


def _of_arm(arm: ArmAccuracy | None) -> str:
    return "–" if arm is None else _percent(arm.accuracy)


def _percent(estimate: Estimate) -> str:
    if estimate.value is None:
        return "–"
    return f"{phrases.percent(estimate.value)} ({phrases.interval(estimate, digits=1, scale=100)})"


def _points(estimate: Estimate) -> str:
    if estimate.value is None:
        return "undefined"
    return f"{phrases.rounded(estimate.value, 1)} points ({phrases.interval(estimate, digits=1)})"


def _score(estimate: Estimate) -> str:
    if estimate.value is None:
        return "undefined"
    return f"{phrases.rounded(estimate.value, 3)} ({phrases.interval(estimate, digits=3)})"
