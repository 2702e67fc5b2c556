"""Where an audit is, and its row in the record store."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, NamedTuple


class AuditState(StrEnum):
    """Where an audit is. The last three are ends, of which `failed` can be started again."""

    CREATED = "created"
    PROBING = "probing"
    REWORDING = "rewording"
    PARAPHRASING = "paraphrasing"
    """The model that rewords is being asked. Comes back to `rewording`, as often as more is to be asked."""
    TRANSMITTING = "transmitting"
    """The routers are being asked, where the suite has any."""
    ASKING = "asking"
    """The solvers of the answering check are asked, or the model of a plug-in's stage, where the suite wants any."""
    ANSWERING = "answering"
    SCORING = "scoring"
    REGISTERING = "registering"
    DECIDED = "decided"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.final or self is AuditState.FAILED

    @property
    def final(self) -> bool:
        """Whether nothing more ever happens: the same suite begins another audit."""
        return self in (AuditState.DECIDED, AuditState.CANCELLED)


class AuditRecord(NamedTuple):
    """One audit's row."""

    audit_id: str
    subject: str
    ordinal: int
    suite: str
    inputs_json: str
    """What the router needs to go on with it (digests, endpoints), as it is stored."""
    state: AuditState
    detail: str
    created_at: str = ""
    """Time of submission, ISO 8601 in UTC."""

    @property
    def inputs(self) -> dict[str, Any]:
        """`inputs_json` as plain data."""
        inputs: dict[str, Any] = json.loads(self.inputs_json)
        return inputs


class UnreadableAudit(NamedTuple):
    """A row that this program cannot read, and who could."""

    audit_id: str
    created_at: str
    why: str
    """One sentence that names the audit."""


class AuditOnRecord(NamedTuple):
    """One audit's row and its decision's as they are stored: what another version wrote is not lost on the reader."""

    audit_id: str
    suite: str
    inputs: str
    state: str
    event: str | None
    """The decision."""
    decided_at: str | None
    created_at: str = ""
    """When it was submitted."""
