"""`/login`: the form in which a person shows a token; what becomes of it is the sessions' own."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from proctor.gateway.http.login import next_path
from proctor.gateway.pages.shell import Shell


def login_pages(shell: Shell) -> APIRouter:
    """The page."""
    routes = shell.routes()

    @routes.get("/login")
    async def login(request: Request) -> Response:
        return shell.page(
            request,
            None,
            "login.html.jinja",
            title="Log in",
            asks_for_tokens=shell.front.tokens is not None,
            failed="failed" in request.query_params,
            next=next_path(request.query_params.get("next", "")),
        )

    return routes
