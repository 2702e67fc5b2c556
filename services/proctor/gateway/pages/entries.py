"""Entries of the decision log as pages show them. Nothing that stands in one is taken for granted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from proctor.domain.record.entry import LoggedEntry, plain_of


class ShownEntry(NamedTuple):
    """An entry as it is shown; what is not there, or no text, is empty."""

    sequence: int
    digest: str
    signed: bool
    kind: str = "unreadable"
    audit_id: str = ""
    time: str = ""
    unsigned_because: str = ""
    outcome: str = ""
    """What holds from it on."""
    by: str = ""
    via: str = ""
    reason: str = ""
    reference: str = ""
    expires_at: str = ""


def shown_entry(logged: LoggedEntry) -> ShownEntry:
    """An entry as it is shown."""
    shown = ShownEntry(logged.sequence, logged.digest, logged.signature is not None)
    try:
        entry = plain_of(logged.text)
    except (ValueError, RecursionError):
        return shown
    content = _part(entry, "content")
    event, by = _part(content, "event"), _part(content, "by")
    return shown._replace(
        kind=_text(entry, "kind"),
        audit_id=_text(entry, "audit_id"),
        time=_text(entry, "time"),
        unsigned_because=_text(entry, "unsigned_because"),
        outcome=_text(content, "outcome") or _text(event, "outcome"),
        by=_text(by, "name"),
        via=_text(by, "via"),
        reason=_text(content, "reason"),
        reference=_text(content, "reference"),
        expires_at=_text(content, "expires_at"),
    )


def _part(said: Any, name: str) -> Mapping[str, Any]:
    found = said.get(name) if isinstance(said, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _text(said: Any, name: str) -> str:
    found = said.get(name) if isinstance(said, Mapping) else None
    return found if isinstance(found, str) else ""
