"""Sessions of browsers: `proctor:session:<digest of the cookie>`, each until it expires.

Beside the ledger, so that a session holds at every gateway and over a restart, and is gone everywhere once it was
ended. What is kept is the token, encrypted by a key that is made of the cookie, and the cookie is not kept: who reads
the store cannot call with what stands there, and who writes to it can make no session but of a token that they have.
"""

from __future__ import annotations

import base64
import hashlib

import redis
from cryptography.fernet import Fernet, InvalidToken

from proctor.domain.errors import StoreError
from proctor.runtime.redis.scripted import connect


class SessionStore:
    """Sessions behind a Redis URL. Raises StoreError when the server cannot be reached."""

    def __init__(self, url: str) -> None:
        self._redis = connect(url)

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def put(self, cookie: str, token: str, *, kept_s: int) -> None:
        """Keep a session for so many seconds."""
        sealed = _box(cookie).encrypt(token.encode()).decode()
        try:
            self._redis.set(_key(cookie), sealed, ex=kept_s)
        except redis.RedisError as error:
            raise _silent(error) from error

    def token(self, cookie: str) -> str | None:
        """The token of a cookie's session; None where there is no session."""
        try:
            found = self._redis.get(_key(cookie))
        except redis.RedisError as error:
            raise _silent(error) from error
        try:
            return None if found is None else _box(cookie).decrypt(str(found)).decode()
        except InvalidToken:
            # Somebody else's writing.
            return None

    def drop(self, cookie: str) -> None:
        """End the session of a cookie."""
        try:
            self._redis.delete(_key(cookie))
        except redis.RedisError as error:
            raise _silent(error) from error


def _key(cookie: str) -> str:
    return f"proctor:session:{hashlib.sha256(cookie.encode()).hexdigest()}"


def _box(cookie: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(f"proctor session {cookie}".encode()).digest()))


def _silent(error: redis.RedisError) -> StoreError:
    return StoreError(f"the list of sessions did not answer: {error}")
