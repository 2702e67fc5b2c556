"""When something happened first and last, noted by one process and read by another through a file."""

from __future__ import annotations

import mmap
import struct
import time
from pathlib import Path
from typing import Final, NamedTuple

_FORM: Final = struct.Struct("=dd")


class Span(NamedTuple):
    """Seconds of the monotonic clock, which all processes of a machine share; 0 for what has not happened."""

    first: float
    last: float


class Moments:
    """A file with two moments, mapped into memory: to note one costs no more than looking at the clock."""

    def __init__(self, path: Path) -> None:
        """Open the file, which is made where there is none."""
        if not path.exists():
            path.write_bytes(_FORM.pack(0.0, 0.0))
        with path.open("r+b") as stream:
            self._memory = mmap.mmap(stream.fileno(), _FORM.size)

    def note(self) -> None:
        """It happened now."""
        now, first = time.monotonic(), self.span.first
        self._memory[:] = _FORM.pack(first or now, now)

    def forget(self) -> None:
        """It has not happened yet."""
        self._memory[:] = _FORM.pack(0.0, 0.0)

    @property
    def span(self) -> Span:
        """What was noted."""
        return Span(*_FORM.unpack(self._memory[:]))
