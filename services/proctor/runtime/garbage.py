"""Garbage collection of processes that make many objects and few cycles of them."""

from __future__ import annotations

import gc
from typing import Final

#: A collection of the youngest objects after so many new ones, and of the older ones after so many of those. With
#: Python's own numbers all trials or variants of an audit are walked through again and again.
_THRESHOLDS: Final = (100_000, 50, 100)


def collect_seldom() -> None:
    """Collect garbage more seldom. First of all: by Python's own numbers a sixth of the time of imports goes there."""
    gc.set_threshold(*_THRESHOLDS)


def prepare_for_many_objects() -> None:
    """The same, and leave alone what is loaded by now. For a process's start, not for a library."""
    gc.collect()
    gc.freeze()
    collect_seldom()
