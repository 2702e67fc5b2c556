"""What a scan found, of a piece or of all of them; adding pieces up does not hang on who scanned them when."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.exposure.corpus import Piece
from proctor.exposure.index import Index
from proctor.exposure.kernel import Found
from proctor.runtime.files import write_pieces

#: Places that were skipped which are named; all are counted.
SHOWN_SKIPPED: Final = 20
_VERSION: Final = 1


class Window(NamedTuple):
    """What a document says around what was found in it."""

    file: str
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


class Scanned(NamedTuple):
    """A scan of some documents."""

    documents: int
    bytes: int
    """Of the documents' text."""
    lines: int
    skipped: int
    skipped_places: tuple[SkippedPlace, ...]
    """The first ones."""
    unread_bytes: int
    """Of files that broke off, packed as they are."""
    broken_off: tuple[tuple[str, str], ...]
    """These files, and why."""
    found: Found
    windows: Mapping[int, Window]
    """Of each unit of which anything was found, its best document."""


def merged(parts: Sequence[Scanned], pieces: Sequence[Piece], index: Index) -> Scanned:
    """The pieces' scans as one. Of equally good documents the first counts, in the order of files and lines."""
    units, grams = len(index.units), len(index.arrays.weights)
    found = Found(
        weight=np.zeros(units, np.int64),
        distinct=np.zeros(units, np.int32),
        run=np.zeros(units, np.int32),
        document=np.full(units, -1, np.int64),
        longest=np.zeros(units, np.int32),
        whole=np.zeros(units, np.int64),
        documents_with=np.zeros(grams, np.int64),
    )
    windows: dict[int, Window] = {}
    skipped: list[SkippedPlace] = []
    documents = lines_of_file = 0
    file = None
    for part, piece in zip(parts, pieces, strict=True):
        if piece.file != file:
            file, lines_of_file = piece.file, 0
        theirs = part.found
        better = _is_better(theirs, found)
        found.weight[better] = theirs.weight[better]
        found.distinct[better] = theirs.distinct[better]
        found.run[better] = theirs.run[better]
        found.document[better] = theirs.document[better] + documents
        np.maximum(found.longest, theirs.longest, out=found.longest)
        found.whole[:] += theirs.whole
        found.documents_with[:] += theirs.documents_with
        for unit in np.flatnonzero(better).tolist():
            window = part.windows[unit]
            windows[unit] = window._replace(file=piece.file.path, position=window.position + lines_of_file)
        room = SHOWN_SKIPPED - len(skipped)
        skipped += [one._replace(position=one.position + lines_of_file) for one in part.skipped_places[: max(room, 0)]]
        documents += part.documents
        if piece.file.kind == "lines":
            lines_of_file += part.lines
    return Scanned(
        documents=documents,
        bytes=sum(part.bytes for part in parts),
        lines=sum(part.lines for part in parts),
        skipped=sum(part.skipped for part in parts),
        skipped_places=tuple(skipped),
        unread_bytes=sum(part.unread_bytes for part in parts),
        broken_off=tuple(one for part in parts for one in part.broken_off),
        found=found,
        windows=windows,
    )


def _is_better(one: Found, other: Found) -> NDArray[np.bool_]:
    """(U,) where the best document of one is better, by weight, then by n-grams, then by run."""
    weight, distinct, run = one.weight - other.weight, one.distinct - other.distinct, one.run - other.run
    better: NDArray[np.bool_] = (weight > 0) | ((weight == 0) & ((distinct > 0) | ((distinct == 0) & (run > 0))))
    return better


def save_scanned(scanned: Scanned, path: Path) -> None:
    """Keep a piece's scan; what is read there is never half of one."""
    units = sorted(scanned.windows)
    windows = [scanned.windows[unit] for unit in units]
    described = {
        "version": _VERSION,
        **{name: getattr(scanned, name) for name in ("documents", "bytes", "lines", "skipped", "unread_bytes")},
        "skipped_places": scanned.skipped_places,
        "broken_off": scanned.broken_off,
        "windows": [[unit, *one[:3], len(one.text)] for unit, one in zip(units, windows, strict=True)],
    }
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        described=np.frombuffer(json.dumps(described).encode(), dtype=np.uint8),
        texts=np.frombuffer(b"".join(one.text for one in windows), dtype=np.uint8),
        **scanned.found._asdict(),
    )
    write_pieces(path, [buffer.getvalue()])


def load_scanned(path: Path) -> Scanned | None:
    """A kept scan; None where there is none, or none that can be read."""
    try:
        # Opened here: numpy does not close a file that is no archive.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            described = json.loads(arrays["described"].tobytes())
            texts = arrays["texts"].tobytes()
            found = Found(**{name: arrays[name] for name in Found._fields})
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    if described.pop("version", None) != _VERSION:
        return None
    windows: dict[int, Window] = {}
    at = 0
    for unit, file, position, offset, length in described.pop("windows"):
        windows[unit] = Window(file, position, offset, texts[at : at + length])
        at += length
    places = tuple(SkippedPlace(*one) for one in described.pop("skipped_places"))
    broken = tuple((file, why) for file, why in described.pop("broken_off"))
    return Scanned(**described, skipped_places=places, broken_off=broken, found=found, windows=windows)
