"""Documents one by one, for rules that look at each as text; what could not be read is counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from proctor.exposure.corpus_file import CorpusFile, Piece, Unreadable
from proctor.exposure.documents import columns_by_file, documents
from proctor.exposure.scanned import SHOWN_SKIPPED, Counts, SkippedPlace


class ReadDocument(NamedTuple):
    """A document."""

    file: str
    position: int
    """Its line or row, from 1; in plain text its first byte."""
    data: bytes
    """UTF-8, with the byte 0xFF between columns."""


class Reading:
    """A corpus, document by document.

    Args:
        files: the corpus.
        columns: which columns of rows hold text; nothing for the usual ones.
    """

    def __init__(self, files: Sequence[CorpusFile], columns: Sequence[str]) -> None:
        self._files = files
        self._columns = columns_by_file(files, columns)
        self._documents = self._bytes = self._skipped = self._unread = 0
        self._places: list[SkippedPlace] = []
        self._broken_off: list[tuple[str, str]] = []

    def __iter__(self) -> Iterator[ReadDocument]:
        """Every document, once.

        Raises:
            BadInputError: for a file that cannot be opened.
        """
        for file in self._files:
            read = 0
            batches = documents(Piece(file), self._columns[file.path])
            while True:
                try:
                    batch = next(batches, None)
                except Unreadable as error:
                    self._broken_off.append((file.path, str(error)))
                    self._unread += file.size_bytes - read
                    break
                if batch is None:
                    break
                read = batch.read_bytes
                self._skipped += len(batch.skipped)
                self._places += [SkippedPlace(file.path, *one) for one in batch.skipped]
                del self._places[SHOWN_SKIPPED:]
                raw = batch.data.tobytes()
                for (begin, end), position in zip(
                    pairwise(batch.bounds.tolist()), batch.positions.tolist(), strict=True
                ):
                    self._documents += 1
                    self._bytes += end - begin
                    yield ReadDocument(file.path, position, raw[begin:end])

    @property
    def counts(self) -> Counts:
        """How much has been read so far, and what was not."""
        return Counts(
            self._documents,
            self._bytes,
            self._skipped,
            tuple(self._places),
            self._unread,
            tuple(self._broken_off),
        )
