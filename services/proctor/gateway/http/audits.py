"""`/v1/audits`: begin audits, and look at them."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from proctor.domain.canonical import bytes_digest
from proctor.domain.messages import Priority
from proctor.domain.suite_problems import parse_suite
from proctor.domain.suite_schema import suite_schema
from proctor.gateway.audits import LocalDesk
from proctor.gateway.desk import DEFAULT_LIMIT, Submitted
from proctor.gateway.fields import LONGEST_LIST, FieldError
from proctor.gateway.front import Front
from proctor.gateway.http.answers import problems
from proctor.gateway.http.bodies import body_of
from proctor.gateway.http.sessions import Caller
from proctor.gateway.limits import MAX_SUITE_BYTES, UPLOAD_S
from proctor.gateway.once import submit_once
from proctor.gateway.status import AuditStatus
from proctor.runtime.records.audit_state import AuditState, UnreadableAudit

#: What every route may answer beside what it is for.
_COMMON: Final = problems(401, 403, 422, 429, 503)


class SubmittedAudit(BaseModel):
    """An audit that was begun, or gone on with."""

    audit_id: str
    audit: AuditStatus
    stopped_at: AuditState | None = None
    """Where the audit was with which it goes on; null where it is new."""
    notes: tuple[str, ...] = ()


class UnreadableEntry(BaseModel):
    """An audit on record that needs a newer Proctor."""

    audit_id: str
    created_at: str
    why: str


class ActionEntry(BaseModel):
    """What a caller did to an audit."""

    id: int
    action: str
    name: str
    via: str
    """How they were known: `terminal`, `token`, `certificate`, `trigger`, or `oidc:` and the issuer."""
    at: str
    detail: dict[str, Any]


class ActionList(BaseModel):
    """What callers did to an audit, in its order."""

    actions: list[ActionEntry]


class AuditList(BaseModel):
    """Audits on record, the newest first."""

    audits: list[AuditStatus | UnreadableEntry]


def audit_routes(front: Front) -> APIRouter:
    """The routes over a front."""
    routes = APIRouter(prefix="/v1/audits", tags=["audits"], responses=_COMMON)
    sent: dict[str, Any] = {
        "requestBody": {"required": True, "content": {"application/json": {"schema": suite_schema()}}},
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "Given again with the same suite, the audit that was begun under it is given back.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 200},
            }
        ],
    }

    @routes.post("", status_code=202, responses=problems(400, 413), openapi_extra=sent)
    async def submit(
        request: Request,
        response: Response,
        caller: Caller,
        priority: Priority = Priority.NORMAL,
    ) -> SubmittedAudit:
        """Begin an audit by a suite, or go on with the one of the same suite that has not ended.

        A suite that names files is for gRPC (`proctor audit submit --server`), by which they come along.
        """

        async def read() -> bytes:
            return await body_of(request, most=MAX_SUITE_BYTES, within_s=UPLOAD_S)

        keys = request.headers.getlist("idempotency-key")
        if len(keys) > 1:
            raise FieldError("Idempotency-Key stands there twice: send one")

        def begin(desk: LocalDesk, body: list[bytes]) -> Submitted:
            text = body.pop()
            suite = parse_suite(text)
            if not keys:
                return desk.submit_attached(suite, {}, priority)
            content = bytes_digest(f"{priority} ".encode() + text)
            return submit_once(
                desk, keys[0], content, lambda request: desk.submit_attached(suite, {}, priority, request=request)
            )

        begun = await front.submit(caller, read, begin)
        response.headers["Location"] = f"/v1/audits/{begun.audit.audit_id}"
        return SubmittedAudit(
            audit_id=begun.audit.audit_id, audit=begun.audit, stopped_at=begun.stopped_at, notes=begun.notes
        )

    @routes.get("")
    async def listed(caller: Caller, limit: Annotated[int, Query(ge=1, le=LONGEST_LIST)] = DEFAULT_LIMIT) -> AuditList:
        """Audits on record, the newest first: the caller's own, or all for who sees all."""
        found = await front.run(front.desk.of(caller).audits, limit)
        return AuditList(audits=[_entry(one) for one in found])

    @routes.get("/{audit_id}", responses=problems(400, 404))
    async def one(audit_id: str, caller: Caller) -> AuditStatus:
        """An audit as it is now, by its id or by a beginning of it that no other shares."""
        return await front.run(front.desk.of(caller).status, audit_id)

    @routes.get("/{audit_id}/actions", responses=problems(400, 404))
    async def actions(audit_id: str, caller: Caller) -> ActionList:
        """Who submitted, paused, resumed or cancelled an audit, and when."""
        found = await front.run(front.desk.of(caller).actions, audit_id)
        return ActionList(actions=[ActionEntry(**one._asdict()) for one in found])

    return routes


def _entry(one: AuditStatus | UnreadableAudit) -> AuditStatus | UnreadableEntry:
    if isinstance(one, UnreadableAudit):
        return UnreadableEntry(audit_id=one.audit_id, created_at=one.created_at, why=one.why)
    return one
