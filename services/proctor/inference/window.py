"""Bounds what is in flight to one endpoint, in requests and in bytes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: Enough to keep a server's batches full, few enough that a server that hangs holds up little.
MAX_REQUESTS = 64
#: 64 prompts of the largest size would fill a container's default /dev/shm, through which Triton passes them.
MAX_BYTES = 16 << 20


class Window:
    """A counter of requests and bytes; `acquire` waits in line until both fit."""

    def __init__(self, max_requests: int = MAX_REQUESTS, max_bytes: int = MAX_BYTES) -> None:
        self._requests = max_requests
        self._bytes = max_bytes
        self._held_requests = 0
        self._held_bytes = 0
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def acquire(self, size: int) -> None:
        """Take a place for `size` bytes; something larger than the window travels alone."""
        if not self._line and self._fits(size):
            self._take(size)
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append((size, place))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                # Cancelled in the moment between being let in and running on: hand the place to the next.
                self.release(size)
            else:
                self._line = deque(waiting for waiting in self._line if waiting[1] is not place)
                self._admit()
            raise

    @property
    def held(self) -> int:
        """Requests that have a place."""
        return self._held_requests

    def try_acquire(self, size: int) -> bool:
        """Take a place if one is free now."""
        if self._line or not self._fits(size):
            return False
        self._take(size)
        return True

    def fits(self, size: int) -> bool:
        """Whether `try_acquire` would take a place now."""
        return not self._line and self._fits(size)

    def release(self, size: int) -> None:
        """Give a place back."""
        self._held_requests -= 1
        self._held_bytes -= size
        self._admit()

    def _fits(self, size: int) -> bool:
        if self._held_requests == 0:
            return True
        return self._held_requests < self._requests and self._held_bytes + size <= self._bytes

    def _take(self, size: int) -> None:
        self._held_requests += 1
        self._held_bytes += size

    def _admit(self) -> None:
        while self._line and self._fits(self._line[0][0]):
            size, place = self._line.popleft()
            if not place.done():
                self._take(size)
                place.set_result(None)


async def map_bounded(
    window: Window, items: Sequence[T], size: Callable[[T], int], function: Callable[[T], Awaitable[R]]
) -> list[R]:
    """Await `function` of every item, within the window; results in the items' order.

    When one call raises, or the caller is cancelled, the others are cancelled too.
    """

    tasks: list[asyncio.Future[R]] = []
    try:
        for item in items:
            taken = size(item)
            await window.acquire(taken)
            task: asyncio.Future[R] = asyncio.ensure_future(function(item))
            # Not in a `finally` of the task: one that is cancelled before its first step never gets there.
            task.add_done_callback(lambda _, taken=taken: window.release(taken))  # type: ignore[misc]
            tasks.append(task)
        return list(await asyncio.gather(*tasks))
    finally:
        unfinished = [task for task in tasks if not task.done()]
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
