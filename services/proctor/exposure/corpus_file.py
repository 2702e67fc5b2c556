"""The files of a corpus, and the pieces of work that they make."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

#: An uncompressed file of lines is read in pieces of about this size, by several processes.
PIECE_BYTES: Final = 32 << 20
_LINES: Final = (".jsonl", ".ndjson", ".json")
_PACKED: Final = (".gz", ".zst")
_SCHEMES: Final = ("s3", "hf")


class Unreadable(Exception):
    """A file that breaks off: what came before was read."""


class CorpusFile(NamedTuple):
    """A file of a corpus, as it was when the scan began."""

    path: str
    """Of this machine, or `s3://…`, or `hf://…`."""
    size_bytes: int
    changed_ns: int
    version: str = ""
    """Of an object in a bucket its ETag, of a file of the hub its digest; nothing of a file of this machine."""

    @property
    def scheme(self) -> str:
        """`s3`, `hf`, or nothing for a file of this machine."""
        scheme, mark, _ = self.path.partition("://")
        return scheme if mark and scheme in _SCHEMES else ""

    @property
    def columns_of(self) -> str:
        """Files for which this is the same have the same columns: not every file of the hub is fetched to look."""
        if self.scheme != "hf":
            return self.path
        repository = "/".join(self.path.split("/")[:5])
        return f"{repository} {self.kind}"

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


def pieces_of(files: Sequence[CorpusFile], piece_bytes: int = PIECE_BYTES) -> tuple[Piece, ...]:
    """The files as pieces, in their order."""
    pieces: list[Piece] = []
    for file in files:
        # A file of the hub is fetched whole.
        if file.kind != "lines" or file.packing or file.scheme == "hf" or file.size_bytes <= piece_bytes:
            pieces.append(Piece(file))
            continue
        cuts = [*range(0, file.size_bytes, piece_bytes), None]
        pieces += [Piece(file, begin or 0, end) for begin, end in pairwise(cuts)]
    return tuple(pieces)
