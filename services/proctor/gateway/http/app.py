"""The application: its routes, its description, and what every answer carries.

A group of routes is a function that gives a router over the front (`audit_routes`, `webhook_routes`); the next one is
one more line here.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from concurrent.futures import Executor
from typing import Any, Final, NamedTuple

from fastapi import FastAPI, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from proctor import __version__
from proctor.domain.errors import ProctorError
from proctor.domain.submitter import CERTIFIED
from proctor.gateway.front import Front
from proctor.gateway.http import answers
from proctor.gateway.http.audits import audit_routes
from proctor.gateway.http.events import event_routes
from proctor.gateway.http.login import login_routes
from proctor.gateway.http.measured import Measured
from proctor.gateway.http.origin import OriginCheck
from proctor.gateway.http.probes import probe_routes
from proctor.gateway.http.reviews import review_routes
from proctor.gateway.http.sessions import Caller, Sessions
from proctor.gateway.http.trends import trend_routes
from proctor.gateway.http.webhooks import webhook_routes
from proctor.gateway.pages.registry import page_routes
from proctor.gateway.triggers.traffic import Traffic
from proctor.registry.webhooks.receiver import Receiver
from proctor.runtime.logs.context import new_request_id, saying

#: Of every answer. Nothing here is a page; a group of routes that serves pages says its own policy.
_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


#: Of the description: what takes a token. Webhooks have signatures.
_SHOWN_TO_CALLERS: Final = ("/v1/audits", "/v1/reviews", "/v1/trends", "/v1/benchmarks", "/v1/costs")


class Webhooks(NamedTuple):
    """What webhooks are served by."""

    receiver: Receiver
    workers: Executor
    """Threads in which deliveries are taken in."""
    traffic: Traffic


def application(front: Front, webhooks: Webhooks | None, sessions: Sessions) -> ASGIApp:
    """The application over a front.

    Args:
        front: whom gRPC serves, too.
        webhooks: where they come to; None where no triggers are configured.
        sessions: of browsers, at the same front.
    """
    app = FastAPI(
        title="Proctor",
        version=__version__,
        summary="Audits of LLM benchmark scores for contamination.",
        # The pages that FastAPI would show load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        separate_input_output_schemas=False,
        exception_handlers={
            ProctorError: answers.refused,
            SQLAlchemyError: answers.store_failed,
            RequestValidationError: answers.unreadable,
            HTTPException: answers.of_the_protocol,
            Exception: answers.failed,
        },
    )
    app.state.sessions = sessions
    app.include_router(probe_routes(front))
    app.include_router(login_routes())
    app.include_router(audit_routes(front))
    app.include_router(event_routes(front))
    app.include_router(review_routes(front))
    app.include_router(trend_routes(front))
    app.include_router(page_routes(front))
    if webhooks is not None:
        app.include_router(webhook_routes(*webhooks))

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi(caller: Caller) -> Response:
        # For whom gRPC's reflection is.
        del caller
        return JSONResponse(_described(app))

    # FastAPI puts a group of routes together when the first request comes. It hides warnings of pydantic's then, for
    # the whole process, which applications in several threads take from each other; and no webhook is to wait for it.
    for route in app.routes:
        route.matches({"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": []})
    # By TLS a page of another name cannot reach it: the certificate is not of that name.
    checked = OriginCheck(app, trusts_anyone=front.trusts_anyone and front.unnamed is not CERTIFIED)
    return Measured(_Headed(checked))


def _described(app: FastAPI) -> dict[str, Any]:
    description = app.openapi()
    schemes = description.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["token"] = {"type": "http", "scheme": "bearer"}
    for path, methods in description["paths"].items():
        for operation in methods.values() if path.startswith(_SHOWN_TO_CALLERS) else ():
            operation["security"] = [{"token": []}]
    return description


class _Headed:
    """Gives every answer the headers that keep browsers from making more of it than it is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with saying(request_id=new_request_id()):
            await self._answered(scope, receive, send)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def headed(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message.get("headers", ())}
                new = [
                    (name.encode(), value.encode()) for name, value in _HEADERS.items() if name.encode() not in there
                ]
                message["headers"] = [*message.get("headers", ()), *new]
            await send(message)

        await self._app(scope, receive, headed if scope["type"] == "http" else send)
