"""An entry of the decision log: what it says, and the digest by which the next one names it.

An entry is written once, in canonical JSON (RFC 8785). Its SHA-256 stands in the next entry as `previous`, so that an
entry which is changed, taken out or put in later no longer fits between its neighbours. docs/record.md has the schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.canonical import bytes_digest, canonical_json

_FULL_DIGEST: Final = r"^sha256:[0-9a-f]{64}$"


class EntryKind(StrEnum):
    """What an entry tells of. A reader that meets another word needs a newer Proctor."""

    DECISION = "decision"
    """The gate's decision on an audit: at most one entry an audit."""
    OVERRIDE = "override"
    """A person's sign-off on a decision, which stays as it is (`proctor.domain.record.sign_off`)."""
    EXPIRY = "expiry"
    """An approval that holds no longer."""


class Signer(Frozen):
    """The Ed25519 key by which an entry is signed. That it stands here makes nobody trust it."""

    key_id: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the public key's SubjectPublicKeyInfo in DER."""
    public_key: str = Field(pattern=r"^[A-Za-z0-9+/]{43}=$")
    """The 32 bytes of the public key, in base64."""


class Entry(Frozen):
    """One entry. `plain()` is what is digested, and what an attestation has as its predicate."""

    version: Literal[1] = 1
    sequence: int = Field(ge=1)
    """From 1, without gaps."""
    previous: str | None = Field(pattern=_FULL_DIGEST)
    """Digest of the entry before; None for the first."""
    time: str
    """When it was written, ISO 8601 in UTC."""
    kind: EntryKind
    audit_id: str
    content: dict[str, Any]
    """As the kind has it; of a decision what `decision_content` makes, of others `proctor.domain.record.sign_off`."""
    signer: Signer | None
    unsigned_because: str = ""
    """Where there is no signer: why."""

    def text(self) -> str:
        """Canonical JSON. Raises ValueError for what that form cannot hold."""
        return canonical_json(self.plain()).decode()


class LoggedEntry(NamedTuple):
    """An entry as it is kept: nothing of it is taken for granted until it is checked."""

    sequence: int
    text: str
    """Canonical JSON of an Entry."""
    digest: str
    """SHA-256 of the text."""
    signature: str | None
    """Ed25519 over the attestation's pre-authentication encoding, in base64."""


def plain_of(text: str) -> Any:
    """The plain data of canonical JSON. Raises ValueError for what is no JSON.

    That form writes a float without a fraction as if it were an integer, and holds none past 2**53 − 1.
    """
    return json.loads(text, parse_int=_number)


def _number(digits: str) -> int | float:
    value = int(digits)
    return value if abs(value) < 1 << 53 else float(value)


def text_digest(text: str) -> str:
    """The digest of an entry's text, or of any text."""
    return bytes_digest(text.encode())


def decision_content(
    event: Mapping[str, Any],
    *,
    decided_at: str,
    files: Mapping[str, str],
    taken_in: bool = False,
    approval: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What an entry says of a decision.

    Args:
        event: the decision event as it goes out.
        decided_at: the time in the decision's row, ISO 8601 in UTC.
        files: names of what lies in the report's folder, each with its digest.
        taken_in: whether the decision was on record before the entry was written, as one of before there was a log.
        approval: when an approval of it ends by itself (`ApprovalTerms`); nothing is written where it does not.
    """
    content = {
        "event": dict(event),
        "digests": {
            "report": event.get("reportDigest"),
            "fingerprint": event.get("fingerprint"),
            "protocol": event.get("protocolDigest"),
            "weights": event.get("modelDigest"),
        },
        "decided_at": decided_at,
        "files": dict(files),
        "taken_in": taken_in,
    }
    return {**content, "approval": dict(approval)} if approval else content
