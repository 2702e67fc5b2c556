"""Counts and times requests over HTTP, by the path of their route and never by the caller's."""

from __future__ import annotations

from collections.abc import MutableMapping
from time import monotonic
from typing import Any, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from proctor.runtime.metrics import recording as metrics

#: What no route is for, and what is refused before one is looked for.
NO_ROUTE: Final = "none"


class Measured:
    """An application whose answers are counted as they begin: an event stream goes on for as long as it is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s = monotonic()

        async def counted(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                path = getattr(scope.get("route"), "path", None)
                route = path if isinstance(path, str) else NO_ROUTE
                metrics.http_request(route, scope["method"], message["status"], monotonic() - started_s)
            await send(message)

        await self._app(scope, receive, counted)
