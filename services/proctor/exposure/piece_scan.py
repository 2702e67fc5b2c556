"""One piece of a corpus past the index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from proctor.exposure import kernel
from proctor.exposure.corpus_file import Piece, Unreadable
from proctor.exposure.documents import Batch, documents
from proctor.exposure.evidence_window import keep
from proctor.exposure.index import Index
from proctor.exposure.kernel import Better, IndexArrays, Scratch
from proctor.exposure.scanned import SHOWN_SKIPPED, PieceScan, SkippedPlace, Window, forget, no_finds, sparse
from proctor.text.overlap_words import without_markup

_BETTER: Final = 1 << 14


class PieceScanner:
    """Looks pieces up, one after the other; what an index of 10^5 items needs of memory for it is made once.

    Args:
        index: what is looked for.
    """

    def __init__(self, index: Index) -> None:
        units, grams = len(index.units), len(index.arrays.weights)
        self._index = index
        self._found = no_finds(units, grams)
        self._scratch = _scratch(index.arrays, units)
        self._better = _better(max(_BETTER, 2 * units))
        # Of all pieces, since what is noted in the scratch is never wiped out: no two documents have one number.
        self._documents = self._bytes = 0

    def scan(self, piece: Piece, columns: Sequence[str], markup: bool, tell: Callable[[int], None]) -> PieceScan:
        """Look all documents of a piece up.

        Args:
            piece: where.
            columns: which columns of rows hold text.
            markup: whether markup is taken out of the documents first.
            tell: told how many bytes of the piece have been read.
        """
        windows: dict[int, Window] = {}
        skipped: list[SkippedPlace] = []
        skipped_count = count = size = read = lines = 0
        broken_off: str | None = None
        batches = documents(piece, columns)
        while True:
            try:
                batch = next(batches, None)
            except Unreadable as error:
                broken_off = str(error)
                break
            if batch is None:
                break
            if markup:
                batch = _without_markup(batch)
            self._look_up(batch, windows)
            count += len(batch.bounds) - 1
            size += int(batch.bounds[-1])
            read, lines = batch.read_bytes, batch.lines
            skipped_count += len(batch.skipped)
            room = SHOWN_SKIPPED - len(skipped)
            skipped += [SkippedPlace(piece.file.path, *one) for one in batch.skipped[: max(room, 0)]]
            tell(read)
        found = sparse(self._found)
        forget(self._found, found)
        return PieceScan(
            documents=count,
            bytes=size,
            lines=lines,
            skipped=skipped_count,
            skipped_places=tuple(skipped),
            unread_bytes=max(0, piece.file.size_bytes - read) if broken_off is not None else 0,
            broken_off=broken_off,
            found=found,
            windows=windows,
        )

    def _look_up(self, batch: Batch, windows: dict[int, Window]) -> None:
        at, last = 0, len(batch.bounds) - 1
        while at < last:
            at, improved = kernel.scan(
                batch.data,
                batch.bounds,
                at,
                self._documents,
                self._bytes,
                self._index.letters,
                self._index.arrays,
                self._found,
                self._scratch,
                self._better,
            )
            keep(windows, self._better, improved, batch, self._index.units)
        self._documents += last
        self._bytes += int(batch.bounds[-1])


def _without_markup(batch: Batch) -> Batch:
    raw = batch.data.tobytes()
    ends = batch.bounds.tolist()
    texts = [without_markup(raw[begin:end].decode("utf-8", "replace")).encode() for begin, end in pairwise(ends)]
    bounds = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
    data = np.frombuffer(bytearray(b"".join(texts) or b" "), dtype=np.uint8)
    return batch._replace(data=data, bounds=bounds)


def _scratch(arrays: IndexArrays, units: int) -> Scratch:
    grams, places = len(arrays.weights), len(arrays.place_units)
    return Scratch(
        gram_document=np.full(grams, -1, np.int64),
        unit_document=np.full(units, -1, np.int64),
        unit_weight=np.zeros(units, np.int64),
        unit_distinct=np.zeros(units, np.int32),
        unit_longest=np.zeros(units, np.int32),
        unit_first=np.zeros(units, np.int64),
        unit_last=np.zeros(units, np.int64),
        unit_run_first=np.zeros(units, np.int64),
        unit_run_last=np.zeros(units, np.int64),
        reached=np.full(places, -2, np.int64),
        run=np.zeros(places, np.int32),
        touched=np.zeros(units, np.int32),
    )


def _better(room: int) -> Better:
    return Better(
        unit=np.zeros(room, np.int32),
        document=np.zeros(room, np.int64),
        first=np.zeros(room, np.int64),
        last=np.zeros(room, np.int64),
        run_first=np.zeros(room, np.int64),
        run_last=np.zeros(room, np.int64),
    )
