"""The promotion guard: whether a registry's word on a model version is borne out by the record. Pure.

A tag is text that anyone with write access to the registry can set. So the version's tags prove nothing by themselves:
they are held against what stands on record, over all suites that the version has to pass and with every sign-off and
end of an approval, and the report's document is digested again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from proctor.domain.base import Frozen
from proctor.domain.canonical import bytes_digest
from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason, scope_caveat
from proctor.domain.scope import Scope
from proctor.domain.version_decision import VersionDecision
from proctor.domain.weights import Weights, falls_short, of_all


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
    """What the record holds of a version, and of the audit that it names."""

    event: DecisionEvent | None
    """Of the audit that the version names; None where no such audit was decided."""
    decision: VersionDecision | None
    """What stands of the version now; None where nothing on record is of it."""
    events: Mapping[str, DecisionEvent]
    """The decisions on its weights, by audit."""
    registered: frozenset[str]
    """The versions on which decisions on these weights were written."""
    document: bytes | None
    """The document of the report that the version names; None where it is not in the artifact store, or not what it
    should be."""
    last_write: str = ""
    """Why the registry could not be written the last time; empty where it could."""


class GateCheck(Frozen):
    """What a version may be promoted on."""

    name: str
    version: str
    audit_id: str | None
    outcome: DecisionOutcome | None
    """The decision on record; None where the registry's word is not proven by it."""
    scope: Scope | None
    weights: Weights | None
    """How the digest of the weights is known; None where nothing is decided, or an earlier Proctor did."""
    caveat: str | None
    """What an approval has to say of its scope."""
    reasons: tuple[Reason, ...]
    """Of the decision; where nothing is proven, what does not agree."""

    @property
    def approved(self) -> bool:
        """Whether the version may be promoted."""
        return self.outcome is DecisionOutcome.APPROVE


def check(held: HeldVersion, record: OnRecord, *, wanted: Weights | None = None) -> GateCheck:
    """What stands on record where everything agrees; nothing is approved where anything does not.

    A version that no audit has decided waits for one, which is a review.

    Args:
        held: what the registry says of the version.
        record: what the record holds.
        wanted: what has to be known of the weights at least; None where nothing has to be.
    """
    decision, event = record.decision, record.event
    if held.audit_id is None and held.outcome is None:
        reasons = () if decision is None else decision.reasons(record.events)
        waiting = Reason(code="not_decided", text="The registry has no decision on this version yet.")
        return _of(held, DecisionOutcome.REVIEW, None, (waiting, *reasons))
    faults = _faults(held, record)
    if faults or event is None or decision is None:
        return _of(held, None, None, faults)
    found = _of(held, decision.outcome, event.scope, decision.reasons(record.events))
    counting = [record.events[audit].weights for audit in _audits_of(decision) if audit in record.events]
    return _short_of(wanted, found.model_copy(update={"weights": of_all(counting or [event.weights])}))


def _audits_of(decision: VersionDecision) -> tuple[str, ...]:
    """The audits that count for a version."""
    return tuple(one.audit_id for one in decision.suites if one.audit_id is not None)


def _short_of(wanted: Weights | None, found: GateCheck) -> GateCheck:
    """What is approved is a review where the weights are not known as whoever asks wants them to be."""
    # What an earlier Proctor called verified was what a configuration said, and it does not say where.
    known = found.weights or Weights.UNKNOWN
    if wanted is None or not falls_short(known, wanted):
        return found
    text = f"The weights are to be {wanted.value}, and those of the audit are {known.words}."
    if found.weights is None:
        text = f"The weights are to be {wanted.value}, and an audit that counts is of before it was told how they are."
    outcome = DecisionOutcome.REVIEW if found.outcome is DecisionOutcome.APPROVE else found.outcome
    reasons = (Reason(code="weights_not_enough", text=text), *found.reasons)
    caveat = None if outcome is None else scope_caveat(outcome, found.scope)
    return found.model_copy(update={"outcome": outcome, "reasons": reasons, "caveat": caveat})


def _faults(held: HeldVersion, record: OnRecord) -> tuple[Reason, ...]:
    event, decision = record.event, record.decision
    if event is None:
        text = f"The registry names the audit {held.audit_id or '(none)'}, and no decision of it is on record."
        return (Reason(code="not_on_record", text=text),)
    stands = None if decision is None else decision.outcome.value
    found = []
    for code, what, here, there in (
        ("outcome_differs", "decision", held.outcome, stands),
        ("model_differs", "digest of the weights", held.model_digest, event.model_digest),
        ("report_differs", "digest of the report", held.report_digest, event.report_digest),
        ("fingerprint_differs", "fingerprint of the suite", held.fingerprint, event.fingerprint),
    ):
        if here != there:
            text = f"The {what} is {here or '(none)'} in the registry and {there or '(none)'} on record."
            found.append(Reason(code=code, text=text))
    if held.version not in record.registered:
        named = ", ".join(sorted(record.registered)) or "(none)"
        text = f"The version is {held.version} in the registry and {named} on record."
        found.append(Reason(code="version_differs", text=text))
    if record.document is None:
        found.append(Reason(code="report_missing", text="The report's document is not in the artifact store."))
    elif bytes_digest(record.document) != event.report_digest:
        found.append(Reason(code="report_changed", text="The report's document is not the one that was decided on."))
    # Why the record says otherwise by now: a sign-off, the end of an approval, a suite that is still to be run.
    if decision is not None and any(one.code == "outcome_differs" for one in found):
        found += decision.reasons(record.events)
    if found and record.last_write:
        text = f"The registry could not be written the last time: {record.last_write}"
        found.append(Reason(code="not_written", text=text))
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
        weights=None,
        caveat=caveat,
        reasons=reasons,
    )
