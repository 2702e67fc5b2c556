"""Scanning a corpus: its pieces one by one or in several processes, with one result whatever their number."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from proctor.domain.errors import ProctorError
from proctor.exposure.corpus import CorpusFile, Piece, pieces_of
from proctor.exposure.documents import columns_by_file
from proctor.exposure.index import Index, open_index, save_index
from proctor.exposure.piece_scan import PieceScanner
from proctor.exposure.scanned import PieceScan, Scanned, Total, load_piece_scan, save_piece_scan

#: How often progress is told.
_LOOK_S: Final = 0.2
#: Nobody has the counter of pieces for longer than a moment, but one that was killed with it.
_LOCK_S: Final = 30.0

Progress = Callable[[int, int], None]
"""Told of how many bytes of how many the corpus' files have been read."""

Asked = Sequence[tuple[int, tuple[Piece, Sequence[str], bool]]]
"""Pieces to scan: each one's number, then the piece, its columns of text, and whether markup is taken out."""


def scan_corpus(
    index: Index,
    files: Sequence[CorpusFile],
    *,
    columns: Sequence[str] = (),
    markup: bool = False,
    workers: int = 1,
    state: Path | None = None,
    progress: Progress = lambda read, total: None,
) -> Scanned:
    """Stream a corpus past an index.

    Args:
        index: what is looked for.
        files: the corpus.
        columns: which columns of rows hold text; nothing for the usual ones.
        markup: whether documents' markup is taken out, as the index' items' must have been.
        workers: processes.
        state: a folder in which what is done is kept, piece by piece; what it holds of the same index and file, as it
            is now, is not done again.
        progress: told now and then.

    Raises:
        BadInputError: when a file cannot be opened, or has no column of text.
        ProctorError: when a worker died.
    """
    by_file = columns_by_file(files, columns)
    pieces = pieces_of(files)
    total = Total(pieces, len(index.units), len(index.arrays.weights))
    sizes = [piece.size_bytes for piece in pieces]
    keys = [_key(index, piece, by_file[piece.file.path], markup) for piece in pieces]
    todo: list[int] = []
    for number, key in enumerate(keys):
        if state is not None and (kept := load_piece_scan(state / key)) is not None:
            total.add(number, kept)
        else:
            todo.append(number)
    all_bytes = sum(file.size_bytes for file in files)
    done_bytes = all_bytes - sum(sizes[number] for number in todo)

    def finish(number: int, scan: PieceScan) -> None:
        nonlocal done_bytes
        total.add(number, scan)
        done_bytes += sizes[number]
        if state is not None:
            save_piece_scan(scan, state / keys[number])

    def tell(under_way: int) -> None:
        progress(min(all_bytes, done_bytes + under_way), all_bytes)

    tell(0)
    asked = [(number, (pieces[number], by_file[pieces[number].file.path], markup)) for number in todo]
    if workers > 1 and len(todo) > 1:
        _in_processes(index, asked, min(workers, len(todo)), finish, tell)
    else:
        scanner = PieceScanner(index)
        for number, what in asked:
            finish(number, scanner.scan(*what, tell))
    tell(0)
    return total.result()


def _key(index: Index, piece: Piece, columns: Sequence[str], markup: bool) -> str:
    file = piece.file
    path = file.path if file.scheme else str(Path(file.path).absolute())
    said = [
        index.digest,
        path,
        file.size_bytes,
        file.changed_ns,
        file.version,
        piece.begin,
        piece.end,
        list(columns),
        markup,
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


class _Shared(NamedTuple):
    """What the processes of a scan have in common."""

    taken: Any
    """A counter: how many of the pieces somebody has taken."""
    read: Any
    """Of each piece under way, how many bytes were read."""


class _Worker(NamedTuple):
    scanner: PieceScanner
    asked: Asked
    shared: _Shared

    def next_piece(self, tell: Callable[[], None] = lambda: None) -> tuple[int, PieceScan] | None:
        """Scan a piece that nobody has taken; None where there is none."""
        lock = self.shared.taken.get_lock()
        if not lock.acquire(timeout=_LOCK_S):
            raise BrokenProcessPool("a process died while it took a piece")
        try:
            place = self.shared.taken.value
            self.shared.taken.value = place + 1
        finally:
            lock.release()
        if place >= len(self.asked):
            return None
        number, (piece, columns, markup) = self.asked[place]

        def told(count: int) -> None:
            self.shared.read[place] = count
            tell()

        scan = self.scanner.scan(piece, columns, markup, told)
        self.shared.read[place] = 0
        return number, scan


#: Of a process that was started for a scan.
_worker: _Worker | None = None


def _open(index: Index | Path, asked: Asked, shared: _Shared) -> None:
    global _worker
    _worker = _Worker(PieceScanner(open_index(index) if isinstance(index, Path) else index), asked, shared)


def _next_piece() -> tuple[int, PieceScan] | None:
    assert _worker is not None
    return _worker.next_piece()


def start_method(pieces: Iterable[Piece]) -> Literal["fork", "spawn"]:
    """How further processes are started. A forked one has the index and the compiled code at once, where another takes
    more than a second; but it also has the locks that another thread held, and connections to a bucket."""
    alone = sys.platform == "linux" and threading.active_count() == 1
    return "fork" if alone and not any(piece.file.scheme for piece in pieces) else "spawn"


def _in_processes(
    index: Index,
    asked: Asked,
    workers: int,
    finish: Callable[[int, PieceScan], None],
    tell: Callable[[int], None],
) -> None:
    """Scan pieces in this process and in others: each takes the next when it has done one, so that none is idle."""
    context = multiprocessing.get_context(start_method(what[0] for _, what in asked))
    shared = _Shared(context.Value("q", 0), context.Array("q", len(asked), lock=False))
    running: set[Future[tuple[int, PieceScan] | None]] = set()

    def gather(timeout_s: float) -> None:
        nonlocal running
        ended, running = wait(running, timeout=timeout_s, return_when=FIRST_COMPLETED)
        for future in ended:
            if (done := future.result()) is not None:
                finish(*done)
        tell(sum(shared.read))

    with tempfile.TemporaryDirectory(prefix="proctor-index-") as folder:
        handed: Index | Path = index
        if context.get_start_method() != "fork":
            handed = Path(folder)
            save_index(index, handed)
        pool = ProcessPoolExecutor(workers - 1, mp_context=context, initializer=_open, initargs=(handed, asked, shared))
        try:
            # More than the others will find to do: what comes too late has nothing left to take.
            running.update(pool.submit(_next_piece) for _ in asked)
            own = _Worker(PieceScanner(index), asked, shared)
            while (done := own.next_piece(lambda: gather(0.0))) is not None:
                finish(*done)
            while running:
                gather(_LOOK_S)
        except BrokenProcessPool:
            raise ProctorError(
                "a scanning process was killed; is there too little memory? Try again with fewer --workers"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
