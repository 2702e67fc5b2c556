"""Suites as files: loading one, and the digests of the files that it names."""

from __future__ import annotations

import hashlib
from pathlib import Path

from proctor.domain.canonical import json_digest
from proctor.domain.card import ContentDigests
from proctor.domain.corpus_search import CorpusPlan
from proctor.domain.errors import BadInputError
from proctor.domain.problems import SuiteProblems, visible
from proctor.domain.strict_json import MAX_BYTES
from proctor.domain.suite import DatasetSection, Suite
from proctor.domain.suite_problems import parse_suite
from proctor.formats.benchmark_files import PACKAGED_BENCHMARK, benchmark_file
from proctor.formats.corpora import plan_search


def read_suite_file(path: Path) -> bytes:
    """The bytes of a suite's file, one more than is allowed at most.

    Raises:
        BadInputError: when the file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInputError(f"suite {visible(str(path))} cannot be read: {error.strerror}; check the path") from None


def load_suite(path: str | Path) -> Suite:
    """Load a suite from a file.

    Raises:
        BadInputError: when the file cannot be read.
        SuiteProblems: with every problem of the suite, each under the file's name.
    """
    data = read_suite_file(Path(path))
    try:
        return parse_suite(data)
    except SuiteProblems as problems:
        raise problems.of(str(path)) from None


def content_digests(
    suite: Suite, base: Path, bundle: Path, benchmarks: Path | None = None, *, corpora: CorpusPlan | None = None
) -> ContentDigests:
    """Digests of the files that a suite names; None where it names none, or one that cannot be read.

    Paths are relative to `base`, the folder of the suite's file; a benchmark without a path is looked for in the
    operator's folder `benchmarks`. A dataset from the Hub is pinned by its revision,
    which stands on the card, and has no digest here. The packaged benchmark's digest covers its items and its
    wordings. Training data are looked at here where `corpora` does not say what they are.
    """
    dataset, rewordings, calibration = suite.dataset, suite.perturbation.rewordings_path, calibration_path(suite)
    return ContentDigests(
        dataset=_dataset_digest(dataset, base, bundle, benchmarks),
        rewordings=file_digest(base / rewordings) if rewordings is not None else None,
        calibration=file_digest(base / calibration) if calibration is not None else None,
        fresh=file_digest(base / suite.fresh.path) if suite.fresh is not None else None,
        panel=file_digest(base / panel) if (panel := panel_path(suite)) is not None else None,
        corpora=corpora.corpora_digest if corpora is not None else _corpora_digest(suite, base),
        control=file_digest(base / suite.control.path) if suite.control is not None else None,
    )


def calibration_path(suite: Suite) -> str | None:
    """The calibration that a suite's gate takes its window from; None where the window is the suite's own."""
    return suite.perturbation.calibration_path if suite.perturbation.gate == "calibrated" else None


def panel_path(suite: Suite) -> str | None:
    """The file of what reference models answered; None where the suite names none."""
    return None if suite.fresh is None else suite.fresh.panel_path


def _corpora_digest(suite: Suite, base: Path) -> str | None:
    if suite.exposure is None:
        return None
    try:
        return plan_search(suite.exposure, base).corpora_digest
    except BadInputError:
        return None


def _dataset_digest(dataset: DatasetSection, base: Path, bundle: Path, benchmarks: Path | None) -> str | None:
    path = benchmark_file(dataset, base, bundle, benchmarks)
    if path is None or dataset.path is not None or dataset.benchmark_name != PACKAGED_BENCHMARK:
        return None if path is None else file_digest(path)
    parts = {name: file_digest(path.with_name(name)) for name in ("items.jsonl", "wordings.json")}
    return json_digest(parts) if all(parts.values()) else None


def file_digest(path: Path) -> str | None:
    """`sha256:` and 64 hex digits of a file's bytes; None when it is no file that has an end, or cannot be read."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as stream:
            return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
    except OSError:
        return None
