"""An exposure scan: a benchmark's file, a corpus, a policy."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.formats.faults import shown

if TYPE_CHECKING:
    from proctor.exposure.report import ExposureReport


class ExposureQuestion(NamedTuple):
    """What is searched for where, and what counts."""

    items: Path
    corpus: tuple[str, ...]
    policy: str
    ngram: int | None = None
    """Words an n-gram; None for the policy's own."""
    stage: str = "pretrain"
    columns: tuple[str, ...] = ()
    without_markup: bool = False
    workers: int | None = None
    """Processes; None for one a processor."""
    state: Path | None = None
    max_skipped: float = 0.01


def exposure_scan(
    question: ExposureQuestion, progress: Callable[[int, int], None] = lambda read, total: None
) -> ExposureReport:
    """Search a corpus for a benchmark's items.

    Args:
        question: what is asked.
        progress: told of how many bytes of how many the corpus has been read.

    Raises:
        BadInputError: for a policy that there is none of, items or files that cannot be read, or a missing package.
        ProctorError: when too much of the corpus could not be read for a verdict.
    """
    missing = [name for name in ("numba", "msgspec") if importlib.util.find_spec(name) is None]
    if missing:
        raise BadInputError(f"scanning needs {' and '.join(missing)}: pip install 'proctor[exposure]'")
    from proctor.exposure.corpus import corpus_files
    from proctor.exposure.index import build_index
    from proctor.exposure.items import read_items
    from proctor.exposure.policies import POLICIES, Measure
    from proctor.exposure.report import check_skipped, exposure_report
    from proctor.exposure.scanning import scan_corpus
    from proctor.text.overlap_words import without_markup

    policy = POLICIES.get(question.policy)
    if policy is None:
        raise BadInputError(f"there is no policy {shown(question.policy)}; there are {', '.join(POLICIES)}")
    files = corpus_files(question.corpus)
    items = read_items(question.items)
    prepare = without_markup if question.without_markup else str
    index = build_index(items, question.ngram or policy.n, weighted=policy.measure is Measure.WEIGHTED, prepare=prepare)
    scanned = scan_corpus(
        index,
        files,
        columns=question.columns,
        markup=question.without_markup,
        workers=question.workers or len(os.sched_getaffinity(0)),
        state=question.state,
        progress=progress,
    )
    report = exposure_report(
        items, index, scanned, policy,
        stage=question.stage, markup_removed=question.without_markup, prepare=prepare,
    )  # fmt: skip
    check_skipped(report, sum(file.size_bytes for file in files), question.max_skipped)
    return report
