"""Deliveries before audits: who sends one waits for an answer, and gives up; an audit that is begun later is not late.

Both write to the record store, which in SQLite lets one write at a time and has to wait for the disk each time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: After the last delivery of a burst.
_QUIET_S: Final = 0.05
#: However many come: what is begun one by one still ends.
_LONGEST_S: Final = 0.5


class Traffic:
    """Deliveries that are being taken in, in whatever thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = 0
        self._last_s = float("-inf")

    @contextmanager
    def delivery(self) -> Iterator[None]:
        """One is being taken in while the block lasts."""
        with self._changed:
            self._open += 1
        try:
            yield
        finally:
            with self._changed:
                self._open -= 1
                self._last_s = time.monotonic()
                self._changed.notify_all()

    def give_way(self) -> None:
        """Wait until no delivery has come for a moment, for half a second at the longest."""
        until_s = time.monotonic() + _LONGEST_S
        with self._changed:
            while (now_s := time.monotonic()) < until_s:
                quiet_s = self._last_s + _QUIET_S
                if not self._open and now_s >= quiet_s:
                    return
                # Woken by the last one's end, or after its quiet.
                self._changed.wait(min(until_s, quiet_s if not self._open else until_s) - now_s)
