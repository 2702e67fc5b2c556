"""Steering an audit that runs: pause it, let it go on, or end it for good.

The audit's row is the truth: every step of the router looks at it. Whoever steers sends `TakeOn` afterwards, so that
what was paused goes on at once, and what was paused or cancelled lets others have its share of the endpoints. Who did
it is put on record with it.
"""

from __future__ import annotations

from typing import Any

from proctor.domain.action import Action, Verb
from proctor.domain.errors import BadInputError, StoreError
from proctor.domain.submitter import LOCAL, Submitter
from proctor.router.audit import inputs_of
from proctor.router.inputs import AuditInputs
from proctor.router.states import Cause, before
from proctor.runtime.records.store import AuditRecord, AuditState, Records


def pause(records: Records, audit_id: str, by: Submitter = LOCAL) -> AuditRecord:
    """Hand out nothing more of an audit. What is under way is recorded when it is answered.

    Raises:
        BadInputError: when there is no such audit, or it has ended.
    """
    return _steered(records, audit_id, "paused", Action(Verb.PAUSE, by), paused=True)


def resume(records: Records, audit_id: str, by: Submitter = LOCAL) -> AuditRecord:
    """Let an audit go on that was paused, or that failed; one that runs stays as it is.

    Raises:
        BadInputError: when there is no such audit, or it has ended for good.
    """
    action = Action(Verb.RESUME, by)
    while (record := _known(records, audit_id)).state in before(Cause.RESUMED, AuditState.CREATED):
        # Created, so that whoever watches it does not take the old end for a new one, and the router begins it anew.
        unpaused = inputs_of(record).model_copy(update={"paused": False})
        if _changed(records, record, AuditState.CREATED, unpaused, action):
            return records.audit(audit_id)
    return _steered(records, audit_id, "resumed", action, paused=False)


def cancel(records: Records, audit_id: str, by: Submitter = LOCAL) -> AuditRecord:
    """End an audit for good, without a decision: the same suite begins another.

    Raises:
        BadInputError: when there is no such audit, or it has ended, or its decision is on record.
    """
    action = Action(Verb.CANCEL, by)
    while True:
        record = _running(records, audit_id, "cancelled")
        if records.decision(audit_id) is not None:
            raise BadInputError(f"audit {audit_id} cannot be cancelled: its decision is on record")
        if records.advance(audit_id, AuditState.CANCELLED, expected=[record.state], detail="cancelled", action=action):
            return records.audit(audit_id)


def _steered(records: Records, audit_id: str, done: str, action: Action, **changes: Any) -> AuditRecord:
    while True:
        record = _running(records, audit_id, done)
        inputs = inputs_of(record)
        changed = inputs.model_copy(update=changes)
        if changed == inputs or _changed(records, record, record.state, changed, action, record.detail):
            return records.audit(audit_id)


def _changed(
    records: Records, record: AuditRecord, state: AuditState, inputs: AuditInputs, action: Action, detail: str = ""
) -> bool:
    return records.advance(
        record.audit_id,
        state,
        expected=[record.state],
        expected_inputs=record.inputs,
        detail=detail,
        inputs=inputs.plain(),
        action=action,
    )


def _known(records: Records, audit_id: str) -> AuditRecord:
    try:
        return records.audit(audit_id)
    except StoreError as error:
        raise BadInputError(f"{error}; `proctor audit list` names those that there are") from None


def _running(records: Records, audit_id: str, done: str) -> AuditRecord:
    record = _known(records, audit_id)
    if record.state.ended:
        raise BadInputError(f"audit {audit_id} cannot be {done}: it has ended already ({record.state.value})")
    return record
