"""A search of training data for a benchmark's items, by a policy, stage by stage."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.formats.faults import shown
from proctor.studies.exposure.near import SAMPLE, near_methods, near_report
from proctor.text.overlap_words import without_markup

if TYPE_CHECKING:
    from proctor.exposure.corpus import CorpusFile
    from proctor.exposure.items import ScannedItem
    from proctor.exposure.judging import StageItem
    from proctor.exposure.policies import Policy
    from proctor.exposure.report import ExposureReport
    from proctor.exposure.scanned import Counts

_WITH_STAGE: Final = re.compile(r"([a-z][a-z0-9_-]*)=(.+)", re.DOTALL)
Progress = Callable[[int, int], None]


class ExposureQuestion(NamedTuple):
    """What is searched for where, and what counts."""

    items: Path
    corpus: tuple[str, ...]
    """Paths and globs, each of the stage that stands before it (`tune=sft/*.jsonl`), or of `stage`."""
    policy: str
    ngram: int | None = None
    """Words an n-gram; None for the policy's own."""
    stage: str = "pretrain"
    template: str | None = None
    """The protocol card's prompt template, where items name theirs."""
    columns: tuple[str, ...] = ()
    without_markup: bool = False
    workers: int | None = None
    """Processes; None for one a processor."""
    state: Path | None = None
    max_skipped: float = 0.01
    near: tuple[str, ...] = ()
    """Searches for near duplicates that are made as well: `minhash`, `embedding`."""
    near_sample: int | None = SAMPLE
    """Passages of a stage's corpus that are embedded; None for all."""
    near_seed: int = 0


def exposure_scan(question: ExposureQuestion, progress: Progress = lambda read, total: None) -> ExposureReport:
    """Search training data for a benchmark's items.

    Args:
        question: what is asked.
        progress: told of how many bytes of how many the stage's corpus has been read.

    Raises:
        BadInputError: for a policy that there is none of, items or files that cannot be read, or a missing package.
        ProctorError: when too much of the corpus could not be read for a verdict.
    """
    missing = [name for name in ("numba", "msgspec") if importlib.util.find_spec(name) is None]
    if missing:
        raise BadInputError(f"scanning needs {' and '.join(missing)}: pip install 'proctor[exposure]'")
    from proctor.exposure.code_overlap import judge_stage_by_code
    from proctor.exposure.corpus import corpus_files
    from proctor.exposure.items import read_items
    from proctor.exposure.policies import POLICIES, WITHOUT_NGRAMS, Measure
    from proctor.exposure.report import check_skipped, exposure_report
    from proctor.exposure.token_overlap import judge_stage_by_tokens

    policy = POLICIES.get(question.policy)
    if policy is None:
        raise BadInputError(f"there is no policy {shown(question.policy)}; there are {', '.join(POLICIES)}")
    if policy.measure in WITHOUT_NGRAMS and (question.ngram is not None or question.without_markup):
        raise BadInputError(f"the policy {policy.name} compares tokens: --ngram and --without-markup are not for it")
    methods = near_methods(question.near)
    stages = {stage: corpus_files(patterns) for stage, patterns in _by_stage(question).items()}
    items = read_items(question.items)
    if policy.measure in WITHOUT_NGRAMS:
        judge = judge_stage_by_tokens if policy.measure is Measure.TOKENS else judge_stage_by_code
        judged = {stage: judge(items, files, question.columns, policy, stage) for stage, files in stages.items()}
    else:
        judged = _by_ngrams(question, items, stages, policy, progress)
    report = exposure_report(
        items,
        judged,
        policy,
        n=question.ngram or policy.n,
        template=question.template,
        markup_removed=question.without_markup,
        prepare=_prepare(question),
        near=[
            near_report(
                method,
                items,
                stages,
                columns=question.columns,
                workers=_workers(question),
                sample=question.near_sample,
                seed=question.near_seed,
                prepare=_prepare(question),
                progress=progress,
            )
            for method in methods
        ],
    )
    check_skipped(report, sum(file.size_bytes for files in stages.values() for file in files), question.max_skipped)
    return report


def _by_stage(question: ExposureQuestion) -> dict[str, list[str]]:
    stages: dict[str, list[str]] = {}
    for pattern in question.corpus:
        named = None if Path(pattern).exists() else _WITH_STAGE.fullmatch(pattern)
        stage, files = named.groups() if named is not None else (question.stage, pattern)
        stages.setdefault(stage, []).append(files)
    return stages


def _prepare(question: ExposureQuestion) -> Callable[[str], str]:
    return without_markup if question.without_markup else str


def _workers(question: ExposureQuestion) -> int:
    return question.workers or len(os.sched_getaffinity(0))


def _by_ngrams(
    question: ExposureQuestion,
    items: Sequence[ScannedItem],
    stages: Mapping[str, Sequence[CorpusFile]],
    policy: Policy,
    progress: Progress,
) -> dict[str, tuple[list[StageItem], Counts]]:
    from proctor.exposure.index import build_index
    from proctor.exposure.judging import judge_stage
    from proctor.exposure.policies import Measure
    from proctor.exposure.scanning import scan_corpus

    prepare = _prepare(question)
    index = build_index(items, question.ngram or policy.n, weighted=policy.measure is Measure.WEIGHTED, prepare=prepare)
    judged: dict[str, tuple[list[StageItem], Counts]] = {}
    for stage, files in stages.items():
        scanned = scan_corpus(
            index,
            files,
            columns=question.columns,
            markup=question.without_markup,
            workers=_workers(question),
            state=question.state,
            progress=progress,
        )
        judged[stage] = judge_stage(items, index, scanned, policy, stage, prepare), scanned.counts
    return judged
