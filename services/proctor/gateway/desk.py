"""What can be done with audits from outside, wherever they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from proctor.domain.errors import BadInputError
from proctor.domain.messages import Priority
from proctor.gateway.status import AuditStatus
from proctor.runtime.records.audit_state import AuditState, UnreadableAudit

#: Audits that a list holds where nobody says how many.
DEFAULT_LIMIT: Final = 50
#: Of an audit's name: an id has 16 hex digits and a number.
MAX_AUDIT_CHARACTERS: Final = 64


class UnknownAuditError(BadInputError):
    """An audit that is not on record, or a beginning of an id that several share."""


class Submitted(NamedTuple):
    """An audit that was put on record and begun."""

    audit: AuditStatus
    """As it is now."""
    stopped_at: AuditState | None
    """Where the audit was with which it goes on; None where it is new."""
    notes: tuple[str, ...]
    """What a person should know of its data."""


class AuditDesk(Protocol):
    """What the commands need: met by the stores of this machine, and by the service on another.

    An audit is named by its id or by a beginning of it that no other shares. Every method raises BadInputError for
    what a person has to mend, and another ProctorError where a store or the service cannot be reached.
    """

    def submit(self, suite_file: Path, priority: Priority) -> Submitted:
        """Begin an audit by the suite in a file, or go on with the one that did not end."""

    def status(self, audit: str) -> AuditStatus:
        """An audit as it is now."""

    def audits(self, limit: int = DEFAULT_LIMIT) -> list[AuditStatus | UnreadableAudit]:
        """Audits on record, the newest first; those that need a newer Proctor are named among them."""

    def watch(self, audit: str) -> Iterator[AuditStatus]:
        """An audit as it is now and later, with its pace, until it has ended."""

    def pause(self, audit: str) -> AuditStatus:
        """Hand out nothing more of an audit; what is under way is still recorded."""

    def resume(self, audit: str) -> AuditStatus:
        """Go on with a paused audit."""

    def cancel(self, audit: str) -> AuditStatus:
        """End an audit for good."""
