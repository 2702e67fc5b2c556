"""A search of training data for an audit: by the plan that travelled with it, to the findings that are weighed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proctor.domain.corpus_search import (
    MAX_SPANS,
    SPAN_CHARACTERS,
    CorpusFileFacts,
    CorpusPlan,
    CorpusSearch,
    CorpusSpan,
    ItemFinding,
    SearchedStage,
    StageFinding,
)
from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.exposure import ExposureVerdict
from proctor.domain.item import Item
from proctor.domain.problems import visible
from proctor.exposure.corpus import CorpusFile, corpus_files
from proctor.exposure.index import Index, build_index
from proctor.exposure.items import Part, ScannedItem
from proctor.exposure.judging import judge_stage
from proctor.exposure.policies import POLICIES, Measure
from proctor.exposure.report import ExposureReport, ItemResult, check_skipped, exposure_report
from proctor.exposure.scanned import Scanned
from proctor.exposure.scanning import scan_corpus
from proctor.formats.corpora import READ_WHOLE_BYTES, sample_of
from proctor.runtime.progress import note_step
from proctor.text.overlap_words import without_markup


def search(
    plan: CorpusPlan, items: Iterable[Item], *, corpora: Path | None = None, state: Path | None = None
) -> CorpusSearch:
    """Search what a plan names for the items of an audit.

    Args:
        plan: the suite's, with the files as they were when it was submitted.
        items: the audit's.
        corpora: the operator's folder of training data. Where there is one, no other files are read.
        state: a folder in which what is done is kept, so that a search that was interrupted, or the same one for
            another model, goes on from there.

    Raises:
        BadInputError: when a file is not there, was changed since, or may not be read.
        ProctorError: when it cannot be searched.
    """
    looked, folder = looked_for(plan, items), searched_folder(plan, corpora)
    # All of them before the first is read: what is missing is said at once.
    stages = {stage: files_of(plan, facts, corpora) for stage, facts in plan.stages.items()}
    scanned = {
        stage: scan_corpus(
            looked.grams,
            files,
            columns=plan.text_columns,
            markup=plan.without_markup,
            state=state,
            progress=lambda read, total: note_step(),
        )
        for stage, files in stages.items()
    }
    return findings(plan, looked, scanned, folder)


class Looked(NamedTuple):
    """What is looked for."""

    items: tuple[ScannedItem, ...]
    grams: Index


def looked_for(plan: CorpusPlan, items: Iterable[Item]) -> Looked:
    """The items of an audit as a plan has them looked for."""
    policy, scanned = POLICIES[plan.policy], tuple(_scanned(item) for item in items)
    weighted = policy.measure is Measure.WEIGHTED
    return Looked(scanned, build_index(scanned, plan.ngram or policy.n, weighted=weighted, prepare=_prepare(plan)))


def findings(plan: CorpusPlan, looked: Looked, scanned: Mapping[str, Scanned], folder: Path) -> CorpusSearch:
    """What the scans of a plan's stages say of the items."""
    policy, prepare = POLICIES[plan.policy], _prepare(plan)
    judged = {
        stage: (judge_stage(looked.items, looked.grams, found, policy, stage, prepare), found.counts)
        for stage, found in scanned.items()
    }
    n = plan.ngram or policy.n
    report = exposure_report(looked.items, judged, policy, n=n, markup_removed=plan.without_markup, prepare=prepare)
    return _found(report, plan, folder)


def _prepare(plan: CorpusPlan) -> Callable[[str], str]:
    return without_markup if plan.without_markup else str


def searched_folder(plan: CorpusPlan, corpora: Path | None) -> Path:
    """What a plan's paths start from on this machine.

    Raises:
        BadInputError: when it is the operator's folder, and there is none here.
    """
    if plan.folder is not None:
        return Path(plan.folder)
    if corpora is None:
        raise BadInputError(
            "the suite's training data lie in the operator's folder, and PROCTOR_CORPORA is not set here"
        )
    return corpora


def files_of(plan: CorpusPlan, facts: Sequence[CorpusFileFacts], corpora: Path | None) -> tuple[CorpusFile, ...]:
    """Files of a plan, each held to what it was when the audit was submitted.

    Raises:
        BadInputError: when one is not.
    """
    folder, whole, paths = searched_folder(plan, corpora), plan.n_bytes <= READ_WHOLE_BYTES, list[str]()
    for fact in facts:
        path = folder / fact.path
        if corpora is not None and not path.resolve().is_relative_to(corpora.resolve()):
            raise BadInputError(f"{visible(fact.path)} does not lie in PROCTOR_CORPORA, whose files alone are searched")
        if not path.is_file():
            raise BadInputError(f"{visible(fact.path)} is not there; is what holds it mounted where this worker runs?")
        note_step()
        if path.stat().st_size != fact.size_bytes or sample_of(path, whole=whole) != fact.sample:
            raise BadInputError(f"{visible(fact.path)} is not what it was when the audit was submitted")
        paths.append(str(path))
    return corpus_files(paths)


def _scanned(item: Item) -> ScannedItem:
    parts = {Part.QUESTION: item.question, Part.ANSWER: item.target}
    if item.choices:
        parts[Part.CHOICES] = "\n".join(item.choices)
    return ScannedItem(item.item_id, {part: text for part, text in parts.items() if text})


def _found(report: ExposureReport, plan: CorpusPlan, folder: Path) -> CorpusSearch:
    def named(text: str) -> str:
        return text.replace(f"{folder}/", "")

    n_bytes, invalid = plan.n_bytes, None
    try:
        check_skipped(report, n_bytes, plan.max_skipped_pct / 100)
    except ProctorError as error:
        invalid = named(str(error)).replace("--max-skipped", "exposure_config.max_skipped_pct")
    return CorpusSearch(
        policy=report.policy.name,
        rule=report.policy.words,
        ngram=report.n,
        normalisation=report.normalisation,
        stages={
            stage: SearchedStage(
                files=len(plan.stages[stage]),
                documents=counts.documents,
                bytes=counts.bytes,
                skipped=counts.skipped,
                unread_bytes=counts.unread_bytes,
            )
            for stage, counts in report.counts.items()
        },
        n_items=len(report.items),
        verdicts=dict(report.verdicts),
        items=tuple(_finding(item, named) for item in report.items if item.is_exposed),
        unscorable=tuple(item.item_id for item in report.items if item.verdict is ExposureVerdict.UNSCORABLE),
        skipped_places=tuple(
            named(f"{place.file}:{place.position}: {place.reason}") for place in report.total.skipped_places
        ),
        invalid=invalid,
    )


def _finding(item: ItemResult, named: Any) -> ItemFinding:
    return ItemFinding(
        item_id=item.item_id,
        verdict=item.verdict,
        reasons=item.reasons,
        stages={
            stage: StageFinding(
                is_exposed=one.is_exposed,
                has_label=one.has_label,
                containment=one.containment,
                longest_run=one.longest_run,
            )
            for stage, one in item.stages.items()
        },
        spans=tuple(_span(span, named) for span in _longest(item.spans)),
    )


def _longest(spans: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The spans that are kept: the longest, in their order."""
    kept = sorted(range(len(spans)), key=lambda place: (-spans[place]["words"], place))[:MAX_SPANS]
    return [spans[place] for place in sorted(kept)]


def _span(span: Mapping[str, Any], named: Any) -> CorpusSpan:
    return CorpusSpan(
        stage=span["stage"],
        part=span["part"],
        start=span["start"],
        end=span["end"],
        words=span["words"],
        text=span["text"][:SPAN_CHARACTERS],
        file=named(span["file"]),
        document=span["document"],
        offset=span["offset"],
    )
