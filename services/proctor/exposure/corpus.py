"""Which files a corpus is: by paths and globs of this machine, of a bucket, and of the Hugging Face Hub."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from proctor.domain.errors import BadInputError
from proctor.domain.hub import HUB_ID
from proctor.exposure.corpus_file import PIECE_BYTES, CorpusFile, Piece, pieces_of
from proctor.formats.faults import shown

__all__ = ["PIECE_BYTES", "CorpusFile", "Piece", "corpus_files", "pieces_of"]

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def corpus_files(patterns: Sequence[str]) -> tuple[CorpusFile, ...]:
    """The files that paths and globs name, each once, by path.

    Args:
        patterns: of files of this machine, `s3://bucket/glob`, `hf://datasets/owner/name@commit/glob`, or
            `owner/name@commit` for the files of data of a dataset of the hub.

    Raises:
        BadInputError: for a pattern that matches no file (a scan of nothing must not look like one that found
            nothing), or a file that cannot be looked at.
        ProctorError: when a bucket or the hub does not answer.
    """
    found: dict[str, CorpusFile] = {}
    for pattern in patterns:
        files = _named(pattern)
        if not files:
            hint = "; a dataset of the hub is owner/name@COMMIT" if re.fullmatch(HUB_ID, pattern) else ""
            raise BadInputError(f"--corpus {shown(pattern)} matches no file; nothing was searched{hint}")
        found.update((file.path, file) for file in files)
    return tuple(found[path] for path in sorted(found))


def _named(pattern: str) -> list[CorpusFile]:
    from proctor.exposure.remote import bucket, hub_corpus

    if pattern.startswith(bucket.SCHEME):
        return bucket.bucket_files(pattern)
    if not Path(pattern).exists():
        if hub_corpus.is_of_hub(pattern):
            return hub_corpus.hub_corpus(pattern)
        if _SCHEME.match(pattern):
            raise BadInputError(f"--corpus {shown(pattern)} is a URL of another kind: s3:// and hf:// are read")
    return _local(pattern)


def _local(pattern: str) -> list[CorpusFile]:
    if Path(pattern).is_dir():
        raise BadInputError(
            f"--corpus {shown(pattern)} is a folder; name its files, e.g. {pattern.rstrip('/')}/**/*.jsonl"
        )
    # A name with brackets in it is no glob where a file has that very name. (pathlib takes no absolute patterns.)
    names = [pattern] if Path(pattern).exists() else glob.glob(pattern, recursive=True)  # noqa: PTH207
    found = []
    for path in (Path(name) for name in names if not Path(name).is_dir()):
        try:
            status = path.stat()
        except OSError as error:
            raise BadInputError(f"{path} cannot be read: {error.strerror or error}") from None
        found.append(CorpusFile(str(path), status.st_size, status.st_mtime_ns))
    return found
