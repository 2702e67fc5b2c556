"""A bounded buffer between a stream that is read and work that is done in batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from typing import Generic, TypeVar

from proctor.perturbation.serving.limits import Limits

T = TypeVar("T")


async def in_batches(source: AsyncIterable[T], size: Callable[[T], int], limits: Limits) -> AsyncGenerator[list[T]]:
    """Read ahead of the work, up to the limits, and give what is there in batches.

    A batch is what has arrived, at most `batch_messages` and `batch_bytes` of it: a caller that waits for each reply
    is answered at once, and under load the batches fill up while the one before them is worked on. Nothing is read
    while `max_in_flight` messages wait, so that the transport's flow control reaches the caller.

    Close the iterator (`contextlib.aclosing`) to stop the reading.

    Raises:
        Exception: what the source raises, as soon as it does.
    """
    intake: _Intake[T] = _Intake(size, limits)
    reader = asyncio.create_task(intake.fill(source))
    try:
        while batch := await intake.take():
            yield batch
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)


class _Intake(Generic[T]):
    """The buffer of one stream: one task fills it, another takes from it."""

    def __init__(self, size: Callable[[T], int], limits: Limits) -> None:
        self._size = size
        self._limits = limits
        self._waiting: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._ended = False
        self._error: Exception | None = None
        self._changed = asyncio.Condition()

    async def fill(self, source: AsyncIterable[T]) -> None:
        """Read the source to its end."""
        try:
            async for message in source:
                await self._put(message)
        except Exception as error:
            self._error = error
        async with self._changed:
            self._ended = True
            self._changed.notify_all()

    async def take(self) -> list[T]:
        """The next batch; empty when the source has ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._waiting or self._ended)
            if self._error is not None:
                raise self._error
            batch: list[T] = []
            total = 0
            while self._waiting and len(batch) < self._limits.batch_messages:
                message, size = self._waiting[0]
                if batch and total + size > self._limits.batch_bytes:
                    break
                self._waiting.popleft()
                batch.append(message)
                total += size
            self._bytes -= total
            self._changed.notify_all()
            return batch

    async def _put(self, message: T) -> None:
        async with self._changed:
            await self._changed.wait_for(self._has_room)
            size = self._size(message)
            self._waiting.append((message, size))
            self._bytes += size
            self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._waiting) < self._limits.max_in_flight and self._bytes < self._limits.max_in_flight_bytes
