"""A corpus past a search for near duplicates: piece by piece, by MinHash in several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

from proctor.domain.errors import ProctorError
from proctor.exposure.corpus_file import CorpusFile, Piece, Unreadable, pieces_of
from proctor.exposure.documents import columns_by_file, documents
from proctor.exposure.near.matches import Best, Document, Finding, NearMatch
from proctor.exposure.near.minhash import MinhashSearch
from proctor.exposure.scanned import lines_before

#: Text that is looked up at a time.
_BATCH_CHARACTERS: Final = 1 << 20

Progress = Callable[[int, int], None]
"""Told of how many bytes of how many the corpus' files have been read."""


class NearSearch(Protocol):
    """A way to find near duplicates."""

    def look_up(self, documents: Sequence[Document]) -> Iterator[Finding]:
        """What in some documents is like an item."""
        ...

    def finish(self) -> Iterator[Finding]:
        """What can be told once all of them were looked up."""
        ...


class NearScan(NamedTuple):
    """What a search found in a corpus."""

    documents: int
    """That it read."""
    found: Mapping[int, NearMatch]
    """Of each item (its place) that has one, its best near duplicate."""
    refused: Mapping[int, NearMatch]
    """Of each item that has one, the piece of a document that is most like it and asks something else."""


class _PieceNear(NamedTuple):
    documents: int
    lines: int
    best: Best


def scan_near(
    search: NearSearch,
    files: Sequence[CorpusFile],
    columns: Sequence[str] = (),
    progress: Progress = lambda read, total: None,
) -> NearScan:
    """Stream a corpus past a search, in this process.

    Args:
        search: what is looked for, and how.
        files: the corpus.
        columns: which columns of rows hold text; nothing for the usual ones.
        progress: told now and then.
    """
    # Whole files: what is told in the end has lines of its file, not of a piece.
    pieces = [Piece(file) for file in files]
    by_file = columns_by_file(files, columns)
    total = _Total(pieces)
    for number, (piece, tell) in enumerate(zip(pieces, _tellers(pieces, progress), strict=True)):
        total.add(number, _scan(search, piece, by_file[piece.file.path], tell))
    total.finish(search.finish())
    return total.result()


def scan_minhash(
    questions: Sequence[str],
    threshold: float,
    files: Sequence[CorpusFile],
    columns: Sequence[str] = (),
    workers: int = 1,
    progress: Progress = lambda read, total: None,
) -> NearScan:
    """Stream a corpus past items' sentences, in several processes where it has several pieces.

    Raises:
        ProctorError: when a worker died.
    """
    pieces = pieces_of(files)
    if workers < 2 or len(pieces) < 2:
        return scan_near(MinhashSearch(questions, threshold), files, columns, progress)
    by_file = columns_by_file(files, columns)
    total = _Total(pieces)
    sizes = [piece.size_bytes for piece in pieces]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        min(workers, len(pieces)), mp_context=context, initializer=_open, initargs=(list(questions), threshold)
    ) as pool:
        try:
            asked = [pool.submit(_scan_in_worker, piece, by_file[piece.file.path]) for piece in pieces]
            for number, future in enumerate(asked):
                total.add(number, future.result())
                progress(sum(sizes[: number + 1]), sum(sizes))
        except BrokenProcessPool:
            raise ProctorError(
                "a scanning process was killed; is there too little memory? Try again with fewer --workers"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return total.result()


_opened: MinhashSearch | None = None


def _open(questions: Sequence[str], threshold: float) -> None:
    global _opened
    _opened = MinhashSearch(questions, threshold)


def _scan_in_worker(piece: Piece, columns: Sequence[str]) -> _PieceNear:
    assert _opened is not None
    return _scan(_opened, piece, columns, lambda read: None)


def _scan(search: NearSearch, piece: Piece, columns: Sequence[str], tell: Callable[[int], None]) -> _PieceNear:
    best = Best()
    count = lines = 0
    batches = documents(piece, columns)
    while True:
        try:
            batch = next(batches, None)
        except Unreadable:
            # The search by n-grams reads the same files, and counts what could not be read.
            break
        if batch is None:
            break
        raw, waiting, size = batch.data.tobytes(), list[Document](), 0
        for (begin, end), position in zip(pairwise(batch.bounds.tolist()), batch.positions.tolist(), strict=True):
            text = raw[begin:end].decode("utf-8", "surrogateescape")
            waiting.append(Document(piece.file.path, position, text))
            count, size = count + 1, size + len(text)
            if size > _BATCH_CHARACTERS:
                best.add(search.look_up(waiting))
                waiting, size = [], 0
        best.add(search.look_up(waiting))
        lines = batch.lines
        tell(batch.read_bytes)
    return _PieceNear(count, lines, best)


class _Total:
    """Pieces' findings as one."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._best = Best()
        self._documents = 0
        self._lines = [0] * len(pieces)

    def add(self, number: int, scan: _PieceNear) -> None:
        for finding, _ in scan.best.pieces():
            self._best.add([finding], number)
        self._documents += scan.documents
        self._lines[number] = scan.lines

    def finish(self, findings: Iterator[Finding]) -> None:
        self._best.add(findings)

    def result(self) -> NearScan:
        before = lines_before(self._pieces, self._lines)
        found: dict[int, NearMatch] = {}
        refused: dict[int, NearMatch] = {}
        for (item, match), number in self._best.pieces():
            moved = match._replace(document=match.document + before[number])
            (found if match.broken is None else refused)[item] = moved
        return NearScan(self._documents, found, {item: one for item, one in refused.items() if item not in found})


def _tellers(pieces: Sequence[Piece], progress: Progress) -> Iterator[Callable[[int], None]]:
    total, done = sum(piece.size_bytes for piece in pieces), 0
    for piece in pieces:

        def tell(read: int, before: int = done) -> None:
            progress(min(total, before + read), total)

        yield tell
        done += piece.size_bytes
