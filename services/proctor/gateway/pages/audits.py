"""`/audits`: the audits on record, the newest first."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from proctor.domain.decision import DecisionOutcome
from proctor.domain.submitter import Submitter
from proctor.gateway.pages.listing import listing_of, place_text
from proctor.gateway.pages.shell import Shell
from proctor.runtime.records.audit_list import Place
from proctor.runtime.records.audit_state import AuditState

#: Audits on a page.
_PAGE: Final = 50


def audit_pages(shell: Shell) -> APIRouter:
    """The pages."""
    routes = shell.routes()

    @routes.get("/")
    async def first() -> Response:
        return RedirectResponse("/audits", 303)

    @routes.get("/audits")
    async def listed(request: Request, caller: Submitter = shell.caller) -> Response:
        listing = listing_of(request.query_params)
        desk = shell.desk(caller)
        found = await shell.run(lambda: desk.listed(listing.wanted, limit=_PAGE + 1, before=listing.before))
        audits, last = found[:_PAGE], found[_PAGE - 1] if len(found) > _PAGE else None
        return shell.page(
            request,
            caller,
            "audits.html.jinja",
            title="Audits",
            audits=audits,
            filters=listing.filters,
            older=None if last is None else place_text(Place(last.created_at, last.audit_id)),
            on_first_page=listing.before is None,
            states=[state.value for state in AuditState],
            outcomes=[outcome.value for outcome in DecisionOutcome],
        )

    return routes
