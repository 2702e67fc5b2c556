"""What a discovery of replicas says while a test changes what there is to be found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from proctor.inference.balancing.discovery.found import Discovery, Found


class Seen:
    """What a discovery said."""

    def __init__(self) -> None:
        self.found: list[list[str]] = []
        self.names: set[str | None] = set()
        self.missed: list[str] = []

    def take(self, found: Sequence[Found]) -> None:
        self.found.append([one.replica.url for one in found])
        self.names |= {one.server_name for one in found}

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - a discovery knows no events
            await asyncio.sleep(0.005)

    async def until_found(self, *urls: str) -> None:
        await self.until(lambda: bool(self.found) and self.found[-1] == list(urls))


@asynccontextmanager
async def watching(discovery: Discovery) -> AsyncIterator[Seen]:
    """Watch while the block lasts."""
    seen = Seen()
    task = asyncio.create_task(discovery.watch(seen.take, seen.missed.append))
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
