"""Deliveries that were taken in already, by their ids: `proctor:webhook:<digest of the id>`, for a quarter of an hour.

Beside the unique key of what a delivery asks for, which is the guarantee: this spares the record store, and finds an id
that is used for something else.
"""

from __future__ import annotations

import hashlib
from typing import Final

import redis

from proctor.domain.errors import StoreError
from proctor.runtime.redis.scripted import connect

#: Longer than the five minutes to both sides in which a signature is good.
KEPT_S: Final = 900


class Replays:
    """Delivery ids behind a Redis URL. Raises StoreError when the server cannot be reached."""

    def __init__(self, url: str) -> None:
        self._redis = connect(url)

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def content(self, sender: str, delivery: str) -> str | None:
        """What was taken in under an id; None where nothing was."""
        try:
            found = self._redis.get(_key(sender, delivery))
        except redis.RedisError as error:
            raise _silent(error) from error
        return None if found is None else str(found)

    def remember(self, sender: str, delivery: str, content: str) -> bool:
        """Keep an id whose delivery is on record; False where another did so meanwhile.

        After the record and never before it: a process that died between the two would have the retry ignored.
        """
        try:
            return bool(self._redis.set(_key(sender, delivery), content, nx=True, ex=KEPT_S))
        except redis.RedisError as error:
            raise _silent(error) from error


def _key(sender: str, delivery: str) -> str:
    return f"proctor:webhook:{hashlib.sha256(f'{sender} {delivery}'.encode()).hexdigest()}"


def _silent(error: redis.RedisError) -> StoreError:
    return StoreError(f"the list of deliveries did not answer: {error}")
