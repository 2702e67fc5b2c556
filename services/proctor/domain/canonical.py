"""Canonical JSON (RFC 8785) and the digests over it, so that anybody's implementation finds the same digest."""

from __future__ import annotations

import hashlib
import re
from json.encoder import encode_basestring
from typing import Any, Final

import rfc8785

FULL_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
#: 12 hex digits (48 bits) is what the article prints; shorter prefixes are too easy to collide by accident.
DIGEST_OR_PREFIX = re.compile(r"sha256:[0-9a-f]{12,64}")
#: A text as the form writes it.
quoted: Final = encode_basestring
#: The form holds integers up to here exactly (RFC 8785, section 3.1, by way of I-JSON).
_MAX_INTEGER: Final = 2**53 - 1
#: Between these, Python and ECMAScript write a float that is no integer in the same way.
_MIN_PLAIN_FLOAT: Final = 1e-4
_MAX_PLAIN_FLOAT: Final = 1e16


def canonical_json(value: Any) -> bytes:
    """Serialise plain data to canonical JSON (RFC 8785).

    Raises:
        ValueError: for what that form cannot hold: NaN, an infinity, an integer past 2**53 − 1, half of a surrogate
            pair.
    """
    # Identifiers are made of everything that is asked: this takes a third of the time of the reference implementation.
    try:
        return _written(value).encode()
    except (_OtherwiseWrittenError, UnicodeEncodeError):
        return rfc8785.dumps(value)


class _OtherwiseWrittenError(Exception):
    """Whether and how RFC 8785 writes this value is left to the reference implementation."""


def _written(value: Any) -> str:
    """The value in canonical JSON, for all but the few values that need more than a look."""
    # A member of a StrEnum is written as its text.
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    kind = type(value)
    if kind is int and -_MAX_INTEGER <= value <= _MAX_INTEGER:
        return str(value)
    if kind is list or kind is tuple:
        # Most lists are of texts, and a call for each would take longer than writing it.
        return f"[{','.join([quoted(one) if type(one) is str else _written(one) for one in value])}]"
    if kind is dict:
        return f"{{{','.join([f'{quoted(key)}:{_written(value[key])}' for key in _sorted_keys(value)])}}}"
    if kind is bool:
        return "true" if value else "false"
    if kind is float and value.is_integer():
        if abs(value) <= _MAX_INTEGER:
            return str(int(value))
    elif kind is float and _MIN_PLAIN_FLOAT <= abs(value) < _MAX_PLAIN_FLOAT:
        return repr(value)
    raise _OtherwiseWrittenError


def _sorted_keys(value: dict[Any, Any]) -> list[str]:
    try:
        # Keys are sorted by UTF-16 unit there and by character here, which is the same for ASCII.
        if "".join(value).isascii():
            return sorted(value)
    except TypeError:
        pass
    raise _OtherwiseWrittenError


def bytes_digest(data: bytes) -> str:
    """`sha256:` and 64 hex digits of the bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def json_digest(value: Any) -> str:
    """Digest of the canonical JSON of plain data."""
    return bytes_digest(canonical_json(value))


def short_id(value: Any, *, length: int = 16) -> str:
    """The first `length` hex digits of the canonical JSON's digest: an identifier that needs no counter."""
    return hashlib.sha256(canonical_json(value)).hexdigest()[:length]


def text_id(canonical: str) -> str:
    """`short_id` of what a canonical JSON text says, for the few identifiers whose text is put together by hand."""
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def digest_matches(pinned: str, full: str) -> bool:
    """Whether `pinned` (a full digest, or a prefix of 12 or more hex digits) names `full`."""
    return bool(DIGEST_OR_PREFIX.fullmatch(pinned)) and full.startswith(pinned)
