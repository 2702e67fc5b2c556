"""What all pages have in common: who looks at them, the navigation, and what is shown where one cannot be.

A group of pages is a function that takes the shell and gives a router (`shell.routes()`), with one line in
`proctor.gateway.pages.registry.PAGES`. Its handlers take who calls by `caller: Submitter = shell.caller`, and answer
with `shell.page(request, caller, "template.html.jinja", title=…)`, whose template extends `base.html.jinja`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar, TypeVarTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Depends
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from proctor.domain.errors import ProctorError
from proctor.domain.submitter import Submitter
from proctor.gateway.audits import LocalDesk
from proctor.gateway.front import Front, UnknownCallerError, said_of_the_records
from proctor.gateway.http.answers import MAX_DETAIL_CHARACTERS, route_of, status_of
from proctor.gateway.http.origin import SAFE
from proctor.gateway.http.sessions import csrf_token, looking
from proctor.gateway.pages.rendering import page

logger = logging.getLogger(__name__)

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
#: What is said of a status beside the error's own sentence.
_SAID: Final = {
    HTTPStatus.UNAUTHORIZED: "You are not logged in",
    HTTPStatus.FORBIDDEN: "This is not yours to do",
    HTTPStatus.NOT_FOUND: "There is no such page",
    HTTPStatus.TOO_MANY_REQUESTS: "Too much at once",
    HTTPStatus.SERVICE_UNAVAILABLE: "A store does not answer",
    HTTPStatus.INTERNAL_SERVER_ERROR: "This page failed",
}


class Entry(NamedTuple):
    """An entry of the navigation."""

    path: str
    name: str


class Shell:
    """The frame around every page.

    Args:
        front: whom the other protocols serve, too.
        navigation: entries in their order.
    """

    def __init__(self, front: Front, navigation: Sequence[Entry]) -> None:
        self.front = front
        self.navigation = tuple(navigation)
        self.caller = Depends(looking)

    def routes(self) -> APIRouter:
        """A router whose errors are shown as pages, and which the description of the interface does not have."""
        return APIRouter(route_class=_page_route(self), include_in_schema=False)

    def page(
        self, request: Request, caller: Submitter | None, template: str, /, *, code: int = 200, **context: Any
    ) -> Response:
        """A page of a template that extends `base.html.jinja`, and needs a `title`."""
        here = request.url.path
        frame = {
            "navigation": [(one, here == one.path or here.startswith(f"{one.path}/")) for one in self.navigation],
            "caller": caller,
            "csrf": None if caller is None else csrf_token(request),
            "has_session": getattr(request.state, "session", None) is not None,
        }
        return page(template, {**frame, **context}, status=code)

    def desk(self, caller: Submitter) -> LocalDesk:
        """The audits of a caller."""
        return self.front.desk.of(caller)

    async def run(self, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Do what waits for a store in one of the front's threads."""
        return await self.front.run(work, *arguments)

    def to_login(self, request: Request) -> Response:
        """Lead to the page for tokens, and from there back."""
        if request.headers.get("sec-fetch-site") == "cross-site":
            # By a link of another site's, with which a browser sends no cookie: it is there when the page asks again.
            return self.page(request, None, "again.html.jinja", title="Proctor")
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?{urlencode({'next': here})}", HTTPStatus.SEE_OTHER)

    def problem(self, request: Request, status: HTTPStatus, detail: str) -> Response:
        """The page that is shown instead of one that cannot be."""
        title = _SAID.get(status, status.phrase)
        return self.page(
            request, None, "problem.html.jinja", code=status, title=title, detail=detail[:MAX_DETAIL_CHARACTERS]
        )


def _page_route(shell: Shell) -> type[APIRoute]:
    class PageRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            handle = super().get_route_handler()

            async def handled(request: Request) -> Response:
                where = route_of(request)
                try:
                    return await handle(request)
                except UnknownCallerError as error:
                    if request.method not in SAFE:
                        return shell.problem(request, HTTPStatus.UNAUTHORIZED, str(error))
                    return shell.to_login(request)
                except ProctorError as error:
                    status = status_of(error)
                    logger.info("%s %s ended with %d", request.method, where, status)
                    return shell.problem(request, status, str(error))
                except SQLAlchemyError as error:
                    logger.error("%s: the record store failed", where, exc_info=error)
                    return shell.problem(request, HTTPStatus.SERVICE_UNAVAILABLE, said_of_the_records(error))
                except RequestValidationError:
                    return shell.problem(request, HTTPStatus.BAD_REQUEST, "The form was not filled in as it should be.")
                except HTTPException as error:
                    return shell.problem(request, HTTPStatus(error.status_code), "")
                except Exception as error:
                    logger.error("%s failed", where, exc_info=error)
                    said = f"{type(error).__name__}; see the server's log"
                    return shell.problem(request, HTTPStatus.INTERNAL_SERVER_ERROR, said)

            return handled

    return PageRoute
