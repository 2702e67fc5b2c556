"""Scanning a corpus: its pieces one by one or in several processes, with one result whatever their number."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Final

from proctor.domain.errors import ProctorError
from proctor.exposure.corpus import CorpusFile, Piece, pieces_of
from proctor.exposure.documents import columns_by_file
from proctor.exposure.index import Index, open_index, save_index
from proctor.exposure.piece_scan import PieceScanner
from proctor.exposure.scanned import PieceScan, Scanned, Total, load_piece_scan, save_piece_scan

#: How often progress is told.
_LOOK_S: Final = 0.2

Progress = Callable[[int, int], None]
"""Told of how many bytes of how many the corpus' files have been read."""


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
    asked = {number: (pieces[number], by_file[pieces[number].file.path], markup) for number in todo}
    if workers > 1 and len(todo) > 1:
        _in_processes(index, asked, min(workers, len(todo)), finish, tell)
    else:
        scanner = PieceScanner(index)
        for number, what in asked.items():
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


#: Of a worker: its scanner, and where it says how far it has come.
_opened: tuple[PieceScanner, Any] | None = None


def _open(folder: str, read: Any) -> None:
    global _opened
    _opened = PieceScanner(open_index(Path(folder))), read


def _scan(number: int, piece: Piece, columns: Sequence[str], markup: bool) -> PieceScan:
    assert _opened is not None
    scanner, read = _opened

    def tell(count: int) -> None:
        read[number] = count

    return scanner.scan(piece, columns, markup, tell)


def _in_processes(
    index: Index,
    asked: Mapping[int, tuple[Piece, Sequence[str], bool]],
    workers: int,
    finish: Callable[[int, PieceScan], None],
    tell: Callable[[int], None],
) -> None:
    """Scan pieces in this process, from the last one on, and in others, from the first one on.

    This one begins at once; another takes a second to start.
    """
    # Spawned, not forked: the caller may have threads, and compiled code is loaded from its cache.
    context = multiprocessing.get_context("spawn")
    read = context.Array("q", max(asked) + 1, lock=False)
    running: dict[Future[PieceScan], int] = {}

    def gather(timeout_s: float) -> None:
        ended, _ = wait(running, timeout=timeout_s, return_when=FIRST_COMPLETED)
        for future in ended:
            number = running.pop(future)
            read[number] = 0
            finish(number, future.result())
        tell(sum(read))

    with tempfile.TemporaryDirectory(prefix="proctor-index-") as folder:
        save_index(index, Path(folder))
        pool = ProcessPoolExecutor(workers - 1, mp_context=context, initializer=_open, initargs=(folder, read))
        try:
            scanner = PieceScanner(index)
            running.update((pool.submit(_scan, number, *what), number) for number, what in asked.items())
            for future, number in reversed(list(running.items())):
                if future.cancel():
                    del running[future]

                    def told(count: int, number: int = number) -> None:
                        read[number] = count
                        gather(0.0)

                    scan = scanner.scan(*asked[number], told)
                    read[number] = 0
                    finish(number, scan)
            while running:
                gather(_LOOK_S)
        except BrokenProcessPool:
            raise ProctorError(
                "a scanning process was killed; is there too little memory? Try again with fewer --workers"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
