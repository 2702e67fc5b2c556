"""What holds for an audit now: its decision, a person's sign-off on it, or the end of an approval. Pure.

It follows from the entries of the decision log alone, in their order, so whoever has the log can compute it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from proctor.domain.base import Frozen
from proctor.domain.decision import DecisionOutcome
from proctor.domain.problems import visible
from proctor.domain.record.entry import Entry, EntryKind
from proctor.domain.record.sign_off import ApprovalTerms, Expiry, SignedBy, SignOff

#: Of what a standing repeats of its decision, where the event was written by somebody else than Proctor.
_CHARACTERS: Final = 400
_SEVERITY: Final = {DecisionOutcome.APPROVE: 0, DecisionOutcome.REVIEW: 1, DecisionOutcome.BLOCK: 2}


class StandingKind(StrEnum):
    """What a standing rests on."""

    DECISION = "decision"
    SIGN_OFF = "sign_off"
    EXPIRY = "expiry"


class Standing(Frozen):
    """What holds for an audit."""

    audit_id: str
    outcome: DecisionOutcome
    decided: DecisionOutcome
    """What the gate decided, which nobody changes."""
    kind: StandingKind
    by: SignedBy | None = None
    """Who signed off; None where nobody did."""
    reason: str = ""
    """Of the sign-off, or why the approval ended; empty where the decision stands, which has its own."""
    reference: str = ""
    at: str
    """Since when, ISO 8601 in UTC."""
    expires_at: str | None = None
    """When an approval ends by itself."""
    sequence: int
    """The entry of the log that it rests on, by its number."""
    audit_suite_id: str = ""
    model_id: str = ""
    model_digest: str = ""
    protocol_digest: str = ""
    ends_when_superseded: bool = False

    @property
    def waits(self) -> bool:
        """Whether a person is to look: at a review, and at a block that nobody has signed off."""
        signed_off = self.kind is StandingKind.SIGN_OFF
        return self.outcome is DecisionOutcome.REVIEW or (self.outcome is DecisionOutcome.BLOCK and not signed_off)


def standing_after(before: Standing | None, entry: Entry) -> Standing | None:
    """What holds after an entry of the log; None where that cannot be said.

    Args:
        before: what held before; None where the log had nothing on the audit.
        entry: the next entry on the same audit.

    Raises:
        ValidationError: the content is none that this Proctor knows.
    """
    if entry.kind is EntryKind.DECISION:
        return before or _of_decision(entry)
    if entry.kind is EntryKind.OVERRIDE:
        return _after_sign_off(before, SignOff.model_validate(entry.content), entry)
    return _after_expiry(before, Expiry.model_validate(entry.content), entry)


def _of_decision(entry: Entry) -> Standing | None:
    event = entry.content.get("event")
    if not isinstance(event, dict):
        return None
    try:
        outcome, at = DecisionOutcome(str(event.get("outcome"))), str(entry.content.get("decided_at"))
        terms = ApprovalTerms.model_validate(entry.content.get("approval", {}))
        return Standing(
            audit_id=entry.audit_id,
            outcome=outcome,
            decided=outcome,
            kind=StandingKind.DECISION,
            at=at,
            expires_at=expires_at(outcome, terms, at),
            sequence=entry.sequence,
            audit_suite_id=_word(event, "auditSuiteId"),
            model_id=_word(event, "modelId"),
            model_digest=_word(event, "modelDigest"),
            protocol_digest=_word(event, "protocolDigest"),
            ends_when_superseded=terms.ends_when_superseded,
        )
    except (ValueError, OverflowError):
        # Taken in after somebody edited it, or of a newer Proctor: nobody says that it is approved.
        return None


def _word(event: Mapping[str, Any], name: str) -> str:
    return visible(str(event.get(name) or ""))[:_CHARACTERS]


def _after_sign_off(before: Standing | None, sign_off: SignOff, entry: Entry) -> Standing | None:
    if before is None:
        return None
    return before.model_copy(
        update={
            "outcome": sign_off.outcome,
            "kind": StandingKind.SIGN_OFF,
            "by": sign_off.by,
            "reason": sign_off.reason,
            "reference": sign_off.reference,
            "at": entry.time,
            "expires_at": sign_off.expires_at,
            "sequence": entry.sequence,
        }
    )


def _after_expiry(before: Standing | None, expiry: Expiry, entry: Entry) -> Standing | None:
    if before is None:
        return None
    why = (
        "The time of the approval is over."
        if expiry.because == "time"
        else f"The suite was changed, and decided on the model anew in audit {visible(str(expiry.superseded_by))[:80]}."
    )
    return _expired(before, expiry.at, why).model_copy(update={"sequence": entry.sequence})


def _expired(before: Standing, at: str, why: str) -> Standing:
    # Of a block that a person had overridden for a time, the block is what is left.
    left = max(DecisionOutcome.REVIEW, before.decided, key=_SEVERITY.__getitem__)
    return before.model_copy(
        update={
            "outcome": left,
            "kind": StandingKind.EXPIRY,
            "by": None,
            "reason": why,
            "reference": "",
            "at": at,
            "expires_at": None,
        }
    )


def is_expired(standing: Standing, now: datetime) -> bool:
    """Whether an approval is past its time."""
    if standing.outcome is not DecisionOutcome.APPROVE or standing.expires_at is None:
        return False
    return datetime.fromisoformat(standing.expires_at) <= now


def standing_at(standing: Standing, now: datetime) -> Standing:
    """What holds at a time: an approval past its time does not, whether the log says so yet or not.

    Whoever acts on a standing asks this first.
    """
    if not is_expired(standing, now):
        return standing
    return _expired(standing, str(standing.expires_at), "The time of the approval is over.")


def expires_at(outcome: DecisionOutcome, terms: ApprovalTerms, since: str) -> str | None:
    """When an approval of these terms ends, ISO 8601 in UTC; None where it does not, or is none.

    Raises:
        ValueError: `since` is no time.
    """
    if outcome is not DecisionOutcome.APPROVE or terms.expires_after_days is None:
        return None
    return as_text(datetime.fromisoformat(since) + timedelta(days=terms.expires_after_days))


def as_text(time: datetime) -> str:
    """A time as the record writes it, so that texts are in the order of times."""
    return time.astimezone(UTC).isoformat(timespec="seconds")
