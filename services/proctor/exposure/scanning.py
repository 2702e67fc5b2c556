"""Scanning a corpus: its pieces one by one or in several processes, with one result whatever their number."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Final

from proctor.domain.errors import ProctorError
from proctor.exposure.corpus import CorpusFile, Piece, pieces_of
from proctor.exposure.documents import text_columns
from proctor.exposure.index import Index, open_index, save_index
from proctor.exposure.piece_scan import scan_piece
from proctor.exposure.scanned import Scanned, load_scanned, merged, save_scanned

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
    by_file = {file.path: text_columns(file, columns) for file in files}
    pieces = pieces_of(files)
    total = sum(file.size_bytes for file in files)
    done: dict[int, Scanned] = {}
    keys = [_key(index, piece, by_file[piece.file.path], markup) for piece in pieces]
    if state is not None:
        for number, key in enumerate(keys):
            if (kept := load_scanned(state / key)) is not None:
                done[number] = kept
    sizes = [_size(piece) for piece in pieces]
    todo = [number for number in range(len(pieces)) if number not in done]

    def finish(number: int, scanned: Scanned) -> None:
        done[number] = scanned
        if state is not None:
            save_scanned(scanned, state / keys[number])

    def tell(under_way: int) -> None:
        progress(min(total, under_way + sum(sizes[number] for number in done)), total)

    tell(0)
    if workers > 1 and len(todo) > 1:
        _in_processes(index, pieces, todo, by_file, markup, min(workers, len(todo)), finish, tell)
    else:
        for number in todo:
            piece = pieces[number]
            finish(number, scan_piece(index, piece, by_file[piece.file.path], markup, tell))
            tell(0)
    return merged([done[number] for number in range(len(pieces))], pieces, index)


def _size(piece: Piece) -> int:
    end = piece.file.size_bytes if piece.end is None else piece.end
    return end - piece.begin


def _key(index: Index, piece: Piece, columns: Sequence[str], markup: bool) -> str:
    file = piece.file
    path = str(Path(file.path).absolute())
    said = [index.digest, path, file.size_bytes, file.changed_ns, piece.begin, piece.end, list(columns), markup]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


#: Of a worker: its index, and where it says how far it has come.
_opened: tuple[Index, Any] | None = None


def _open(folder: str, read: Any) -> None:
    global _opened
    _opened = open_index(Path(folder)), read


def _scan(number: int, piece: Piece, columns: Sequence[str], markup: bool) -> Scanned:
    assert _opened is not None
    index, read = _opened

    def tell(count: int) -> None:
        read[number] = count

    return scan_piece(index, piece, columns, markup, tell)


def _in_processes(
    index: Index,
    pieces: Sequence[Piece],
    todo: Sequence[int],
    columns: dict[str, tuple[str, ...]],
    markup: bool,
    workers: int,
    finish: Callable[[int, Scanned], None],
    tell: Callable[[int], None],
) -> None:
    # Spawned, not forked: the caller may have threads, and compiled code is loaded from its cache.
    context = multiprocessing.get_context("spawn")
    read = context.Array("q", len(pieces), lock=False)
    with tempfile.TemporaryDirectory(prefix="proctor-index-") as folder:
        save_index(index, Path(folder))
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_open, initargs=(folder, read))
        try:
            running: dict[Future[Scanned], int] = {
                pool.submit(_scan, number, pieces[number], columns[pieces[number].file.path], markup): number
                for number in todo
            }
            while running:
                ended, _ = wait(running, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
                for future in ended:
                    finish(running.pop(future), future.result())
                tell(sum(read[number] for number in running.values()))
        except BrokenProcessPool:
            raise ProctorError(
                "a scanning process was killed; is there too little memory? Try again with fewer --workers"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
