"""The promotion guard: whether a registry's word on a model version is borne out by the record. Pure.

A tag is text that anyone with write access to the registry can set. So the version's tags prove nothing by themselves:
they are held against the decision that is on record, and the report's document is digested again.
"""

from __future__ import annotations

from typing import NamedTuple

from proctor.domain.base import Frozen
from proctor.domain.canonical import bytes_digest
from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason, scope_caveat
from proctor.domain.scope import Scope


class HeldVersion(NamedTuple):
    """A model version and what the registry says of it. None where it says nothing."""

    name: str
    version: str
    model_digest: str | None
    audit_id: str | None
    outcome: str | None
    report_digest: str | None
    fingerprint: str | None


class OnRecord(NamedTuple):
    """What the record holds of the audit that a version names."""

    event: DecisionEvent | None
    """None where no such audit was decided."""
    registered_version: str | None
    """The version that the decision was written on."""
    document: bytes | None
    """The report's document; None where it is not in the artifact store, or not what it should be."""


class GateCheck(Frozen):
    """What a version may be promoted on."""

    name: str
    version: str
    audit_id: str | None
    outcome: DecisionOutcome | None
    """The decision on record; None where the registry's word is not proven by it."""
    scope: Scope | None
    caveat: str | None
    """What an approval has to say of its scope."""
    reasons: tuple[Reason, ...]
    """Of the decision; where nothing is proven, what does not agree."""

    @property
    def approved(self) -> bool:
        """Whether the version may be promoted."""
        return self.outcome is DecisionOutcome.APPROVE


def check(held: HeldVersion, record: OnRecord) -> GateCheck:
    """The decision on record where everything agrees; nothing is approved where anything does not.

    A version that no audit has decided waits for one, which is a review.
    """
    if held.audit_id is None and held.outcome is None:
        waiting = Reason(code="not_decided", text="No audit has decided on this version.")
        return _of(held, DecisionOutcome.REVIEW, None, (waiting,))
    faults = _faults(held, record)
    if faults or record.event is None:
        return _of(held, None, None, faults)
    return _of(held, record.event.outcome, record.event.scope, record.event.reasons)


def _faults(held: HeldVersion, record: OnRecord) -> tuple[Reason, ...]:
    event = record.event
    if event is None:
        text = f"The registry names the audit {held.audit_id or '(none)'}, and no decision of it is on record."
        return (Reason(code="not_on_record", text=text),)
    found = []
    for code, what, here, there in (
        ("outcome_differs", "decision", held.outcome, event.outcome.value),
        ("model_differs", "digest of the weights", held.model_digest, event.model_digest),
        ("report_differs", "digest of the report", held.report_digest, event.report_digest),
        ("fingerprint_differs", "fingerprint of the suite", held.fingerprint, event.fingerprint),
        ("version_differs", "version", held.version, record.registered_version),
    ):
        if here != there:
            text = f"The {what} is {here or '(none)'} in the registry and {there or '(none)'} on record."
            found.append(Reason(code=code, text=text))
    if record.document is None:
        found.append(Reason(code="report_missing", text="The report's document is not in the artifact store."))
    elif bytes_digest(record.document) != event.report_digest:
        found.append(Reason(code="report_changed", text="The report's document is not the one that was decided on."))
    return tuple(found)


def _of(
    held: HeldVersion, outcome: DecisionOutcome | None, scope: Scope | None, reasons: tuple[Reason, ...]
) -> GateCheck:
    caveat = None if outcome is None else scope_caveat(outcome, scope)
    return GateCheck(
        name=held.name,
        version=held.version,
        audit_id=held.audit_id,
        outcome=outcome,
        scope=scope,
        caveat=caveat,
        reasons=reasons,
    )
