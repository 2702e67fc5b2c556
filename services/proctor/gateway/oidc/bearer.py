"""Tokens of an issuer: which are good, and whose they are.

The library verifies signature, issuer and audience; times are held to a clock that tests can step. Nothing that a
token says of itself chooses a key but by name among those that the issuer publishes: `jku`, `x5u`, `jwk` and `x5c` are
not read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import jwt

from proctor.domain.oidc import OidcSettings
from proctor.domain.submitter import Submitter, UnknownCallerError
from proctor.gateway.oidc.keys import IssuerKeys

logger = logging.getLogger(__name__)

#: Of a token: with its scheme it fits into 8 KiB of headers, which is what gRPC takes.
MAX_CHARACTERS: Final = 7_500
_MAX_KID_CHARACTERS: Final = 256
#: Other kinds of tokens are signed by the same keys: of a logout, of an event.
_TYPES: Final = frozenset({"", "jwt", "at+jwt", "application/jwt", "application/at+jwt"})
_NEEDED: Final = ("iss", "aud", "exp", "iat")
#: What the libraries below may raise at odd numbers and depths, beside their own.
_ODD: Final = (ValueError, TypeError, OverflowError, RecursionError, AttributeError, KeyError)
_WORDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (jwt.InvalidAudienceError, "is for another audience"),
    (jwt.InvalidIssuerError, "is of another issuer"),
    (jwt.MissingRequiredClaimError, f"lacks one of {', '.join(_NEEDED)}"),
)


class Verified(NamedTuple):
    """Whose a token is, and until when it is good, in seconds since 1970."""

    caller: Submitter
    ends_at: float


class Bearers:
    """Callers with tokens of one issuer."""

    def __init__(self, settings: OidcSettings, keys: IssuerKeys, clock: Callable[[], float] = time.time) -> None:
        self.settings = settings
        self._keys = keys
        self._clock = clock

    async def verified(self, token: str) -> Verified:
        """Whose a token is.

        Raises:
            UnknownCallerError: when it is none, or not good.
            ForbiddenError: when it is good, and has no role here.
            IssuerAwayError: when the issuer would have to be asked for its keys, and does not answer.
        """
        algorithm, kid = self._head(token)
        if _unverified(token).get("iss") != self.settings.issuer:
            # Before anybody is asked for a key: whoever sends nonsense must not have the issuer asked.
            raise _refused("is of another issuer")
        key = await self._keys.find(kid, algorithm)
        if key is None:
            raise _refused("is signed by a key that the issuer does not have")
        claims = self._claims(token, key, algorithm)
        party = claims.get("azp")
        if party is not None and party not in self.settings.authorized_parties:
            raise _refused("was given to another client (azp)")
        return Verified(self.settings.caller(claims), float(claims["exp"]) + self.settings.leeway_s)

    def _head(self, token: str) -> tuple[str, str | None]:
        """The algorithm that a token claims, and the name of its key."""
        if len(token) > MAX_CHARACTERS or not token.isascii() or token.count(".") != 2:
            raise UnknownCallerError("the token is missing or wrong")
        try:
            head = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, *_ODD):
            raise _refused("cannot be read") from None
        algorithm, kid, kind = head.get("alg"), head.get("kid"), head.get("typ", "")
        if algorithm not in self.settings.algorithms:
            raise _refused("is signed by an algorithm that is not allowed")
        if "crit" in head or "b64" in head or not isinstance(kind, str) or kind.lower() not in _TYPES:
            raise _refused("is of another kind")
        if kid is not None and (not isinstance(kid, str) or len(kid) > _MAX_KID_CHARACTERS):
            raise _refused("names no key")
        return str(algorithm), kid

    def _claims(self, token: str, key: Any, algorithm: str) -> dict[str, Any]:
        said, leeway_s = self.settings, self.settings.leeway_s
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=list(said.audience),
                issuer=said.issuer,
                options={"require": list(_NEEDED), "verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
            times = {name: float(claims[name]) for name in ("exp", "nbf", "iat") if name in claims}
        except (jwt.PyJWTError, *_ODD) as error:
            why = next((words for kind, words in _WORDS if isinstance(error, kind)), "is not the issuer's")
            raise _refused(why) from None
        now = self._clock()
        # Not a number is neither before nor after.
        if not now < times["exp"] + leeway_s < float("inf"):
            raise _refused("has expired")
        if not all(times[name] <= now + leeway_s for name in ("nbf", "iat") if name in times):
            raise _refused("is not good yet")
        return claims


def _unverified(token: str) -> dict[str, Any]:
    try:
        found = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, *_ODD):
        raise _refused("cannot be read") from None
    return found


def _refused(why: str) -> UnknownCallerError:
    logger.info("a token of an issuer is refused: it %s", why)
    return UnknownCallerError(f"the token {why}")
