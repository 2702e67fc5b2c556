"""Bounds what is in flight to one endpoint, in requests and in bytes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

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

    async def acquire(self, size: int, *, first: bool = False) -> None:
        """Take a place for `size` bytes; something larger than the window travels alone.

        Args:
            size: bytes.
            first: stand at the head of the line.
        """
        if not self._line and self._fits(size):
            self._take(size)
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._line.appendleft if first else self._line.append)((size, place))
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

    def exchange(self, held: int, size: int) -> bool:
        """Keep a place of `held` bytes for another request, of `size`, before all in line. False where it is too large.

        What is asked together is so done before what came later, which waits for as long as a call has requests.
        """
        if self._held_requests > 1 and self._held_bytes - held + size > self._bytes:
            return False
        self._held_bytes += size - held
        self._admit()
        return True

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
    return await _Lanes(window, items, size, function).run()


class _Lanes(Generic[T, R]):
    """Tasks that each hold a place in the window, and do one item after another in it.

    Not a task for each item: what comes between the end of one and the start of the next is time in which a place is
    taken and the endpoint has nothing to do in it.
    """

    def __init__(
        self, window: Window, items: Sequence[T], size: Callable[[T], int], function: Callable[[T], Awaitable[R]]
    ) -> None:
        self._window = window
        self._size = size
        self._function = function
        self._left = deque(enumerate(items))
        self._results: dict[int, R] = {}
        self._lanes: set[asyncio.Task[None]] = set()
        self._failed: BaseException | None = None
        self._stopped = False

    async def run(self) -> list[R]:
        """The results, in order."""
        opening = self._opening = asyncio.ensure_future(self._open())
        try:
            await asyncio.wait({opening})
            if not opening.cancelled():
                opening.result()
            if self._lanes:
                await asyncio.wait(self._lanes)
            if self._failed is not None:
                raise self._failed
            return [result for _, result in sorted(self._results.items())]
        finally:
            lanes = [opening, *self._lanes]
            self._stop()
            await asyncio.gather(*lanes, return_exceptions=True)

    async def _open(self) -> None:
        """Begin a lane whenever there is a place for one, until nothing is left to do."""
        while self._left:
            held = _Held(self._window, self._size(self._left[0][1]))
            # Once it had a place, the next ones too are its own: one call is answered after the other, so that the
            # first is stored while the second is asked.
            await self._window.acquire(held.size, first=bool(self._lanes))
            # While this one stood in line, the lanes went on.
            if not self._left or not held.fits(self._size(self._left[0][1])):
                held.release()
                continue
            lane = asyncio.ensure_future(self._lane(*self._left.popleft(), held))
            self._lanes.add(lane)
            # Not in a `finally` of the task: one that is cancelled before its first step never gets there.
            lane.add_done_callback(lambda lane, held=held: self._ended(lane, held))  # type: ignore[misc]

    async def _lane(self, place: int, item: T, held: _Held) -> None:
        while True:
            self._results[place] = await self._function(item)
            if not self._left or not held.exchange(self._size(self._left[0][1])):
                return
            place, item = self._left.popleft()

    def _ended(self, lane: asyncio.Task[None], held: _Held) -> None:
        held.release()
        self._lanes.discard(lane)
        error = asyncio.CancelledError() if lane.cancelled() else lane.exception()
        if error is not None:
            self._failed = self._failed or error
            self._stop()
        elif not self._left:
            # Nothing is left to stand in line for.
            self._opening.cancel()

    def _stop(self) -> None:
        # Once: who is cancelled again while it gives its connection back does not give it back.
        if not self._stopped:
            self._stopped = True
            self._left.clear()
            for task in (self._opening, *self._lanes):
                task.cancel()


class _Held:
    """A place in a window that is taken."""

    def __init__(self, window: Window, size: int) -> None:
        self._window = window
        self.size = size

    def exchange(self, size: int) -> bool:
        """See `Window.exchange`."""
        if not self._window.exchange(self.size, size):
            return False
        self.size = size
        return True

    def fits(self, size: int) -> bool:
        """Whether it is, or can be made, a place for so many bytes; it is one then."""
        return size == self.size or self.exchange(size)

    def release(self) -> None:
        """Give it back."""
        self._window.release(self.size)
