"""Two real endpoints of speed 1 and 4: what each answers alone, and what both answer when requests are spread."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import httpx

from benchmarking.servers import process, wait_for
from proctor.domain.endpoint import Balance, EndpointSpec, Replica
from proctor.domain.trial import Arm, Decoding, Trial
from proctor.inference.worker.open_backend import open_backend
from proctor.inference.worker.window import MAX_REQUESTS
from proctor.localstack.ports import free_ports
from proctor.runtime.settings import Settings

_SERVER: Final = Path(__file__).with_name("timed_server.py")
#: Seconds a request. Slow enough that the client's own cost, some milliseconds of one core, is not what is measured.
SECONDS: Final = (0.040, 0.010)
#: Trials of a shard, and shards that are asked at the same time, as a worker asks a pack.
_SHARD: Final = 64
_TOGETHER: Final = 4
_DEADLINE_S: Final = 120.0


class TwoEndpoints(NamedTuple):
    """Requests per second."""

    alone: tuple[float, ...]
    """Of each endpoint by itself, asked by a bare loop of httpx."""
    together: float
    """Of both, through Proctor's backend."""

    @property
    def share(self) -> float:
        """Of the sum of what they answer alone."""
        return self.together / sum(self.alone)


def two_endpoints(folder: Path, *, about_s: float = 4.0, balance: Balance = Balance.MEASURED) -> TwoEndpoints:
    """Measure, each of the three runs for about so long.

    Args:
        folder: for the servers' logs.
        about_s: seconds a run.
        balance: how requests are spread.

    Raises:
        StackError: a server does not start.
    """
    with _servers(folder) as urls:
        alone = tuple(
            asyncio.run(_bare_loop(url, round(about_s / seconds))) for url, seconds in zip(urls, SECONDS, strict=True)
        )
        n_trials = round(about_s * sum(1.0 / seconds for seconds in SECONDS))
        return TwoEndpoints(alone, asyncio.run(_spread(urls, n_trials, balance)))


@contextmanager
def _servers(folder: Path) -> Iterator[tuple[str, ...]]:
    ports = free_ports(len(SECONDS), Random())
    first, second = (folder / f"endpoint-{port}.log" for port in ports)
    commands = [
        [sys.executable, str(_SERVER), "in-turn", str(port), str(seconds)]
        for port, seconds in zip(ports, SECONDS, strict=True)
    ]
    with process(commands[0], first) as one, process(commands[1], second) as other:
        wait_for(lambda: _listens(ports[0]), one, first)
        wait_for(lambda: _listens(ports[1]), other, second)
        yield tuple(f"http://127.0.0.1:{port}" for port in ports)


async def _bare_loop(url: str, n_requests: int) -> float:
    """Requests per second of httpx alone, as many in flight as Proctor has."""
    free = asyncio.Semaphore(MAX_REQUESTS)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=_DEADLINE_S, limits=limits, trust_env=False) as client:

        async def ask(number: int) -> None:
            async with free:
                reply = await client.post(f"{url}/infer", json={"prompt": _prompt(number), "task_id": str(number)})
                reply.raise_for_status()

        started_s = time.monotonic()
        await asyncio.gather(*(ask(number) for number in range(n_requests)))
        return n_requests / (time.monotonic() - started_s)


async def _spread(urls: Sequence[str], n_trials: int, balance: Balance) -> float:
    """Trials per second of Proctor's backend over all of them."""
    spec = EndpointSpec(
        backend="infer",
        url=urls[0],
        served_name="paced",
        model_version=None,
        replicas=tuple(Replica(url=url) for url in urls),
        balance=balance,
    )
    backend = open_backend(spec, Settings(home=Path()))
    trials = [Trial(arm=Arm.CANONICAL, item_id=str(number), prompt=_prompt(number)) for number in range(n_trials)]
    shards = iter([trials[start : start + _SHARD] for start in range(0, n_trials, _SHARD)])

    async def ask_shards() -> None:
        for shard in shards:
            for completion in await backend.complete(shard, Decoding(), deadline_s=_DEADLINE_S):
                if completion.error is not None:
                    raise RuntimeError(completion.error)

    started_s = time.monotonic()
    try:
        await asyncio.gather(*(ask_shards() for _ in range(_TOGETHER)))
        return n_trials / (time.monotonic() - started_s)
    finally:
        await backend.close()


def _prompt(number: int) -> str:
    return f"Question {number}: what is six times seven?\nAnswer:"


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True
