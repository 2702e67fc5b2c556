"""How long the queues of Triton servers are, by their own metrics."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import re
from collections.abc import Callable, Sequence
from typing import Final

import httpx

from proctor.inference.balancing.member import Member
from proctor.inference.http.authorities import trusted
from proctor.inference.http.no_cookies import NoCookies
from proctor.inference.http.reply_bounds import bounded_connections, read_body

logger = logging.getLogger(__name__)

PENDING: Final = "nv_inference_pending_request_count"
_EVERY_S: Final = 1.0
#: For one server's metrics in all, however slowly they come: the others are looked at in the same turn.
_TIMEOUT_S: Final = 2.0
#: Metrics of a server with several hundred models.
MAX_METRICS_BYTES: Final = 1 << 20
#: Servers whose metrics are in memory at a time.
_AT_A_TIME: Final = 8
#: Lines of one model: it has one a version.
MAX_QUEUE_LINES: Final = 64
#: A longer queue is as good as this one; the number comes from outside and is added up.
MAX_QUEUED: Final = 1 << 20
#: Labels and value of a line; a model's name is a folder's.
_LINE: Final = re.compile(PENDING.encode() + rb"\{([^\n{}]{1,1024}+)\} ++([0-9.eE+-]{1,32}+)[ \r]*+$", re.MULTILINE)


class QueueWatch:
    """Looks at the metrics of replicas in the background. One without metrics counts by its requests in flight."""

    def __init__(self, model: str, members: Callable[[], Sequence[Member]], *, every_s: float = _EVERY_S) -> None:
        """
        Args:
            model: its name on the servers.
            members: the replicas that are in use now; the length of its queue is written to each.
            every_s: seconds between two looks.
        """
        self._model = model
        self._members = members
        self._every_s = every_s
        self._without: set[str] = set()
        self._turns = asyncio.Semaphore(_AT_A_TIME)

    async def run(self) -> None:
        """Look, until cancelled."""
        headers = {"accept-encoding": "identity"}
        async with httpx.AsyncClient(
            timeout=_TIMEOUT_S,
            follow_redirects=False,
            headers=headers,
            cookies=NoCookies(),
            verify=await trusted(),
        ) as client:
            while True:
                await asyncio.gather(*(self._look(client, member) for member in self._members()))
                await asyncio.sleep(self._every_s)

    async def _look(self, client: httpx.AsyncClient, member: Member) -> None:
        url = member.replica.metrics_url
        async with self._turns:
            queued = None if url is None else await _pending(client, url, self._model)
        member.queued = queued or 0
        if queued is None and member.replica.url not in self._without:
            self._without.add(member.replica.url)
            logger.warning("replica %s has no queue metrics: its requests in flight count alone", member.replica.url)
        elif queued is not None:
            self._without.discard(member.replica.url)


async def _pending(client: httpx.AsyncClient, url: str, model: str) -> int | None:
    try:
        async with (
            asyncio.timeout(_TIMEOUT_S),
            client.stream("GET", url, extensions=bounded_connections(url)) as response,
        ):
            if response.status_code != 200:
                return None
            body = await read_body(response, MAX_METRICS_BYTES, url)
    except Exception as error:
        # Of many kinds, and none of them may end the look at the others.
        logger.debug("the metrics at %s cannot be read: %s: %s", url, type(error).__name__, error)
        return None
    return pending_requests(body, model)


def pending_requests(metrics: bytes, model: str) -> int | None:
    """Requests of a model that wait in a Triton server's queue, over all of its versions; None where it says nothing.

    Args:
        metrics: the server's, in Prometheus' format. Read by a pattern: a reader of the whole format takes four seconds
            over a line of 64,000 labels, and four times as long over twice as many.
        model: its name.
    """
    named = b'model="%s"' % model.replace("\\", "\\\\").replace('"', '\\"').encode("utf-8", "replace")
    lines = (found for found in _LINE.finditer(metrics) if named in found[1].split(b",", 8))
    try:
        counts = [float(found[2]) for found in itertools.islice(lines, MAX_QUEUE_LINES)]
    except ValueError:
        return None
    if not counts:
        return None
    # What is not finite is no count, and `min` would let it through.
    total = sum(counts)
    return int(min(max(total, 0.0), MAX_QUEUED)) if math.isfinite(total) else None
