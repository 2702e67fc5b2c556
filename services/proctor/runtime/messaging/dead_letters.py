"""Dead letters: what was in a queue and nobody can handle, kept for a while for whoever wonders where it came from.

They are in a list beside the ledger, `proctor:dead_letters:{dead_letters}`: the last MAX_LETTERS of them, the newest
first, which expire a week after the last one came. Each is JSON with the time, the queue or task, what is wrong with
it, and its first bytes. A broker that others may write to is not defended by this: it only must not end the workers.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import redis

from proctor.domain.problems import visible
from proctor.runtime.metrics import recording as metrics

logger = logging.getLogger(__name__)

KEY: Final = "proctor:dead_letters:{dead_letters}"
#: A hundred of them show whose they are, and come to 100 KB at most.
MAX_LETTERS: Final = 100
KEY_TTL: Final = timedelta(days=7)
#: Of a letter, and of what is wrong with it, that are kept.
MAX_BYTES_SHOWN: Final = 256
_MAX_DETAIL: Final = 256


class Fault(StrEnum):
    """What is wrong with a letter."""

    UNDECODABLE = "undecodable"
    """Not JSON, or not in the form in which kombu and Celery put messages."""
    UNKNOWN_TASK = "unknown_task"
    """For a task that this worker does not have."""
    INVALID = "invalid"
    """For a task that it has, and no message of its."""


class DeadLetters:
    """The dead letters behind a Redis URL."""

    def __init__(self, url: str) -> None:
        self._redis: redis.Redis = redis.Redis.from_url(url, decode_responses=True)

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def put(self, fault: Fault, where: str, letter: bytes | str, detail: str = "") -> None:
        """Keep the beginning of a letter, log it and count it. Never fails: the letter is dead as it is.

        Args:
            fault: what is wrong.
            where: the queue from which it came, or the task for which it was.
            letter: as it came.
            detail: what is wrong with it, in words.
        """
        begins = letter[:MAX_BYTES_SHOWN]
        shown = visible(begins.decode("utf-8", "backslashreplace") if isinstance(begins, bytes) else begins)
        row = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "fault": fault.value,
            "where": visible(where[:_MAX_DETAIL]),
            "detail": visible(detail[:_MAX_DETAIL]),
            "begins": shown,
        }
        logger.error("%s: %s entry, dead-lettered: %s; it begins %s", row["where"], fault, row["detail"], shown)
        metrics.dead_letter(fault)
        try:
            with self._redis.pipeline() as pipe:
                pipe.lpush(KEY, json.dumps(row))
                pipe.ltrim(KEY, 0, MAX_LETTERS - 1)
                pipe.expire(KEY, KEY_TTL)
                pipe.execute()
        except redis.RedisError as error:
            logger.warning("a dead letter cannot be kept: %s", error)

    def all(self) -> list[dict[str, Any]]:
        """What is kept, the newest first."""
        return [json.loads(row) for row in self._redis.lrange(KEY, 0, -1)]
