"""The exposure channel: items against training data, by a named policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from proctor.domain.channel_results import ChannelEvidence, Section, Verdict
from proctor.domain.exposure_evidence import ExposureEvidence, ItemFigures
from proctor.domain.limitation import Limitation
from proctor.domain.suite import Suite
from proctor.domain.trial import WORDED_ARMS
from proctor.evidence.answers import cluster_labels, pair_answers
from proctor.evidence.exposure.channel import AnswersByItem, weigh_search
from proctor.evidence.exposure.recall import REPHRASED, VERBATIM
from proctor.evidence.replicated_answers import collect_replicates
from proctor.scorer.channels.channel import Channel, ChannelInputs, NotAudited, Printed
from proctor.scorer.page import phrases

#: Exposed items that the page names; the report's document has all of them.
_SHOWN: Final = 50
_FIGURES: Final = ("Items", "Canonical", "Reworded", "Score inflation", "Contamination Score")
_SPANS: Final = ("Item", "Verdict", "Stage", "Words", "Where", "Text")
_NAMED: Final = 120


class ExposureChannel(Channel):
    """Suspicious when the items' text is found in training data."""

    compares = "Items against training data. Suspicious when their text is found there."
    null_hypothesis = "No item's text is in the training data."
    needs = "training data to search, which the suite's exposure_config names"
    gap = (
        "No training corpus was searched. Whether the benchmark's text was in the training data is not known from this "
        "report."
    )

    def weigh(self, inputs: ChannelInputs) -> ExposureEvidence | NotAudited:
        """Weigh what was found, and compute the figures of the wording comparison without the exposed items."""
        searched = inputs.searched
        if searched is None:
            return NotAudited("no training corpus was given")
        if isinstance(searched, NotAudited):
            return searched
        rows, labels = inputs.rows, cluster_labels(inputs.items)
        item_ids = rows.item_ids[: len(inputs.items)]
        answers: AnswersByItem
        if inputs.suite.decoding.replicates > 1:
            answers = collect_replicates(rows.wording_answers(WORDED_ARMS), item_ids, labels)
        else:
            answers = pair_answers(rows.answers(direct=True), item_ids, labels)
        scoring = inputs.suite.scoring
        return weigh_search(
            searched,
            answers,
            allowed_pct=scoring.max_allowed_contaminated_items_pct,
            level=scoring.confidence_level,
        )

    def word(self, verdict: Verdict) -> str:
        """How the report words a verdict: what was found is no proof of memory, and nothing found none of its lack."""
        if verdict is Verdict.CONTAMINATED:
            return "Exposed"
        return super().word(verdict)

    def limitations(self, suite: Suite, result: ChannelEvidence | None) -> tuple[Limitation, ...]:
        """What the policy does not find, and what was not searched."""
        if not isinstance(result, ExposureEvidence):
            return ()
        missed = result.recall_pct
        measured = (
            f"{result.policy} finds {missed[VERBATIM]:g} % of verbatim copies and {missed[REPHRASED]:g} % of rephrased "
            "ones"
            if missed
            else f"how much {result.policy} finds with {result.ngram}-grams was not measured"
        )
        said = [
            Limitation(
                code="exposure_by_policy",
                text=f"Items count as exposed by one rule, over the data that the suite names: {measured}. An item "
                "that was not found may have been seen, in other words or in other data.",
            )
        ]
        if result.n_affected:
            said.append(
                Limitation(
                    code="exposed_items_counted",
                    text=f"{phrases.counted(result.n_affected, 'item', 'items')} that stand in training data are part "
                    "of the figures that decide. The same figures without them stand beside.",
                )
            )
        return tuple(said)

    def sections(self, result: ChannelEvidence) -> tuple[Section, ...]:
        """The figures with and without the exposed items, and where each of these stands."""
        if not isinstance(result, ExposureEvidence):
            return ()
        return (_figures(result), *([_spans(result)] if result.items else []))

    def printed(self, result: Mapping[str, Any], folder: Path) -> Printed | None:
        """How many items stand in training data."""
        keys = {
            "exposure": {name: result[name] for name in ("verdict", "policy", "n_items", "n_exposed", "n_unscorable")}
        }
        line = (
            f"training data: {result['n_exposed']:,} of {result['n_items']:,} items found by {result['policy']}; that "
            "an item was not found is no sign that it was not seen"
        )
        return Printed(keys, line)


def _figures(result: ExposureEvidence) -> Section:
    searched = "; ".join(
        f"{stage}: {phrases.counted(one.documents, 'document', 'documents')} in "
        f"{phrases.counted(one.files, 'file', 'files')}, {phrases.count(one.skipped)} not readable"
        for stage, one in result.stages.items()
    )
    rows = (
        ("all items", result.all_items),
        ("without those in training data", result.without_exposed),
        ("those in training data alone", result.exposed_only),
    )
    return Section(
        title="Items in training data",
        introduction=f"Searched by {result.policy} ({result.rule}), in the form {result.normalisation}: {searched}."[
            :2_000
        ],
        label="Figures with and without items that stand in training data",
        columns=("Over", *_FIGURES),
        rows=tuple((name, *_cells(figures)) for name, figures in rows),
        caption="The decision rests on all items. Of those in training data, what was answered says nothing of what "
        "the model can do unseen.",
    )


def _cells(figures: ItemFigures | None) -> tuple[str, ...]:
    if figures is None:
        return ("0", "–", "–", "–", "–")
    inflation, score = figures.score_inflation, figures.contamination_score
    return (
        phrases.count(figures.n_items),
        phrases.percent(figures.accuracy_canonical.value),
        phrases.percent(figures.accuracy_perturbed.value),
        f"{phrases.points(inflation.value)} ({phrases.interval(inflation, digits=1)})",
        "undefined" if score.value is None else f"{phrases.rounded(score.value, 3)} ({_bounds(figures)})",
    )


def _bounds(figures: ItemFigures) -> str:
    return phrases.interval(figures.contamination_score, digits=3)


def _spans(result: ExposureEvidence) -> Section:
    rows = []
    for item in result.items[:_SHOWN]:
        span = item.spans[0] if item.spans else None
        stage = span.stage if span else ", ".join(name for name, one in item.stages.items() if one.is_exposed)
        rows.append(
            (
                item.item_id[:_NAMED],
                item.verdict.value,
                stage,
                phrases.count(span.words if span else max(one.longest_run for one in item.stages.values())),
                f"{span.file[-_NAMED:]}:{span.document}" if span else "a document that is the question alone",
                span.text[:_NAMED] if span else "",
            )
        )
    more = len(result.items) - len(rows)
    return Section(
        title="Where they stand",
        introduction="Each item with the first of its passages that were found word for word.",
        label="Items in training data, and where",
        columns=_SPANS,
        rows=tuple(rows),
        caption=f"{phrases.counted(more, 'further item is', 'further items are')} in the report's document."
        if more
        else "",
    )


CHANNEL: Final = ExposureChannel()
