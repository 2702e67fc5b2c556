"""The clock of a Redis, put forward or back under everything that it holds.

Moving every time that is kept there, and every time to live, to the other side is the same as moving the clock: the
scripts and the server compare them with now, and nothing else.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

#: From here on a number is a time: of ms since 1970, or of µs.
_A_TIME_MS, _A_TIME_US = 1e12, 1e15


def step(client: Any, by: timedelta) -> None:
    """Put the server's clock forward (or back, by a negative time), for one database; also what passing time is."""
    ms = int(by.total_seconds() * 1000)
    for key in list(client.scan_iter(count=1000)):
        left = client.pttl(key)
        kind = client.type(key)
        if kind == "zset":
            for member, score in client.zrange(key, 0, -1, withscores=True):
                if score > _A_TIME_MS:
                    client.zadd(key, {member: score - ms})
        elif kind == "hash":
            for field, value in client.hgetall(key).items():
                client.hset(key, field, " ".join(_moved(word, ms) for word in value.split(" ")))
        if left > 0:
            client.pexpire(key, left - ms)


def _moved(word: str, ms: int) -> str:
    if not word.isdigit() or float(word) < _A_TIME_MS:
        return word
    return str(int(word) - ms * (1000 if float(word) > _A_TIME_US else 1))
