"""Requests that a page of somebody else's had a browser send: refused before any route sees them.

By what browsers say of a request and pages cannot change: Sec-Fetch-Site, else Origin beside Host. Programs send
neither, and show a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from proctor.domain.host import address_of, is_loopback
from proctor.domain.submitter import ForbiddenError
from proctor.domain.url import UrlFault, parts_of, read_place
from proctor.gateway.http.answers import problem, status_of

#: Methods that change nothing.
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
#: From a page of this server's own, or from no page: typed, or a bookmark.
_OWN_SITES: Final = frozenset({"same-origin", "none"})


def foreign(method: str, headers: Mapping[str, str], *, trusts_anyone: bool) -> str | None:
    """Why a request is none of a page of this server's, nor of a program; None where it may be.

    Args:
        method: in capital letters.
        headers: by names in small letters.
        trusts_anyone: whether who shows no token is let in. A page whose name was made to lead to this server (DNS
            rebinding) is of the same origin for the browser; only the name that it calls tells. Where tokens are
            asked for it has none, nor the cookie of another name.
    """
    host = headers.get("host", "")
    if trusts_anyone and not _is_here(host):
        return (
            "this server asks for no token, and so answers to localhost and to addresses alone: call it by "
            "127.0.0.1, or give it tokens"
        )
    if method in SAFE:
        return None
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return None if site in _OWN_SITES else "the request comes from a page of another site"
    if origin is None:
        return None
    # Behind what ends TLS the scheme is another, and the host is as the browser has it.
    if _place_of(origin) != host.lower():
        return "the request comes from a page of another origin"
    return None


def _place_of(origin: str) -> str | None:
    """Host and port of an origin; None where it has none, as `null`."""
    try:
        return parts_of(origin).authority.lower() or None
    except UrlFault:
        return None


def _is_here(host: str) -> bool:
    try:
        name = read_place(host).host
    except UrlFault:
        return False
    return is_loopback(name) or name.endswith(".localhost") or address_of(name) is not None


class OriginCheck:
    """Refuses what comes from pages of others."""

    def __init__(self, app: ASGIApp, *, trusts_anyone: bool) -> None:
        self._app = app
        self._trusts_anyone = trusts_anyone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] == "http":
            why = foreign(scope["method"], Headers(scope=scope), trusts_anyone=self._trusts_anyone)
            if why is not None:
                await problem(status_of(ForbiddenError(why)), why)(scope, receive, send)
                return
        await self._app(scope, receive, send)
