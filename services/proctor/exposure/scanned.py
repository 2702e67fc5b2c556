"""What a scan found: of a piece, which is little, and of all pieces, added up in whatever order they come in."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.exposure.corpus import Piece
from proctor.exposure.kernel import Found
from proctor.runtime.files import write_pieces

#: Places that were skipped which are named; all are counted.
SHOWN_SKIPPED: Final = 20
_VERSION: Final = 3


class Window(NamedTuple):
    """What a document says around what was found in it."""

    position: int
    """The document's line or row, from 1; in plain text its first byte."""
    offset_bytes: int
    """Where the text begins in the document."""
    text: bytes


class SkippedPlace(NamedTuple):
    """Something that was not read, and why."""

    file: str
    position: int
    reason: str


class Finds(NamedTuple):
    """Of a piece, the units and n-grams of which anything was found; columns as in `Found`."""

    units: NDArray[np.int32]
    weight: NDArray[np.int64]
    distinct: NDArray[np.int32]
    run: NDArray[np.int32]
    longest: NDArray[np.int32]
    whole: NDArray[np.int64]
    grams: NDArray[np.int64]
    documents_with: NDArray[np.int64]


class PieceScan(NamedTuple):
    """A scan of a piece."""

    documents: int
    bytes: int
    """Of the documents' text."""
    lines: int
    skipped: int
    skipped_places: tuple[SkippedPlace, ...]
    """The first ones."""
    unread_bytes: int
    """Of a file that broke off, packed as it is."""
    broken_off: str | None
    """Why it did."""
    found: Finds
    windows: dict[int, Window]
    """Of each unit that has n-grams here, its best document."""


class Counts(NamedTuple):
    """How much of a corpus was read, and what was not."""

    documents: int
    bytes: int
    """Of the documents' text."""
    skipped: int
    skipped_places: tuple[SkippedPlace, ...]
    """The first ones."""
    unread_bytes: int
    """Of files that broke off, packed as they are."""
    broken_off: tuple[tuple[str, str], ...]
    """These files, and why."""


class Scanned(NamedTuple):
    """A scan of a corpus."""

    counts: Counts
    found: Found
    windows: dict[int, tuple[str, Window]]
    """Of each unit of which anything was found, its best document, and the file that it is in."""


def no_finds(units: int, grams: int) -> Found:
    """Nothing found yet."""
    return Found(
        weight=np.zeros(units, np.int64),
        distinct=np.zeros(units, np.int32),
        run=np.zeros(units, np.int32),
        longest=np.zeros(units, np.int32),
        whole=np.zeros(units, np.int64),
        documents_with=np.zeros(grams, np.int64),
    )


def sparse(found: Found) -> Finds:
    """What was found without all that was not."""
    units = np.flatnonzero((found.longest > 0) | (found.whole > 0)).astype(np.int32)
    grams = np.flatnonzero(found.documents_with)
    return Finds(
        units=units,
        weight=found.weight[units],
        distinct=found.distinct[units],
        run=found.run[units],
        longest=found.longest[units],
        whole=found.whole[units],
        grams=grams,
        documents_with=found.documents_with[grams],
    )


def forget(found: Found, finds: Finds) -> None:
    """Nothing found again, where these are all that was."""
    for column in (found.weight, found.distinct, found.run, found.longest, found.whole):
        column[finds.units] = 0
    found.documents_with[finds.grams] = 0


class Total:
    """Pieces' scans as one. Of equally good documents the first counts, in the order of files and lines.

    Args:
        pieces: all of them, in their order.
        units: how many the index has.
        grams: how many n-grams it has.
    """

    def __init__(self, pieces: Sequence[Piece], units: int, grams: int) -> None:
        self._pieces = pieces
        self._found = no_finds(units, grams)
        self._best_piece = np.full(units, len(pieces), dtype=np.int64)
        self._windows: dict[int, Window] = {}
        self._counts: dict[int, PieceScan] = {}

    def add(self, number: int, scan: PieceScan) -> None:
        """Add the scan of a piece, once."""
        mine, theirs, at = self._found, scan.found, scan.found.units
        better = self._is_better(number, theirs) & (theirs.distinct > 0)
        units = at[better]
        mine.weight[units] = theirs.weight[better]
        mine.distinct[units] = theirs.distinct[better]
        mine.run[units] = theirs.run[better]
        self._best_piece[units] = number
        for unit in units.tolist():
            self._windows[unit] = scan.windows[unit]
        mine.longest[at] = np.maximum(mine.longest[at], theirs.longest)
        mine.whole[at] += theirs.whole
        mine.documents_with[theirs.grams] += theirs.documents_with
        # What is large of it has been taken over.
        self._counts[number] = scan._replace(found=_NOTHING, windows={})

    def _is_better(self, number: int, theirs: Finds) -> NDArray[np.bool_]:
        at = theirs.units
        better = np.zeros(len(at), dtype=bool)
        equal = np.ones(len(at), dtype=bool)
        for own, other in (
            (self._found.weight[at], theirs.weight),
            (self._found.distinct[at], theirs.distinct),
            (self._found.run[at], theirs.run),
        ):
            better |= equal & (other > own)
            equal &= other == own
        first: NDArray[np.bool_] = better | (equal & (number < self._best_piece[at]))
        return first

    def result(self) -> Scanned:
        """The whole, once every piece was added."""
        counts = [self._counts[number] for number in range(len(self._pieces))]
        before = lines_before(self._pieces, [scan.lines for scan in counts])
        places = [
            place._replace(position=place.position + lines)
            for scan, lines in zip(counts, before, strict=True)
            for place in scan.skipped_places
        ]
        windows: dict[int, tuple[str, Window]] = {}
        for unit in sorted(self._windows):
            number, window = int(self._best_piece[unit]), self._windows[unit]
            moved = window._replace(position=window.position + before[number])
            windows[unit] = self._pieces[number].file.path, moved
        return Scanned(
            Counts(
                documents=sum(scan.documents for scan in counts),
                bytes=sum(scan.bytes for scan in counts),
                skipped=sum(scan.skipped for scan in counts),
                skipped_places=tuple(places[:SHOWN_SKIPPED]),
                unread_bytes=sum(scan.unread_bytes for scan in counts),
                broken_off=tuple(
                    (piece.file.path, scan.broken_off)
                    for piece, scan in zip(self._pieces, counts, strict=True)
                    if scan.broken_off is not None
                ),
            ),
            found=self._found,
            windows=windows,
        )


def lines_before(pieces: Sequence[Piece], lines: Sequence[int]) -> list[int]:
    """How many lines of its file come before each piece, by how many each has."""
    found: list[int] = []
    before, file = 0, None
    for piece, own in zip(pieces, lines, strict=True):
        if piece.file != file:
            before, file = 0, piece.file
        found.append(before)
        before += own
    return found


_NOTHING: Final = sparse(no_finds(0, 0))


def save_piece_scan(scan: PieceScan, path: Path) -> None:
    """Keep a piece's scan; what is read there is never half of one."""
    units = sorted(scan.windows)
    windows = [scan.windows[unit] for unit in units]
    described = {
        "version": _VERSION,
        **{name: getattr(scan, name) for name in _DESCRIBED},
        "skipped_places": scan.skipped_places,
        "windows": [[unit, *one[:2], len(one.text)] for unit, one in zip(units, windows, strict=True)],
    }
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        described=np.frombuffer(json.dumps(described).encode(), dtype=np.uint8),
        texts=np.frombuffer(b"".join(one.text for one in windows), dtype=np.uint8),
        **scan.found._asdict(),
    )
    write_pieces(path, [buffer.getvalue()])


_DESCRIBED: Final = ("documents", "bytes", "lines", "skipped", "unread_bytes", "broken_off")


def load_piece_scan(path: Path) -> PieceScan | None:
    """A kept scan; None where there is none, or none that can be read."""
    try:
        # Opened here: numpy does not close a file that is no archive.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            described = json.loads(arrays["described"].tobytes())
            if described["version"] != _VERSION:
                return None
            texts = arrays["texts"].tobytes()
            found = Finds(**{name: arrays[name] for name in Finds._fields})
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    windows: dict[int, Window] = {}
    at = 0
    for unit, position, offset, length in described["windows"]:
        windows[unit] = Window(position, offset, texts[at : at + length])
        at += length
    return PieceScan(
        **{name: described[name] for name in _DESCRIBED},
        skipped_places=tuple(SkippedPlace(*one) for one in described["skipped_places"]),
        found=found,
        windows=windows,
    )
