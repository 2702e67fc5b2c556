"""Garbage collection of a process that holds a million objects and makes no cycles of them."""

from __future__ import annotations

import gc
from typing import Final

#: A collection of the youngest objects after so many new ones, and of the older ones after so many of those. With
#: Python's own numbers all trials or variants of an audit are walked through again and again.
_THRESHOLDS: Final = (100_000, 50, 100)


def prepare_for_many_objects() -> None:
    """Collect garbage more seldom, and leave alone what is loaded by now. For a process's start, not for a library."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
