"""The fresh channel: the benchmark against fresh items of the same kind, and a panel of reference models."""

from __future__ import annotations

from typing import Final

from proctor.domain.channel_results import ChannelEvidence, Section
from proctor.domain.evidence import FreshEvidence
from proctor.domain.limitation import Limitation
from proctor.domain.suite import Suite
from proctor.domain.trial import Arm
from proctor.evidence.answers import cluster_labels, guess_chance
from proctor.evidence.fresh.arms import ARMS, FreshLimits, weigh_arms
from proctor.evidence.fresh.statements import null_hypothesis
from proctor.scorer.channels.channel import Channel, ChannelInputs, NotAudited
from proctor.scorer.page import phrases

_COLUMNS: Final = ("Asked", "Accuracy", "Items", "Truncated", "Unreadable", "Missing")
_NAMES: Final = {Arm.CANONICAL: "the benchmark", Arm.FRESH: "fresh items"}


class FreshChannel(Channel):
    """Suspicious when the benchmark is answered better than fresh items of the same kind lead to expect."""

    compares = (
        "The benchmark against newly written items of the same kind. Suspicious when the benchmark is answered better."
    )
    null_hypothesis = null_hypothesis(0)
    needs = "answers to fresh items of the same kind, which the suite's fresh_config names"
    gap = (
        "No newly written questions of the same kind were asked, so a model that has learned the benchmark in every "
        "wording would not stand out."
    )

    def weigh(self, inputs: ChannelInputs) -> FreshEvidence | NotAudited:
        """Lay the canonical arm beside the fresh one and the panel, and weigh them."""
        if inputs.fresh is None:
            return NotAudited("no freshly written items were given")
        suite = inputs.suite
        return weigh_arms(
            # Fresh items are asked once, so an item of the benchmark counts by its first answer.
            inputs.rows.firsts().answers_in(ARMS),
            FreshLimits(
                allowed_points=suite.scoring.max_allowed_contaminated_items_pct,
                block_points=suite.governance.block_deployment_above_contaminated_pct,
                alpha=suite.scoring.significance_alpha,
                level=suite.scoring.confidence_level,
                guess_chance=guess_chance(suite.scoring, inputs.items) or 0.0,
            ),
            panel=inputs.fresh.panel,
            clusters=cluster_labels(inputs.items),
            seed=suite.perturbation.seed,
        )

    def limitations(self, suite: Suite, result: ChannelEvidence | None) -> tuple[Limitation, ...]:
        """That harder fresh items look like memory where no reference models show how hard they are."""
        if not isinstance(result, FreshEvidence) or result.n_reference_models:
            return ()
        return (
            Limitation(
                code="fresh_without_panel",
                text="Fresh items that are simply harder look like memory of the benchmark, and easier ones hide it. "
                "No reference models were given whose answers would show how hard they are.",
            ),
        )

    def section(self, result: ChannelEvidence) -> Section | None:
        """Both arms, and what is expected of the one by the other."""
        if not isinstance(result, FreshEvidence):
            return None
        shown = {str(arm): name for arm, name in _NAMES.items()}
        return Section(
            title="The benchmark and fresh items",
            introduction=f"{phrases.counted(result.n_fresh, 'fresh item', 'fresh items')} of the same kind, which the "
            "model cannot have seen, were asked beside the benchmark"
            + (f", and answered by {_models(result)}." if result.n_reference_models else "."),
            label="Answers to the benchmark and to fresh items",
            columns=_COLUMNS,
            rows=tuple(
                (
                    shown.get(arm.arm, arm.arm),
                    f"{phrases.percent(arm.accuracy.value)} ({phrases.interval(arm.accuracy, digits=1, scale=100)})",
                    phrases.count(arm.n_items),
                    phrases.count(arm.n_truncated),
                    phrases.count(arm.n_invalid),
                    phrases.count(arm.n_errors),
                )
                for arm in result.arms
            ),
            caption=_caption(result),
        )


def _models(result: FreshEvidence) -> str:
    return phrases.counted(result.n_reference_models, "reference model", "reference models")


def _caption(result: FreshEvidence) -> str:
    if result.expected_accuracy is None or result.excess.value is None:
        return "Nothing could be compared."
    left_out = (
        f" {phrases.counted(result.n_left_out, 'item is', 'items are')} left out, because an answer is missing."
        if result.n_left_out
        else ""
    )
    return (
        f"Expected on the benchmark by the fresh items: {phrases.percent(result.expected_accuracy)}. Excess: "
        f"{phrases.rounded(result.excess.value, 1)} points ({phrases.interval(result.excess, digits=1)}), "
        f"p {phrases.p_value(result.p_value)}. The smallest excess that these items find with 80 % power is "
        f"{phrases.rounded(result.minimum_detectable_points, 1)} points.{left_out}"
    )


CHANNEL: Final = FreshChannel()
