"""Tokens that callers of a gRPC server show, and whose they are: `authorization: Bearer TOKEN`."""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import string
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import grpc
from grpc_health.v1 import health

from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.operator_json import operator_object
from proctor.domain.problems import quoted
from proctor.domain.submitter import DEFAULT, RESERVED, ForbiddenError, Role, Submitter, UnknownCallerError, is_name

#: Metadata of a call that carries the token; gRPC's names are in small letters.
METADATA_KEY: Final = "authorization"
_SCHEME: Final = "Bearer "
#: What a guess must be right in. At a million guesses a second, which no server answers, half of them take 10²⁴ years,
#: so that guesses need not be counted: whoever counted them could be made to lock out a caller who knows the token.
MIN_TOKEN_BITS: Final = 128
#: Of a token. A header holds 8 KiB, and whoever shows more than this shows no token.
MAX_TOKEN_CHARACTERS: Final = 512
#: Tokens of one server: each call is held against all of them.
MAX_TOKENS: Final = 1_000
#: A token that was drawn at random has more different characters; one that repeats a few was not drawn.
_MIN_DISTINCT: Final = 8
#: Alphabets from which tokens are drawn, the smallest first.
_ALPHABETS: Final = (
    frozenset(string.digits),
    frozenset(string.digits + "abcdef"),
    frozenset(string.digits + "ABCDEF"),
    frozenset(string.ascii_lowercase),
    frozenset(string.ascii_uppercase),
    frozenset(string.ascii_lowercase + string.digits),
    frozenset(string.ascii_uppercase + string.digits),
    # Of base64, by either alphabet.
    frozenset(string.ascii_letters + string.digits + "-_"),
    frozenset(string.ascii_letters + string.digits + "+/"),
)
_PRINTABLE: Final = 94
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_EXAMPLE: Final = '{"ci": "sha256:…", "anna": {"token": "sha256:…", "role": "reviewer", "sees_all": true}}'
#: `operator` is what `sees_all` was called before there were roles, and stays good.
_KEYS: Final = frozenset({"token", "role", "sees_all", "operator"})
_ROLES: Final = {role.value: role for role in Role}
#: A probe of a server's health knows no token, and learns nothing of what is served.
_OPEN: Final = frozenset({f"/{health.SERVICE_NAME}/Check", f"/{health.SERVICE_NAME}/Watch"})


def new_token() -> str:
    """A token that nobody guesses: 256 bits."""
    return secrets.token_urlsafe(32)


def token_digest(token: str) -> str:
    """What a list of tokens holds in a token's stead."""
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"


def travels(token: str) -> bool:
    """Whether a token can travel in a header."""
    fits = 0 < len(token) <= MAX_TOKEN_CHARACTERS
    return fits and token.isascii() and token.isprintable() and token == token.strip()


def token_bits(token: str) -> float:
    """Bits of a token that was drawn from the smallest alphabet that it fits in; none where it can hardly have been.

    What was not drawn has fewer, which nobody can see: long words in a row count as drawn letters.
    """
    signs = frozenset(token)
    if len(signs) < _MIN_DISTINCT or " " in signs:
        return 0.0
    size = next((len(alphabet) for alphabet in _ALPHABETS if signs <= alphabet), _PRINTABLE)
    return len(token) * math.log2(size)


def metadata_of(token: str | None) -> list[tuple[str, str]]:
    """What a client sends along with each call."""
    return [] if token is None else [(METADATA_KEY, _SCHEME + token)]


class Tokens:
    """Whom a server lets in.

    Args:
        of: each caller's token by its digest.
        in_clear: names of those whose tokens a list holds in clear.
    """

    def __init__(self, of: Iterable[tuple[Submitter, str]], in_clear: tuple[str, ...] = ()) -> None:
        self._known = [(caller, digest.encode()) for caller, digest in of]
        self.in_clear = in_clear

    @property
    def several(self) -> bool:
        """Whether callers are told apart."""
        return len(self._known) > 1

    def caller(self, metadata: Any) -> Submitter | None:
        """Whose token a call shows; None for no token, a wrong one or several."""
        token = shown_token(metadata)
        return None if token is None else self.of_token(token)

    def of_token(self, token: str) -> Submitter | None:
        """Whose token it is; None for nobody's."""
        return None if len(token) > MAX_TOKEN_CHARACTERS or not token.isascii() else self.of_digest(token_digest(token))

    def of_digest(self, digest: str) -> Submitter | None:
        """Whose token has this digest.

        Digests are compared, each in constant time and all of them always: how long it takes says nothing.
        """
        found = None
        for caller, known in self._known:
            if hmac.compare_digest(digest.encode(), known):
                found = caller
        return found


def shown_token(metadata: Any) -> str | None:
    """The one token that a call shows; None for none, or several."""
    shown = [value for key, value in metadata or () if key == METADATA_KEY]
    if len(shown) != 1 or not isinstance(shown[0], str) or not shown[0].isascii() or not shown[0].startswith(_SCHEME):
        return None
    return shown[0][len(_SCHEME) :]


class _Entry(NamedTuple):
    caller: Submitter
    digest: str
    in_clear: bool = False


def server_tokens(
    single: str | None, several: str, *, variable: str, source: str, holder: Submitter = DEFAULT
) -> Tokens | None:
    """The tokens of a server's settings; None where there are none.

    Args:
        single: the token of the caller `default`.
        several: a JSON object of callers' names, each with a token, its digest, or an object that says `role` and
            `sees_all` too.
        variable: where the single one is taken from, for messages.
        source: where the others are read from.
        holder: whose the single token is.

    Raises:
        BadInputError: for a token that could be guessed or cannot travel, or a list that is none.
    """
    entries = [] if single is None else [_Entry(holder, _checked(single, variable))]
    found = operator_object(several, source=source, example=_EXAMPLE)
    if len(found) > MAX_TOKENS:
        raise BadInputError(f"{source} names {len(found):,} callers; name at most {MAX_TOKENS:,}")
    entries += [_entry(name, said, source) for name, said in found.items()]
    names: dict[str, str] = {}
    for entry in entries:
        if (other := names.setdefault(entry.digest, entry.caller.name)) != entry.caller.name:
            raise BadInputError(f"{source}: '{other}' and '{entry.caller.name}' have one token; give each its own")
    known = [(entry.caller, entry.digest) for entry in entries]
    return Tokens(known, tuple(entry.caller.name for entry in entries if entry.in_clear)) if entries else None


def _entry(name: str, said: Any, source: str) -> _Entry:
    where = f"{source}: {quoted(name)}"
    if name in RESERVED or not is_name(name):
        raise BadInputError(
            f"{where} cannot be a caller's name; use small letters, digits, '.', '_' and '-', and none of "
            f"{', '.join(sorted(RESERVED))}"
        )
    token, sees_all, role = said, False, Role.OPERATOR.value
    if isinstance(said, Mapping) and set(said) <= _KEYS:
        token, role = said.get("token"), said.get("role", role)
        sees_all = said.get("sees_all", said.get("operator", False))
    if not isinstance(token, str) or not isinstance(sees_all, bool):
        raise BadInputError(f"{where} has no token; write it like {_EXAMPLE}")
    if not isinstance(role, str) or role not in _ROLES:
        raise BadInputError(f"{where} has the role {quoted(role)}; use one of {', '.join(_ROLES)}")
    caller = Submitter(name, sees_all, _ROLES[role])
    if _DIGEST.fullmatch(token):
        return _Entry(caller, token)
    return _Entry(caller, _checked(token, where), in_clear=True)


def _checked(token: str, where: str) -> str:
    """The digest of a token that may be used."""
    if not travels(token):
        raise BadInputError(
            f"{where} holds what cannot travel in a header: use 1 to {MAX_TOKEN_CHARACTERS} printable ASCII characters"
        )
    if token_bits(token) < MIN_TOKEN_BITS:
        raise BadInputError(
            f"{where} holds a token that could be guessed: it must be drawn at random and have {MIN_TOKEN_BITS} bits "
            "(22 letters and digits, or 32 hex digits); `proctor gateway token` prints one"
        )
    return token_digest(token)


class TokenCheck(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Refuses calls without a token before their messages are read, but for probes of health.

    Args:
        tokens: those of the server's list.
        variable: where a caller's token is taken from, for messages.
        verify: looks at tokens that are not on the list; raises what they are refused for. None where there are none.
    """

    def __init__(
        self, tokens: Tokens | None, variable: str, verify: Callable[[str], Awaitable[object]] | None = None
    ) -> None:
        self._tokens = tokens
        self._verify = verify
        self._refused = f"the token is missing or wrong: send the metadata `authorization: Bearer TOKEN` ({variable})"

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        """The call's own handler, or one that refuses it."""
        refused = None if details.method in _OPEN else await self._why_not(details.invocation_metadata)
        if refused is None:
            return await continuation(details)

        async def refuse(requests: Any, context: Any) -> None:
            await context.abort(*refused)

        # Whatever the method's own kind: this one reads no message.
        return grpc.stream_stream_rpc_method_handler(refuse)

    async def _why_not(self, metadata: Any) -> tuple[grpc.StatusCode, str] | None:
        token = shown_token(metadata)
        if token is not None and self._tokens is not None and self._tokens.of_token(token) is not None:
            return None
        if token is None or self._verify is None:
            return grpc.StatusCode.UNAUTHENTICATED, self._refused
        try:
            await self._verify(token)
        except UnknownCallerError as error:
            return grpc.StatusCode.UNAUTHENTICATED, f"{error} ({self._refused})"
        except ForbiddenError as error:
            return grpc.StatusCode.PERMISSION_DENIED, str(error)
        except ProctorError as error:
            return grpc.StatusCode.UNAVAILABLE, str(error)
        return None
