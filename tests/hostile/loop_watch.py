"""How long an event loop stands: the processor time of its longest step, which another process does not change."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

#: What no step of a loop may take (issue: "nothing longer than 50 ms on an event loop").
LONGEST_STEP_S = 0.05


class LoopWatch:
    """The longest step so far, of any loop of this process."""

    longest_s = 0.0


@contextmanager
def loop_watch() -> Iterator[LoopWatch]:
    """Time every step of the loops that run in the block."""
    watch, run = LoopWatch(), asyncio.events.Handle._run

    def timed(handle: Any) -> None:
        before_s = time.thread_time()
        try:
            run(handle)
        finally:
            watch.longest_s = max(watch.longest_s, time.thread_time() - before_s)

    # What the tests before have left is not collected in a step of this one, nor ever: thawing it would thaw all that
    # was set aside when the tests had been collected.
    gc.collect()
    gc.freeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.events.Handle, "_run", timed)
        yield watch
