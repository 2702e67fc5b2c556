"""Canonical JSON (RFC 8785) and the digests over it, so that anybody's implementation finds the same digest."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import rfc8785

FULL_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
#: 12 hex digits (48 bits) is what the article prints; shorter prefixes are too easy to collide by accident.
DIGEST_OR_PREFIX = re.compile(r"sha256:[0-9a-f]{12,64}")


def canonical_json(value: Any) -> bytes:
    """Serialise plain data to canonical JSON (RFC 8785).

    Raises:
        ValueError: for what that form cannot hold: NaN, an infinity, an integer past 2**53 − 1, half of a surrogate
            pair.
    """
    return rfc8785.dumps(value)


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
