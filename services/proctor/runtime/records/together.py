"""Writing what many ask for at once in one transaction: each waits for one look at the disk, and not for all before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

Row = TypeVar("Row")


class Together(Generic[Row]):
    """A write that threads share: the first to come writes its own, then what came meanwhile for the others.

    Args:
        write: takes rows, all or none, and gives the keys of those that were new.
    """

    def __init__(self, write: Callable[[Sequence[Row]], frozenset[str]]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._waiting: list[tuple[Sequence[Row], Future[frozenset[str]]]] = []
        self._led = False

    def __call__(self, rows: Sequence[Row]) -> frozenset[str]:
        """Have rows written; gives the keys that were new, of these and of what was written with them.

        Raises what `write` raised.
        """
        mine: Future[frozenset[str]] = Future()
        with self._lock:
            self._waiting.append((rows, mine))
            lead, self._led = not self._led, True
        while lead:
            with self._lock:
                batch, self._waiting = self._waiting, []
                self._led = bool(batch)
            if not batch:
                break
            self._written(batch)
        return mine.result()

    def _written(self, batch: list[tuple[Sequence[Row], Future[frozenset[str]]]]) -> None:
        try:
            new = self._write([row for rows, _ in batch for row in rows])
        except BaseException as error:
            for _, future in batch:
                future.set_exception(error)
        else:
            for _, future in batch:
                future.set_result(new)
