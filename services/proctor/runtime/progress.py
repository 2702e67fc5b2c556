"""When a worker last got on with a message, told by whichever of its processes did.

A task may take long and be well: a shard has until its deadline, a benchmark takes its time to be reworded. So it is
not the end of a task that counts, but each step of one, and whoever waits for another program says for how long it may
hear nothing. The moment is in memory that a worker's processes share: its pool may be threads, children, or itself.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

#: The moment of the last step, and until when nothing needs to be heard, by the clock that all processes share.
_MOMENT: Final = struct.Struct("d")
_STEP, _QUIET = 0, _MOMENT.size

#: Whether a message is being handled here. Retention and the like go on in threads beside it, consumer or not.
_handling: ContextVar[bool] = ContextVar("handling", default=False)


class Progress:
    """The last step of a worker's messages. Made before its processes are forked, and shared with them."""

    def __init__(self) -> None:
        # Aligned words, each written at once: who reads beside a writer reads the one before, or the new one.
        self._memory = mmap.mmap(-1, 2 * _MOMENT.size)

    @property
    def step_s(self) -> float:
        """When it last got on (`time.monotonic`); 0 before the first time."""
        return self._read(_STEP)

    @property
    def quiet_until_s(self) -> float:
        """Until when a message in hand may be silent."""
        return self._read(_QUIET)

    def note(self, *, quiet_for_s: float = 0.0) -> None:
        """A step was taken, and the next may take so long."""
        now_s = time.monotonic()
        _MOMENT.pack_into(self._memory, _STEP, now_s)
        if quiet_for_s and now_s + quiet_for_s > self.quiet_until_s:
            _MOMENT.pack_into(self._memory, _QUIET, now_s + quiet_for_s)

    def _read(self, place: int) -> float:
        moment: float = _MOMENT.unpack_from(self._memory, place)[0]
        return moment


_progress: Progress | None = None


def note_in(progress: Progress | None) -> None:
    """Note steps here from now on, in this process and in those that it forks; None notes nothing."""
    global _progress
    _progress = progress


@contextmanager
def handling() -> Iterator[None]:
    """A message is handled while the block lasts: its beginning and end are steps, and so is what is noted in it."""
    token = _handling.set(True)
    note_step()
    try:
        yield
    finally:
        note_step()
        _handling.reset(token)


def note_step(*, quiet_for_s: float = 0.0) -> None:
    """The message in hand has got on.

    Args:
        quiet_for_s: how long the next step may take, where it is another program's.
    """
    if _progress is not None and _handling.get():
        _progress.note(quiet_for_s=quiet_for_s)
