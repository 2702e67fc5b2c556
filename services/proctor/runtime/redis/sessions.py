"""Sessions of browsers: `proctor:session:<digest of the cookie>`, each until it expires.

Beside the ledger, so that a session holds at every gateway and over a restart, and is gone everywhere once it was
ended. The cookie itself is not kept: who reads the store cannot call with what stands there.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import redis

from proctor.domain.errors import StoreError
from proctor.runtime.redis.scripted import connect


class SessionStore:
    """Sessions behind a Redis URL. Raises StoreError when the server cannot be reached."""

    def __init__(self, url: str) -> None:
        self._redis = connect(url)

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def put(self, cookie: str, content: dict[str, Any], *, kept_s: int) -> None:
        """Keep a session for so many seconds."""
        try:
            self._redis.set(_key(cookie), json.dumps(content), ex=kept_s)
        except redis.RedisError as error:
            raise _silent(error) from error

    def get(self, cookie: str) -> dict[str, Any] | None:
        """The session of a cookie; None where there is none."""
        try:
            found = self._redis.get(_key(cookie))
        except redis.RedisError as error:
            raise _silent(error) from error
        content = None if found is None else json.loads(str(found))
        return content if isinstance(content, dict) else None

    def drop(self, cookie: str) -> None:
        """End the session of a cookie."""
        try:
            self._redis.delete(_key(cookie))
        except redis.RedisError as error:
            raise _silent(error) from error


def _key(cookie: str) -> str:
    return f"proctor:session:{hashlib.sha256(cookie.encode()).hexdigest()}"


def _silent(error: redis.RedisError) -> StoreError:
    return StoreError(f"the list of sessions did not answer: {error}")
