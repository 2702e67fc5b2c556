"""What a vLLM server says of its prefix cache, and how it is told to forget it."""

from __future__ import annotations

import re
import time
from typing import Final, NamedTuple

import httpx

from proctor.domain.errors import StackError

#: Without it a server has no path that empties its cache.
VARIABLES: Final = {"VLLM_SERVER_DEV_MODE": "1"}
_QUERIES: Final = "vllm:prefix_cache_queries_total"
_HITS: Final = "vllm:prefix_cache_hits_total"
_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.1


class Looked(NamedTuple):
    """Tokens of prompts since the server began, or of what lies between two looks."""

    asked: int
    """That the cache was searched for."""
    found: int
    """Of these, those that it had."""

    def since(self, before: Looked) -> Looked:
        """What came after an earlier look."""
        return Looked(self.asked - before.asked, self.found - before.found)

    @property
    def hit_rate(self) -> float:
        """Share of the tokens that the cache had."""
        return self.found / self.asked if self.asked else 0.0

    @property
    def computed(self) -> int:
        """Tokens that had to be computed."""
        return self.asked - self.found


def read(metrics: str) -> Looked:
    """The counts in a text of Prometheus' format, over all engines of the server.

    Raises:
        LookupError: it has none.
    """
    return Looked(_sum(metrics, _QUERIES), _sum(metrics, _HITS))


def look(server: str) -> Looked:
    """Ask a server (its URL without a path) for its counts."""
    reply = httpx.get(f"{server}/metrics", timeout=_TIMEOUT_S, trust_env=False)
    return read(reply.raise_for_status().text)


def forget(server: str) -> None:
    """Have a server empty its cache; it needs `VARIABLES` in its environment.

    Raises:
        StackError: it still held what it was asked, after all patience.
    """
    deadline_s = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline_s:
        reply = httpx.post(f"{server}/reset_prefix_cache", timeout=_TIMEOUT_S, trust_env=False).raise_for_status()
        if reply.json()["success"]:
            return
        # The last answers are out before their blocks are given back.
        time.sleep(_POLL_S)
    raise StackError(f"{server} does not empty its prefix cache")


def _sum(metrics: str, name: str) -> int:
    found = re.findall(rf"^{re.escape(name)}(?:\{{.*\}})? (\S+)$", metrics, re.MULTILINE)
    if not found:
        raise LookupError(f"the server's metrics have no {name}")
    return round(sum(map(float, found)))
