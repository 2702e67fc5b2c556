"""Which files the training data of a suite are, and what is known of them before they are searched."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from proctor.domain.corpus_search import CorpusFileFacts, CorpusPlan
from proctor.domain.errors import BadInputError
from proctor.domain.problems import visible
from proctor.domain.suite_exposure import ExposureSection

#: A corpus of up to so many bytes is read whole for its digest. Of a larger one each file's ends are: to read a
#: terabyte twice takes its time.
READ_WHOLE_BYTES: Final = 1 << 30
_ENDS_BYTES: Final = 1 << 20
#: Files of all stages; a plan of so many is some tens of megabytes.
MAX_FILES: Final = 200_000


class FoundFile(NamedTuple):
    """A file of training data."""

    path: Path
    size_bytes: int


def find_files(section: ExposureSection, base: Path, *, operators: bool = False) -> dict[str, tuple[FoundFile, ...]]:
    """The files of each stage, in the order of their names.

    Args:
        section: the suite's.
        base: the folder that relative paths start from: the suite file's, or the operator's of corpora.
        operators: whether it is the operator's, out of which no path may lead.

    Raises:
        BadInputError: for a pattern that matches no file, or leads out of the operator's folder; a file that cannot be
            looked at; or too many files.
    """
    stages = {stage: _files_of(stage, section.corpora[stage], base, operators) for stage in sorted(section.corpora)}
    if (n_files := sum(map(len, stages.values()))) > MAX_FILES:
        raise BadInputError(f"exposure_config.corpora names {n_files:,} files; at most {MAX_FILES:,} are searched")
    return stages


def plan_search(section: ExposureSection, base: Path, *, operators: bool = False) -> CorpusPlan:
    """What a suite has searched, with what its files hold. Arguments and errors are those of `find_files`."""
    found = find_files(section, base, operators=operators)
    whole = sum(file.size_bytes for files in found.values() for file in files) <= READ_WHOLE_BYTES
    return CorpusPlan(
        folder=None if operators else str(base.absolute()),
        stages={
            stage: tuple(
                CorpusFileFacts(
                    path=_shown(file.path, base), size_bytes=file.size_bytes, sample=sample_of(file.path, whole=whole)
                )
                for file in files
            )
            for stage, files in found.items()
        },
        policy=section.policy,
        ngram=section.ngram,
        without_markup=section.without_markup,
        text_columns=section.text_columns,
        max_skipped_pct=section.max_skipped_pct,
    )


def sample_of(path: Path, *, whole: bool) -> str:
    """Digest of a file's bytes, or of its first and last ones.

    Raises:
        BadInputError: when it cannot be read.
    """
    try:
        with path.open("rb") as stream:
            if whole:
                return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
            digest = hashlib.sha256(stream.read(_ENDS_BYTES))
            end = stream.seek(0, 2)
            stream.seek(max(0, end - _ENDS_BYTES))
            digest.update(stream.read(_ENDS_BYTES))
            return f"sha256:{digest.hexdigest()}"
    except OSError as error:
        raise BadInputError(f"{visible(str(path))} cannot be read: {error.strerror or error}") from None


def _files_of(stage: str, patterns: Sequence[str], base: Path, operators: bool) -> tuple[FoundFile, ...]:
    found: dict[str, FoundFile] = {}
    for pattern in patterns:
        field = f"exposure_config.corpora.{stage}: {visible(pattern)!r}"
        if operators and (Path(pattern).is_absolute() or ".." in Path(pattern).parts):
            raise BadInputError(f"{field} leads out of the operator's folder of corpora; name what lies in it")
        place = base / pattern
        if place.is_dir():
            raise BadInputError(f"{field} is a folder; name its files, e.g. {pattern.rstrip('/')}/**/*.jsonl")
        # A name with brackets in it is no glob where a file has that very name. (pathlib takes no absolute patterns.)
        names = [str(place)] if place.exists() else glob.glob(str(base.absolute() / pattern), recursive=True)  # noqa: PTH207
        paths = [Path(name) for name in names if Path(name).is_file()]
        if not paths:
            raise BadInputError(f"{field} matches no file, so there would be nothing to search; nothing was asked")
        for path in paths:
            if operators and not path.resolve().is_relative_to(base.resolve()):
                raise BadInputError(f"{field}: {visible(path.name)} is a link out of the operator's folder of corpora")
            found[str(path.absolute())] = FoundFile(path, _size(path))
    return tuple(found[name] for name in sorted(found))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise BadInputError(f"{visible(str(path))} cannot be read: {error.strerror or error}") from None


def _shown(path: Path, base: Path) -> str:
    absolute, folder = path.absolute(), base.absolute()
    return str(absolute.relative_to(folder) if absolute.is_relative_to(folder) else absolute)
