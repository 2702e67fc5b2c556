"""What a check of the record finds."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Code(StrEnum):
    """What is wrong, or worth knowing. docs/record.md says of each what it means."""

    UNREADABLE = "unreadable"
    EDITED = "edited"
    GAP = "gap"
    BROKEN_CHAIN = "broken_chain"
    HEAD_DIFFERS = "head_differs"
    SIGNATURE_MISSING = "signature_missing"
    SIGNATURE_WRONG = "signature_wrong"
    UNKNOWN_KEY = "unknown_key"
    UNSIGNED = "unsigned"
    UNSIGNED_END = "unsigned_end"
    ENVELOPE_DIFFERS = "envelope_differs"
    DECIDED_TWICE = "decided_twice"
    DECISION_EDITED = "decision_edited"
    DECISION_MISSING = "decision_missing"
    DECISION_NOT_LOGGED = "decision_not_logged"
    UNFOUNDED = "unfounded"
    STANDING_DIFFERS = "standing_differs"
    REPORT_MISSING = "report_missing"
    REPORT_SWAPPED = "report_swapped"
    ATTESTATION_DIFFERS = "attestation_differs"
    WITNESS_CONTRADICTS = "witness_contradicts"
    CUT_OFF = "cut_off"


#: Of these the record is intact all the same.
NOTES = frozenset({Code.UNSIGNED})


class Finding(NamedTuple):
    """One thing that was found."""

    code: Code
    text: str
    sequence: int | None = None
    """Of the entry, where it is about one."""
    audit_id: str | None = None

    @property
    def is_fault(self) -> bool:
        """Whether the record is not intact for it."""
        return self.code not in NOTES
