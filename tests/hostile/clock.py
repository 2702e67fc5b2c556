"""Processor time: what an attack may cost, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

#: What took tens of seconds while its time grew with the square of the input takes a hundredth of this now.
QUICK_S = 1.0


@contextmanager
def quick(seconds: float = QUICK_S) -> Iterator[None]:
    """Fails where the block takes more of the processor."""
    start = time.process_time()
    yield
    took = time.process_time() - start
    assert took < seconds, f"took {took:.2f} s of the processor, and may take {seconds:g} s"
