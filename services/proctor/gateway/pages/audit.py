"""`/audits/ID`: one audit, as far as it is, with its decision, its record and its report."""

from __future__ import annotations

from time import monotonic
from typing import Any, Final, NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from proctor.domain.action import ActionOnRecord
from proctor.domain.canonical import canonical_json
from proctor.domain.decision import scope_caveat
from proctor.domain.standing import Standing
from proctor.domain.submitter import Role, Submitter
from proctor.gateway.audits import LocalDesk
from proctor.gateway.desk import UnknownAuditError
from proctor.gateway.pages.entries import ShownEntry, shown_entry
from proctor.gateway.pages.paces import Paces
from proctor.gateway.pages.progress import said_of, steps_of
from proctor.gateway.pages.report_files import REPORT_POLICY, document_of, page_of
from proctor.gateway.pages.shell import Shell
from proctor.gateway.status import AuditStatus
from proctor.router.audit import AuditView, view
from proctor.studies.record.checks import attestation_of

#: Entries on one audit that a page shows: a decision, and what people said to it.
_ENTRIES: Final = 100
#: The last of what was done to it.
_ACTIONS: Final = 100


class Looked(NamedTuple):
    """What a page of an audit is made of."""

    status: AuditStatus
    audit: AuditView
    event: dict[str, Any] | None
    standing: Standing | None
    entries: tuple[ShownEntry, ...]
    n_entries: int
    actions: tuple[ActionOnRecord, ...]


def one_audit_pages(shell: Shell) -> APIRouter:
    """The pages."""
    routes, paces = shell.routes(), Paces()

    @routes.get("/audits/{audit_id}")
    async def one(request: Request, audit_id: str, caller: Submitter = shell.caller) -> Response:
        looked = await shell.run(_looked, shell.desk(caller), audit_id)
        status = paces.measured(looked.status, monotonic())
        return shell.page(
            request,
            caller,
            "audit.html.jinja",
            title=f"{status.suite} on {status.model_id}",
            status=status,
            suite=looked.audit.suite,
            fingerprint=looked.audit.card.fingerprint,
            event=looked.event,
            standing=looked.standing,
            caveat=_caveat(looked),
            may_sign=caller.may(Role.REVIEWER),
            entries=looked.entries,
            n_entries=looked.n_entries,
            actions=looked.actions,
            steps=steps_of(status.state),
            said=said_of(status),
        )

    @routes.get("/audits/{audit_id}/progress")
    async def progress(request: Request, audit_id: str, caller: Submitter = shell.caller) -> Response:
        status = paces.measured(await shell.run(shell.desk(caller).status, audit_id), monotonic())
        return shell.page(
            request,
            caller,
            "progress_part.html.jinja",
            title="Progress",
            status=status,
            steps=steps_of(status.state),
            said=said_of(status),
        )

    @routes.get("/audits/{audit_id}/report")
    async def report(audit_id: str, caller: Submitter = shell.caller) -> Response:
        content = await shell.run(page_of, shell.desk(caller), audit_id)
        # A document of its own, in which nothing runs: not even as a page of this site would it reach a session.
        return Response(content, headers={**_KEPT, "content-security-policy": REPORT_POLICY}, media_type=_HTML)

    @routes.get("/audits/{audit_id}/report.json")
    async def document(audit_id: str, caller: Submitter = shell.caller) -> Response:
        content = await shell.run(document_of, shell.desk(caller), audit_id)
        return _download(content, "report.json", "application/json")

    @routes.get("/audits/{audit_id}/attestation/{sequence}.json")
    async def attestation(audit_id: str, sequence: int, caller: Submitter = shell.caller) -> Response:
        content = await shell.run(_attestation, shell.desk(caller), audit_id, sequence)
        return _download(content, f"attestation-{sequence}.json", "application/vnd.in-toto+json")

    return routes


_KEPT: Final = {"referrer-policy": "no-referrer", "cache-control": "no-store"}
_HTML: Final = "text/html; charset=utf-8"


def _download(content: bytes, name: str, media_type: str) -> Response:
    return Response(
        content, headers={**_KEPT, "content-disposition": f'attachment; filename="{name}"'}, media_type=media_type
    )


def _looked(desk: LocalDesk, audit: str) -> Looked:
    audit_id = desk.find(audit)
    logged = desk.records.logged(audit_id)
    return Looked(
        status=desk.look(audit_id),
        audit=view(desk.records, audit_id),
        event=desk.records.decision(audit_id),
        standing=desk.records.standings.standing_of(audit_id),
        entries=tuple(shown_entry(one) for one in logged[:_ENTRIES]),
        n_entries=len(logged),
        actions=tuple(desk.records.actions.of(audit_id)[-_ACTIONS:]),
    )


def _caveat(looked: Looked) -> str | None:
    """What an approval has to say of its scope before anything else."""
    if looked.standing is None or looked.status.decision is None:
        return None
    return scope_caveat(looked.standing.outcome, looked.status.decision.scope)


def _attestation(desk: LocalDesk, audit: str, sequence: int) -> bytes:
    audit_id = desk.find(audit)
    for logged in desk.records.logged(audit_id):
        if logged.sequence == sequence and logged.signature is not None:
            return canonical_json(attestation_of(logged))
    raise UnknownAuditError(f"audit {audit_id} has no signed entry {sequence} in the decision log")
