"""`/review` and `/audits/ID/review`: what waits for a person, and where that person signs."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from proctor.domain.errors import BadInputError
from proctor.domain.record.sign_off import MAX_REASON_CHARACTERS, MAX_REFERENCE_CHARACTERS
from proctor.domain.standing import Standing
from proctor.domain.submitter import ForbiddenError, Role, Submitter
from proctor.gateway.audits import LocalDesk
from proctor.gateway.http.sessions import CSRF_FIELD, check_csrf, form_of
from proctor.gateway.pages.entries import ShownEntry, shown_entry
from proctor.gateway.pages.listing import place_of_text, place_text
from proctor.gateway.pages.shell import Shell
from proctor.gateway.pages.sign_offs import SentSignOff, offers, sent_of
from proctor.gateway.status import AuditStatus
from proctor.runtime.records.standings import Place, SignedMeanwhileError, place_of
from proctor.studies.review import Reviews, reviews_of

#: Audits on a page.
_PAGE: Final = 50


class _Looked(NamedTuple):
    status: AuditStatus
    standing: Standing | None
    signed: ShownEntry | None


def review_pages(shell: Shell) -> APIRouter:
    """The pages."""
    routes = shell.routes()

    @routes.get("/review")
    async def queue(request: Request, caller: Submitter = shell.caller) -> Response:
        before = place_of_text(request.query_params.get("before", ""))
        found, waiting = await shell.run(_queue, shell.desk(caller), None if before is None else Place(*before))
        return shell.page(
            request,
            caller,
            "review.html.jinja",
            title="Review",
            standings=found[:_PAGE],
            waiting=waiting,
            older=place_text(place_of(found[_PAGE - 1])) if len(found) > _PAGE else None,
            on_first_page=before is None,
        )

    @routes.get("/audits/{audit_id}/review")
    async def one(request: Request, audit_id: str, caller: Submitter = shell.caller) -> Response:
        signed = request.query_params.get("signed", "")
        looked = await shell.run(_looked, shell.desk(caller), audit_id, signed)
        return _form(shell, request, caller, looked)

    @routes.post("/audits/{audit_id}/review")
    async def sign(request: Request, audit_id: str, caller: Submitter = shell.caller) -> Response:
        form = await form_of(request)
        check_csrf(request, form.get(CSRF_FIELD, ""))
        shell.front.hold_to(caller, Role.REVIEWER)
        desk = shell.desk(caller)
        looked = await shell.run(_looked, desk, audit_id, "")
        try:
            sent = sent_of(form)
            standing = await shell.run(_signed, desk, looked.status.audit_id, sent, caller)
        except SignedMeanwhileError as error:
            looked = await shell.run(_looked, desk, audit_id, "")
            return _form(shell, request, caller, looked, form, str(error), HTTPStatus.CONFLICT)
        except ForbiddenError:
            raise
        except BadInputError as error:
            return _form(shell, request, caller, looked, form, str(error), HTTPStatus.BAD_REQUEST)
        # Not the page itself, which a browser would send once more when it is loaded again.
        where = f"/audits/{looked.status.audit_id}/review?signed={standing.sequence}"
        return RedirectResponse(where, HTTPStatus.SEE_OTHER)

    return routes


def _form(
    shell: Shell,
    request: Request,
    caller: Submitter,
    looked: _Looked,
    form: Mapping[str, str] | None = None,
    problem: str = "",
    code: HTTPStatus = HTTPStatus.OK,
) -> Response:
    standing, status = looked.standing, looked.status
    context: dict[str, Any] = {
        "standing": standing,
        "status": status,
        "signed": looked.signed,
        "offers": () if standing is None else offers(standing.outcome),
        "may_sign": caller.may(Role.REVIEWER),
        "form": form or {},
        "problem": problem,
        "most_reason": MAX_REASON_CHARACTERS,
        "most_reference": MAX_REFERENCE_CHARACTERS,
    }
    title = f"Review of {status.suite} on {status.model_id}"
    return shell.page(request, caller, "sign.html.jinja", code=code, title=title, **context)


def _reviews(desk: LocalDesk) -> Reviews:
    return reviews_of(desk.settings, desk.records, desk.send)


def _queue(desk: LocalDesk, before: Place | None) -> tuple[list[Standing], int]:
    submitter = None if desk.caller.sees_all else desk.caller.name
    reviews = _reviews(desk)
    return reviews.waiting(_PAGE + 1, before, submitter), reviews.n_waiting(submitter)


def _looked(desk: LocalDesk, audit: str, signed: str) -> _Looked:
    audit_id = desk.find(audit)
    entries = desk.records.logged(audit_id) if signed else []
    shown = next((shown_entry(one) for one in entries if str(one.sequence) == signed), None)
    return _Looked(desk.look(audit_id), desk.records.standings.standing_of(audit_id), shown)


def _signed(desk: LocalDesk, audit_id: str, sent: SentSignOff, by: Submitter) -> Standing:
    verb, outcome = sent.offer
    return (
        _reviews(desk)
        .sign(
            audit_id,
            verb,
            outcome,
            by,
            sent.reason,
            sent.reference,
            expires_after_days=sent.expires_after_days,
            seen=sent.seen,
        )
        .standing
    )
