"""`POST /login` and `POST /logout`: a session for a token, and its end. The page with the form is the pages' own."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from proctor.gateway.front import UnknownCallerError
from proctor.gateway.http.answers import problems
from proctor.gateway.http.attempts import Attempts
from proctor.gateway.http.sessions import CSRF_FIELD, caller_of, check_csrf, form_of, sessions_of

#: Of the path that is gone to afterwards.
_MAX_PATH: Final = 2_000


def login_routes() -> APIRouter:
    """The routes, over the application's sessions."""
    routes = APIRouter(tags=["sessions"], include_in_schema=False, responses=problems(400, 401, 413, 429, 503))
    attempts = Attempts()

    @routes.post("/login")
    async def log_in(request: Request) -> Response:
        """Begin a session; the form has `token`, and `next` for where to go."""
        form = await form_of(request)
        answer = RedirectResponse(next_path(form.get("next", "")), HTTPStatus.SEE_OTHER)
        client = request.client.host if request.client else ""
        try:
            with attempts.of(client):
                await sessions_of(request).log_in(answer, form.get("token", "").strip())
        except UnknownCallerError:
            if "text/html" not in request.headers.get("accept", ""):
                raise
            return RedirectResponse("/login?failed=1", HTTPStatus.SEE_OTHER)
        return answer

    @routes.post("/logout")
    async def log_out(request: Request) -> Response:
        """End the session."""
        form = await form_of(request)
        answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
        try:
            await caller_of(request)
        except UnknownCallerError:
            # It has ended already.
            return answer
        check_csrf(request, form.get(CSRF_FIELD, ""))
        await sessions_of(request).log_out(request, answer)
        return answer

    return routes


def next_path(text: str) -> str:
    """Where to go after a login: a path of this server, `/` for anything else."""
    fits = len(text) <= _MAX_PATH and text.isascii() and text.isprintable()
    # Browsers take a backslash for a slash, and two of them for another server.
    return text if fits and text.startswith("/") and not text.startswith("//") and "\\" not in text else "/"
