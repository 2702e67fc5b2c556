"""Whether a worker has work and does not get on with it: then only another process helps.

A worker may answer, hold its connections and take nothing: after a reconnect Celery has been seen to wait on a socket
that nobody looks at any more. Redis gives a message to whoever waits for one before it lies in a list, so a list that
is not empty says that no worker waits at this moment, and one that is not empty for long, beside a worker that takes no
step meanwhile, says that this one does not wait at all.

Not stalled is: a worker without work; one whose broker is away, because another process would find it away too; one
that is inside a task and takes steps, or waits for a server as long as it said it would.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from proctor.domain.errors import StoreError
from proctor.runtime.progress import Progress

#: Looks that must find work and no step between them: one that comes after an hour says nothing of the hour.
_LOOKS: Final = 4


class Stall:
    """Looks now and then, as a probe does.

    Args:
        stall_s: longest time without a step while there is work.
        waiting: messages in the worker's queues; raises StoreError where the broker does not answer.
        in_hand: messages that the worker has taken and not done with, without those that wait for their time.
        progress: the worker's steps.
        clock: the clock of those.
    """

    def __init__(
        self,
        stall_s: float,
        waiting: Callable[[], int],
        in_hand: Callable[[], int],
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stall_s = stall_s
        self._waiting = waiting
        self._in_hand = in_hand
        self._progress = progress
        self._clock = clock
        self._looks = 0
        """In a row, that found work and no step since the one before."""
        self._since_s = 0.0
        """When the first of them was."""

    def look(self) -> str | None:
        """Why the worker is stalled; None where it is not, or nobody can tell."""
        now_s = self._clock()
        try:
            waiting, held = self._waiting(), self._in_hand()
        except StoreError:
            waiting, held = 0, 0
        if not waiting and not held:
            self._looks = 0
            return None
        step_s = self._progress.step_s
        if self._looks == 0 or step_s > self._since_s:
            self._looks, self._since_s = 0, now_s
        self._looks += 1
        # What a task that is done with said of its own waiting says nothing of the next one.
        quiet_until_s = self._progress.quiet_until_s if held else 0.0
        idle_s = now_s - max(self._since_s, quiet_until_s)
        if self._looks < _LOOKS or idle_s <= self._stall_s:
            return None
        return f"no progress for {idle_s:.0f} s, with {waiting} messages waiting and {held} in hand"
