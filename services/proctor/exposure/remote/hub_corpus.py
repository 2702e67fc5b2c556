"""A dataset of the Hugging Face Hub as a corpus: its files at a pinned commit, fetched one at a time, and checked."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.hub import HUB_ID
from proctor.exposure.corpus_file import CorpusFile, Unreadable
from proctor.exposure.remote.patterns import matcher
from proctor.formats.faults import shown
from proctor.formats.hub import HubRepository
from proctor.runtime.settings import Settings

SCHEME: Final = "hf://datasets/"
#: Of one file of a corpus, which lies on disk while it is searched.
MAX_FILE_BYTES: Final = 16 << 30
_NAMED: Final = re.compile(rf"({HUB_ID[1:-1]})@([^/]*)(?:/(.*))?", re.DOTALL)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
#: What is read of a dataset where nothing else is said: not its card.
_DATA: Final = re.compile(r".*\.(?:jsonl|ndjson|parquet|txt)(?:\.gz|\.zst)?")
_MEND: Final = "download the files and name them in --corpus"


class _Place(NamedTuple):
    hub_id: str
    revision: str
    path: str


def is_of_hub(pattern: str) -> bool:
    """Whether a corpus' name is one of the hub: `hf://datasets/…`, or `owner/name@` and a commit."""
    named = _NAMED.fullmatch(pattern)
    return pattern.startswith("hf://") or (named is not None and _COMMIT.fullmatch(named[2]) is not None)


def hub_corpus(pattern: str) -> list[CorpusFile]:
    """The files that `hf://datasets/owner/name@commit/glob` names, each with its digest.

    Raises:
        BadInputError: when it names no dataset, or one that may not be read here; when the hub has none of the name.
        ProctorError: when the hub cannot be reached.
    """
    place = _place(pattern)
    is_wanted = matcher(place.path) if place.path else _DATA.fullmatch
    with _repository(place) as repository:
        files = [file for file in repository.files() if is_wanted(file.path)]
    for file in files:
        if file.size > MAX_FILE_BYTES:
            raise BadInputError(
                f"{shown(file.path)} of the dataset {place.hub_id!r} is larger than the {MAX_FILE_BYTES:,} bytes that "
                f"are fetched from the hub at a time; {_MEND}"
            )
    return [
        CorpusFile(f"{SCHEME}{place.hub_id}@{place.revision}/{file.path}", file.size, 0, file.digest) for file in files
    ]


def fetched(file: CorpusFile) -> BinaryIO:
    """A file of the hub, in a temporary file that goes when it is closed.

    Raises:
        Unreadable: when it cannot be fetched, or is not what the commit has.
    """
    from proctor.formats.hub_tree import HubFile

    place = _place(file.path)
    stream = tempfile.NamedTemporaryFile(prefix="proctor-hub-", buffering=0)  # noqa: SIM115, closed by the reader
    try:
        with _repository(place) as repository:
            repository.fetch(HubFile(place.path, file.size_bytes, file.version), Path(stream.name))
    except ProctorError as error:
        stream.close()
        raise Unreadable(str(error)) from None
    return stream  # type: ignore[return-value]  # a raw file, as open() gives it


def _repository(place: _Place) -> HubRepository:
    access = Settings.from_environment().hub
    try:
        access.check(place.hub_id, place.revision)
    except BadInputError:
        raise BadInputError(
            f"the dataset {place.hub_id!r} is none of those that PROCTOR_HUB_DATASETS lets be read here "
            f"({', '.join(access.datasets or ()) or 'none'})"
        ) from None
    return HubRepository(place.hub_id, place.revision, access, most_bytes=MAX_FILE_BYTES, mend=_MEND)


def _place(pattern: str) -> _Place:
    named = _NAMED.fullmatch(pattern.removeprefix(SCHEME))
    if named is None or not _COMMIT.fullmatch(named[2]):
        raise BadInputError(
            f"--corpus {shown(pattern)} names no files of the hub: write hf://datasets/owner/name@COMMIT/glob, with "
            "the 40 hex digits of a commit, because a branch can move"
        )
    return _Place(named[1], named[2], named[3] or "")
