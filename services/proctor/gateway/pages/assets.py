"""The style sheet and the script of the pages, from the gateway itself."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from proctor.gateway.pages.rendering import script, stylesheet

#: Their digest stands in their address.
_HEADERS: Final = {"cache-control": "public, max-age=31536000, immutable"}


def asset_routes() -> APIRouter:
    """The routes; what they give is nobody's secret, and a login page needs it."""
    routes = APIRouter(prefix="/assets", include_in_schema=False)

    @routes.get("/pages.css")
    async def style() -> Response:
        return Response(stylesheet(), headers=_HEADERS, media_type="text/css; charset=utf-8")

    @routes.get("/pages.js")
    async def behaviour() -> Response:
        return Response(script(), headers=_HEADERS, media_type="text/javascript; charset=utf-8")

    return routes
