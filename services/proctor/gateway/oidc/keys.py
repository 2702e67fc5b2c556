"""The keys of an issuer: kept for an hour, and asked for again once where a token names one that is not there."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import jwt

from proctor.gateway.oidc.documents import IssuerAwayError

logger = logging.getLogger(__name__)

#: A key that the issuer took back is good no longer than this.
FRESH_S: Final = 3_600.0
#: How long keys are good whose issuer does not answer any more.
STALE_S: Final = 24 * 3_600.0
#: Between two questions: anybody can show tokens that name keys which nobody has.
COOLDOWN_S: Final = 10.0
_MIN_RSA_BITS: Final = 2_048
_MAX_RSA_BITS: Final = 16_384
#: A key of a kind signs by these algorithms alone, whatever a token says.
_KINDS: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = {
    ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
    ("OKP", "Ed448"): ("EdDSA",),
}


class IssuerKeys:
    """Keys of one issuer.

    Args:
        fetch: gives what the issuer publishes now, or raises IssuerAwayError.
        clock: seconds that never go back.
    """

    def __init__(
        self, fetch: Callable[[], Awaitable[list[dict[str, Any]]]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._keys: list[dict[str, Any]] = []
        self._had_at: float | None = None
        self._asked_at: float | None = None
        self._failed = False
        self._lock = asyncio.Lock()

    async def find(self, kid: str | None, algorithm: str) -> Any:
        """The public key that a token names, for an algorithm; None where the issuer has none such.

        Args:
            kid: as the token has it; None where it names none, which is enough while the issuer has one for the
                algorithm.
            algorithm: one of those that are allowed.

        Raises:
            IssuerAwayError: when the issuer would have to be asked, and does not answer.
        """
        if self._had_at is None or self._clock() - self._had_at > FRESH_S:
            await self._ask_again()
        found = self._found(kid, algorithm)
        if found is None and await self._ask_again(needed=True):
            found = self._found(kid, algorithm)
        return found

    async def _ask_again(self, *, needed: bool = False) -> bool:
        """Ask the issuer, if it was not asked just now; whether the keys are others by now."""
        before = self._had_at
        async with self._lock:
            now = self._clock()
            if self._had_at != before:
                # Another caller's question was answered meanwhile.
                return True
            if self._asked_at is not None and now - self._asked_at < COOLDOWN_S:
                if self._is_lost(now) or (needed and self._failed):
                    raise IssuerAwayError("the issuer of tokens did not answer just now: try again in a moment")
                return False
            self._asked_at, self._failed = now, True
            try:
                self._keys = await self._fetch()
            except IssuerAwayError as error:
                logger.warning("the keys of the issuer of tokens cannot be had: %s", error)
                if needed or self._is_lost(now):
                    raise
                return False
            self._had_at, self._failed = now, False
            return True

    def _is_lost(self, now: float) -> bool:
        return self._had_at is None or now - self._had_at > STALE_S

    def _found(self, kid: str | None, algorithm: str) -> Any:
        fitting = [key for key in self._keys if _fits(key, algorithm) and (kid is None or key.get("kid") == kid)]
        # Of several, none is the one that was meant.
        return _public(fitting[0], algorithm) if len(fitting) == 1 else None


def _fits(key: Mapping[str, Any], algorithm: str) -> bool:
    kind = (str(key.get("kty")), str(key["crv"]) if "crv" in key else None)
    operations = key.get("key_ops", ["verify"])
    return (
        algorithm in _KINDS.get(kind, ())
        and key.get("alg", algorithm) == algorithm
        and key.get("use", "sig") == "sig"
        and isinstance(operations, list)
        and "verify" in operations
        # Whoever publishes this has no secret to sign with any more.
        and "d" not in key
    )


def _public(key: Mapping[str, Any], algorithm: str) -> Any:
    try:
        found = jwt.PyJWK(dict(key), algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
        return None
    bits = getattr(found, "key_size", 0)
    return None if key.get("kty") == "RSA" and not _MIN_RSA_BITS <= bits <= _MAX_RSA_BITS else found
