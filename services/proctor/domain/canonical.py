"""Canonical JSON (RFC 8785) and the digests over it, so that anybody's implementation finds the same digest."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final

import rfc8785

FULL_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
#: 12 hex digits (48 bits) is what the article prints; shorter prefixes are too easy to collide by accident.
DIGEST_OR_PREFIX = re.compile(r"sha256:[0-9a-f]{12,64}")


#: The form holds integers up to here exactly (RFC 8785, section 3.1, by way of I-JSON).
_MAX_INTEGER: Final = 2**53 - 1
#: Between these, Python and ECMAScript write a float that is no integer in the same way.
_MIN_PLAIN_FLOAT: Final = 1e-4
_MAX_PLAIN_FLOAT: Final = 1e16
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def canonical_json(value: Any) -> bytes:
    """Serialise plain data to canonical JSON (RFC 8785).

    Raises:
        ValueError: for what that form cannot hold: NaN, an infinity, an integer past 2**53 − 1, half of a surrogate
            pair.
    """
    # The standard library's encoder is in C and writes the same bytes for all but a few values.
    try:
        return _ENCODER.encode(_as_json(value)).encode()
    except (_OtherwiseWrittenError, UnicodeEncodeError):
        return rfc8785.dumps(value)


class _OtherwiseWrittenError(Exception):
    """The standard library would not write this value as RFC 8785 does, or the form cannot hold it."""


def _as_json(value: Any) -> Any:
    """The value as the standard library's encoder has to be given it, so that it writes what RFC 8785 says."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is dict:
        # Keys are sorted by UTF-16 unit there and by character here, which is the same for ASCII.
        if not all(type(key) is str and key.isascii() for key in value):
            raise _OtherwiseWrittenError
        return {key: _as_json(one) for key, one in value.items()}
    if kind is list or kind is tuple:
        return [_as_json(one) for one in value]
    if kind is int and -_MAX_INTEGER <= value <= _MAX_INTEGER:
        return value
    if kind is float and value.is_integer():
        if abs(value) <= _MAX_INTEGER:
            return int(value)
    elif kind is float and _MIN_PLAIN_FLOAT <= abs(value) < _MAX_PLAIN_FLOAT:
        return value
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


def digest_matches(pinned: str, full: str) -> bool:
    """Whether `pinned` (a full digest, or a prefix of 12 or more hex digits) names `full`."""
    return bool(DIGEST_OR_PREFIX.fullmatch(pinned)) and full.startswith(pinned)
