"""A submission under a key of its caller's own: given again, it goes on with the audit that it began, ended or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from proctor.domain.canonical import short_id
from proctor.gateway.audits import LocalDesk
from proctor.gateway.desk import Submitted
from proctor.gateway.fields import FieldError
from proctor.runtime.records.requests import AuditRequest, NewRequest, RequestTakenError

#: Of a key.
MAX_KEY_CHARACTERS: Final = 200
_CALLER: Final = "caller"


class KeyReusedError(FieldError):
    """A key under which something else was submitted."""


def submit_once(desk: LocalDesk, key: str, content: str, begin: Callable[[str], Submitted]) -> Submitted:
    """Begin an audit, or give the one that was begun under the same key.

    Args:
        desk: the caller's.
        key: the caller's own; other callers' keys are others.
        content: digest of what is submitted.
        begin: begins the audit of a request on record.

    Raises:
        FieldError: for a key that is too long, or under which something else was submitted.
        BadInputError: as `begin`.
    """
    if not 0 < len(key) <= MAX_KEY_CHARACTERS or not key.isascii() or not key.isprintable():
        raise FieldError(f"Idempotency-Key must be 1 to {MAX_KEY_CHARACTERS} printable ASCII characters")
    name, requests = desk.caller.name, desk.records.requests
    asked = NewRequest(short_id([_CALLER, name, key], length=40), _CALLER, name, key, content, _CALLER, {})
    requests.add([asked])
    found = requests.find([asked.key])[asked.key]
    if found.suite_digest != content:
        raise KeyReusedError("Idempotency-Key was used for another submission: give each its own")
    if found.audit_id is None:
        try:
            return begin(asked.key)
        except RequestTakenError:
            found = requests.find([asked.key])[asked.key]
    return _as_it_is(desk, found)


def _as_it_is(desk: LocalDesk, found: AuditRequest) -> Submitted:
    assert found.audit_id is not None, "a request that is taken has its audit"
    status = desk.look(found.audit_id)
    return Submitted(status, status.state, ())
