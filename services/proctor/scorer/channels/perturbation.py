"""The perturbation channel: the canonical wording against admitted rewordings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from proctor.domain.channel_results import ChannelEvidence, Section, Verdict
from proctor.domain.evidence import ClusterCount, ControlItems, PerturbationEvidence
from proctor.domain.limitation import Limitation
from proctor.domain.suite import Suite
from proctor.domain.trial import CONTROL_ARMS, WORDED_ARMS
from proctor.evidence.answers import cluster_labels, guess_chance, pair_answers
from proctor.evidence.clusters import Compared
from proctor.evidence.perturbation.channel import NULL_HYPOTHESIS, perturbation_evidence
from proctor.evidence.perturbation.clean_control import NO_CONTROL, choose_control
from proctor.evidence.perturbation.control_items import pair_control, weigh_control_items
from proctor.evidence.perturbation.held import Held
from proctor.evidence.perturbation.replicates import replicate_figures
from proctor.evidence.replicated_answers import collect_replicates
from proctor.formats.clusters import related_text, unnamed_groups
from proctor.scorer.channels.channel import Channel, ChannelInputs, Printed
from proctor.scorer.channels.control_section import control_section
from proctor.scorer.page.phrases import counted, points


class PerturbationChannel(Channel):
    """Suspicious when the canonical wording is answered better."""

    compares = (
        "Accuracy on the canonical wording against accuracy on rewordings. Suspicious when the canonical wording is "
        "answered better."
    )
    null_hypothesis = NULL_HYPOTHESIS
    needs = "answers to the canonical wording and to admitted rewordings of it"
    gap = "The benchmark was not asked in other words, so memory of its wording was not looked for."

    def weigh(self, inputs: ChannelInputs) -> PerturbationEvidence:
        """Pair the direct answers by item, lay them beside the control items, or beside a clean model where one is on
        record, and weigh them."""
        suite, rows = inputs.suite, inputs.rows
        # The rows have the fresh items and the control items too.
        item_ids, labels = rows.item_ids[: len(inputs.items)], cluster_labels(inputs.items)
        paired = pair_answers(rows.firsts().answers(direct=True), item_ids, labels)
        several = suite.decoding.replicates > 1
        repeated = collect_replicates(rows.wording_answers(WORDED_ARMS), item_ids, labels) if several else None
        found = perturbation_evidence(
            paired,
            suite.scoring,
            suite.governance,
            guess_chance(suite.scoring, inputs.items),
            choose_control(paired, inputs.clean_models) if inputs.control is None else NO_CONTROL,
            _control_items(paired if repeated is None else repeated, inputs),
            repeated,
        )
        if repeated is not None:
            level = suite.scoring.confidence_level
            figures = replicate_figures(repeated, rows.wording_answers(WORDED_ARMS), level=level)
            found = found.model_copy(update={"replicates": figures})
        groups = unnamed_groups(inputs.items, suite.dataset)
        return found if groups is None else found.model_copy(update={"unnamed_groups": groups})

    def limitations(self, suite: Suite, result: ChannelEvidence | None) -> tuple[Limitation, ...]:
        """That nothing was compared; or that the sample is small for the suite's limit, or the chance of a guess
        unknown."""
        assert result is None or isinstance(result, PerturbationEvidence)
        said: list[Limitation] = []
        limit = suite.scoring.max_allowed_contaminated_items_pct
        if result is None or result.verdict in (Verdict.INVALID, Verdict.NOT_AUDITED):
            said.append(
                Limitation(
                    code="no_perturbation_evidence",
                    text="The canonical wording and the rewordings could not be compared.",
                )
            )
        elif result.not_above_chance is None and Held.of(result).detectable > limit:
            said.append(_too_few_items(result, limit))
        if result is not None and result.leaked_share is None:
            said.append(
                Limitation(
                    code="guess_chance_unknown",
                    text="How often a guess would be right is not known for these items, so the share of leaked items "
                    "was not estimated from score inflation.",
                )
            )
        if result is not None and result.clusters is not None:
            said.append(_clustered(result.clusters))
        if result is not None and result.unnamed_groups is not None:
            said.append(Limitation(code="items_not_independent", text=related_text(result.unnamed_groups)))
        return tuple(said)

    def section(self, result: ChannelEvidence) -> Section | None:
        """Both kinds of items, and what rewording costs on either."""
        return control_section(result) if isinstance(result, PerturbationEvidence) else None

    def printed(self, result: Mapping[str, Any], folder: Path) -> Printed | None:
        """What the figures are over, where items come in clusters, and what control items make of them."""
        keys, lines = dict[str, Any](), list[str]()
        if (clusters := result.get("clusters")) is not None:
            keys["clusters"] = clusters
            lines.append(
                f"figures are over {counted(clusters['n_clusters'], 'cluster', 'clusters')} of items, which tell as "
                f"much as {clusters['effective']:.1f} of equal size"
            )
        if (control := result.get("control_items")) is not None:
            keys["control_items"] = control
            lines.append("; ".join(control["problems"]) or control["conclusion"])
        if (replicates := result.get("replicates")) is not None:
            keys["replicates"] = replicates
            lines.append(replicates["conclusion"])
        return Printed(keys, "\n  ".join(lines)) if lines else None


def _control_items(benchmark: Compared, inputs: ChannelInputs) -> ControlItems | None:
    asked, rows = inputs.control, inputs.rows
    if asked is None:
        return None
    item_ids, labels = [item.item_id for item in asked.items], cluster_labels(asked.items)
    control: Compared
    if inputs.suite.decoding.replicates > 1:
        control = collect_replicates(rows.wording_answers(CONTROL_ARMS), item_ids, labels)
    else:
        control = pair_control(rows.answers_in(CONTROL_ARMS), item_ids, labels)
    return weigh_control_items(
        benchmark,
        control,
        rows.answers_in(CONTROL_ARMS),
        inputs.suite.scoring,
        n_selected=len(item_ids),
        n_reworded=asked.n_reworded,
    )


def _clustered(clusters: ClusterCount) -> Limitation:
    few = clusters.effective < clusters.n_clusters
    alike = f", which tell as much as {clusters.effective:.1f} of equal size" if few else ""
    return Limitation(
        code="clustered_items",
        text="Items share what they are about: they come in "
        f"{counted(clusters.n_clusters, 'cluster', 'clusters')}, the largest of "
        f"{counted(clusters.largest, 'item', 'items')}{alike}. All figures of the comparison are over clusters, and "
        "say less than those of as many independent items would.",
    )


def _too_few_items(result: PerturbationEvidence, limit: float) -> Limitation:
    held, control = Held.of(result), result.control_items
    further = "" if result.clusters is None else ", in further clusters of these sizes,"
    further = further if control is None else ", with as many more control items,"
    more = (
        f" About {counted(held.needed, 'item', 'items')}{further} would settle it if the effect "
        "stays as it was measured."
        if held.needed is not None and held.needed > result.n_items
        else ""
    )
    beside = "" if control is None else f" and {counted(control.n_items, 'control item', 'control items')}"
    return Limitation(
        code="too_few_items",
        text=f"With {counted(result.n_items, 'item', 'items')}{beside} the audit reliably finds score inflation of "
        f"{points(held.detectable, apart_from=(limit,))} or more{held.beyond}, while the suite's limit is "
        f"{points(limit)}. That nothing was found says little.{more}",
    )


CHANNEL: Final = PerturbationChannel()
