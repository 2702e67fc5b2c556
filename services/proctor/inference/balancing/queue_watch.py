"""How long the queues of Triton servers are, by their own metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

import httpx
from prometheus_client.parser import text_string_to_metric_families

from proctor.inference.balancing.member import Member

logger = logging.getLogger(__name__)

PENDING: Final = "nv_inference_pending_request_count"
_EVERY_S: Final = 1.0
_TIMEOUT_S: Final = 2.0
_MAX_BYTES: Final = 4 << 20


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

    async def run(self) -> None:
        """Look, until cancelled."""
        async with httpx.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=False) as client:
            while True:
                await asyncio.gather(*(self._look(client, member) for member in self._members()))
                await asyncio.sleep(self._every_s)

    async def _look(self, client: httpx.AsyncClient, member: Member) -> None:
        url = member.replica.metrics_url
        queued = None if url is None else await _pending(client, url, self._model)
        member.queued = queued or 0
        if queued is None and member.replica.url not in self._without:
            self._without.add(member.replica.url)
            logger.warning("replica %s has no queue metrics: its requests in flight count alone", member.replica.url)
        elif queued is not None:
            self._without.discard(member.replica.url)


async def _pending(client: httpx.AsyncClient, url: str, model: str) -> int | None:
    try:
        async with client.stream("GET", url) as response:
            if response.status_code != 200:
                return None
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MAX_BYTES:
                    return None
    except (httpx.HTTPError, httpx.InvalidURL):
        return None
    return pending_requests(body.decode("utf-8", "replace"), model)


def pending_requests(text: str, model: str) -> int | None:
    """Requests of a model that wait in a Triton server's queue, over all of its versions; None where it says nothing.

    Args:
        text: the server's metrics, in Prometheus' format.
        model: its name.
    """
    lines = "\n".join(line for line in text.splitlines() if line.startswith(PENDING + "{")) + "\n"
    try:
        samples = [sample for family in text_string_to_metric_families(lines) for sample in family.samples]
        counts = [int(sample.value) for sample in samples if sample.labels.get("model") == model]
    except (ValueError, OverflowError):
        return None
    return max(sum(counts), 0) if counts else None
