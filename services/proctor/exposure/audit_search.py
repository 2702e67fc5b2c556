"""A search of training data for an audit: by the plan that travelled with it, to the findings that are weighed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

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
from proctor.exposure.index import build_index
from proctor.exposure.items import Part, ScannedItem
from proctor.exposure.judging import judge_stage
from proctor.exposure.policies import POLICIES, Measure
from proctor.exposure.report import ExposureReport, ItemResult, check_skipped, exposure_report
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
    policy = POLICIES[plan.policy]
    folder = _folder(plan, corpora)
    whole = plan.n_bytes <= READ_WHOLE_BYTES
    stages = {stage: _files(files, folder, corpora, whole) for stage, files in plan.stages.items()}
    scanned = [_scanned(item) for item in items]
    prepare = without_markup if plan.without_markup else str
    n = plan.ngram or policy.n
    index = build_index(scanned, n, weighted=policy.measure is Measure.WEIGHTED, prepare=prepare)
    judged = {}
    for stage, files in stages.items():
        found = scan_corpus(
            index,
            files,
            columns=plan.text_columns,
            markup=plan.without_markup,
            state=state,
            progress=lambda read, total: note_step(),
        )
        judged[stage] = judge_stage(scanned, index, found, policy, stage, prepare), found.counts
    report = exposure_report(scanned, judged, policy, n=n, markup_removed=plan.without_markup, prepare=prepare)
    return _found(report, plan, folder)


def _folder(plan: CorpusPlan, corpora: Path | None) -> Path:
    if plan.folder is not None:
        return Path(plan.folder)
    if corpora is None:
        raise BadInputError(
            "the suite's training data lie in the operator's folder, and PROCTOR_CORPORA is not set here"
        )
    return corpora


def _files(facts: Sequence[CorpusFileFacts], folder: Path, corpora: Path | None, whole: bool) -> tuple[CorpusFile, ...]:
    """The files of a stage, each held to what it was when the audit was submitted."""
    paths = []
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
