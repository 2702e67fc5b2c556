"""Which files a corpus is, and the pieces of work that they make."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.formats.faults import shown

#: An uncompressed file of lines is read in pieces of about this size, by several processes.
PIECE_BYTES: Final = 32 << 20
_LINES: Final = (".jsonl", ".ndjson", ".json")
_PACKED: Final = (".gz", ".zst")


class CorpusFile(NamedTuple):
    """A file of a corpus, as it was when the scan began."""

    path: str
    size_bytes: int
    changed_ns: int

    @property
    def packing(self) -> str:
        """`.gz`, `.zst` or nothing."""
        suffix = Path(self.path).suffix.lower()
        return suffix if suffix in _PACKED else ""

    @property
    def kind(self) -> str:
        """`lines` of JSON, `parquet`, or `text`."""
        inner = Path(self.path).with_suffix("") if self.packing else Path(self.path)
        suffix = inner.suffix.lower()
        return "lines" if suffix in _LINES else "parquet" if suffix == ".parquet" else "text"


class Piece(NamedTuple):
    """A part of a corpus that one process scans: a file, or a range of one."""

    file: CorpusFile
    begin: int = 0
    """The first byte, which may be in the middle of a line: that line is of the piece before."""
    end: int | None = None
    """The byte at which the piece's last line may begin at the latest; None for the file's end."""

    @property
    def size_bytes(self) -> int:
        """How much of the file it is."""
        return (self.file.size_bytes if self.end is None else self.end) - self.begin


def corpus_files(patterns: Sequence[str]) -> tuple[CorpusFile, ...]:
    """The files that paths and globs name, each once, by path.

    Raises:
        BadInputError: for a pattern that matches no file (a scan of nothing must not look like one that found
            nothing), or a file that cannot be looked at.
    """
    found: dict[str, CorpusFile] = {}
    for pattern in patterns:
        if Path(pattern).is_dir():
            raise BadInputError(
                f"--corpus {shown(pattern)} is a folder; name its files, e.g. {pattern.rstrip('/')}/**/*.jsonl"
            )
        # A name with brackets in it is no glob where a file has that very name. (pathlib takes no absolute patterns.)
        names = [pattern] if Path(pattern).exists() else glob.glob(pattern, recursive=True)  # noqa: PTH207
        paths = [Path(name) for name in names if not Path(name).is_dir()]
        if not paths:
            raise BadInputError(f"--corpus {shown(pattern)} matches no file; nothing was searched")
        for path in paths:
            try:
                status = path.stat()
            except OSError as error:
                raise BadInputError(f"{path} cannot be read: {error.strerror or error}") from None
            found[str(path)] = CorpusFile(str(path), status.st_size, status.st_mtime_ns)
    return tuple(found[path] for path in sorted(found))


def pieces_of(files: Sequence[CorpusFile], piece_bytes: int = PIECE_BYTES) -> tuple[Piece, ...]:
    """The files as pieces, in their order."""
    pieces: list[Piece] = []
    for file in files:
        if file.kind != "lines" or file.packing or file.size_bytes <= piece_bytes:
            pieces.append(Piece(file))
            continue
        cuts = [*range(0, file.size_bytes, piece_bytes), None]
        pieces += [Piece(file, begin or 0, end) for begin, end in pairwise(cuts)]
    return tuple(pieces)
