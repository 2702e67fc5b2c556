"""Who calls over HTTP: by the token that a program shows, or by the session that a browser was given for one.

A session is its token, which each request has looked at anew, so it ends with the token. Its cookie goes to no script
and to no other site's requests, and what a form posts must hold a text that only pages of the session have.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator, Sequence
from time import time
from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import Depends, Request, Response

from proctor.domain.errors import BadInputError
from proctor.domain.submitter import ForbiddenError, Submitter, UnknownCallerError
from proctor.gateway.front import Front
from proctor.gateway.http.bodies import SMALL_BODY_S, body_of
from proctor.gateway.http.origin import SAFE
from proctor.runtime.grpc.tokens import METADATA_KEY
from proctor.runtime.redis.sessions import SessionStore

#: A day of work: whoever comes back the next morning shows the token again.
SESSION_S: Final = 12 * 3600
#: Of a form: a reason of some thousand characters, with its percent-encoding.
MAX_FORM_BYTES: Final = 64 << 10
MAX_FORM_FIELDS: Final = 100
#: What a script of a page sends in the stead of a form's field.
CSRF_HEADER: Final = "x-csrf-token"
CSRF_FIELD: Final = "csrf_token"
_COOKIE_BYTES: Final = 32
#: Of a cookie's text; what is longer was not given by us, and is not looked up.
_COOKIE_CHARACTERS: Final = 43


class Sessions:
    """Sessions at one front.

    Args:
        front: who knows the callers.
        store: where sessions are kept.
        secure: whether browsers reach the server by TLS alone, and send the cookie over nothing else.
    """

    def __init__(self, front: Front, store: SessionStore, *, secure: bool) -> None:
        self.front = front
        self.cookie = "__Host-proctor-session" if secure else "proctor-session"
        self._store = store
        self._secure = secure
        # Of pages without a session, where callers are known by no token.
        self._key = secrets.token_bytes(32)

    async def caller(self, request: Request) -> Submitter:
        """Who sends a request.

        Raises:
            UnknownCallerError: when it shows neither a right token nor the cookie of a session.
            StoreError: when sessions cannot be looked up.
        """
        headers = shown(request)
        cookie = self._shown(request)
        # A token that is shown counts, wrong or not: a program must not go on as somebody else.
        if cookie is None or any(name == METADATA_KEY for name, _ in headers):
            return await self.front.caller(headers)
        token = await self.front.run(self._store.token, cookie)
        if token is None:
            return await self.front.caller(headers)
        found = (await self.front.verified(token)).caller
        request.state.session = cookie
        return found

    async def log_in(self, response: Response, token: str) -> Submitter:
        """Give a browser a session for a token.

        Raises:
            UnknownCallerError: when the token is nobody's.
            ForbiddenError: when it has no role here.
            IssuerAwayError: when its issuer has to be asked, and does not answer.
            StoreError: when the session cannot be kept.
        """
        known = await self.front.verified(token)
        kept_s = int(min(SESSION_S, known.ends_at - time()))
        if kept_s <= 0:
            raise UnknownCallerError("the token has expired")
        cookie = secrets.token_urlsafe(_COOKIE_BYTES)
        await self.front.run(lambda: self._store.put(cookie, token, kept_s=kept_s))
        response.set_cookie(
            self.cookie, cookie, max_age=kept_s, path="/", secure=self._secure, httponly=True, samesite="strict"
        )
        return known.caller

    async def log_out(self, request: Request, response: Response) -> None:
        """End the session of a browser, wherever else its cookie may be."""
        cookie = self._shown(request)
        if cookie is not None:
            await self.front.run(self._store.drop, cookie)
        response.delete_cookie(self.cookie, path="/", secure=self._secure, httponly=True, samesite="strict")

    def csrf_token(self, request: Request) -> str:
        """What a form of this page's must hold; see `csrf_token`."""
        cookie = getattr(request.state, "session", None)
        key = self._key if cookie is None else str(cookie).encode()
        return hmac.new(key, b"proctor csrf", hashlib.sha256).hexdigest()

    def _shown(self, request: Request) -> str | None:
        cookie = request.cookies.get(self.cookie, "")
        return cookie if len(cookie) == _COOKIE_CHARACTERS and cookie.isascii() else None


def sessions_of(request: Request) -> Sessions:
    """The sessions of the application that serves a request."""
    found = request.app.state.sessions
    assert isinstance(found, Sessions)
    return found


async def caller_of(request: Request) -> Submitter:
    """Who sends a request, by the token that it shows or by its session.

    Raises:
        UnknownCallerError: when it shows neither.
        StoreError: when sessions cannot be looked up.
    """
    return await sessions_of(request).caller(request)


async def calling(request: Request) -> AsyncIterator[Submitter]:
    """Who sends a request, and a place among the calls for as long as it is answered.

    What changes something by a session and not by a form must show the session's text in a header: a dependency of
    routes whose bodies are JSON.

    Raises:
        UnknownCallerError: as `caller_of`.
        ForbiddenError: when the header is missing.
        LimitError: when there is no place.
    """
    front = sessions_of(request).front
    caller = await caller_of(request)
    if request.method not in SAFE and getattr(request.state, "session", None) is not None:
        check_csrf(request, request.headers.get(CSRF_HEADER, ""))
    with front.calls.of(caller.name):
        yield caller


#: A route's parameter: who calls.
Caller = Annotated[Submitter, Depends(calling)]


async def looking(request: Request) -> AsyncIterator[Submitter]:
    """As `calling`, for pages: their forms hold the session's text themselves, and the route checks it.

    Raises:
        UnknownCallerError: as `caller_of`.
        LimitError: when there is no place.
    """
    caller = await caller_of(request)
    with sessions_of(request).front.calls.of(caller.name):
        yield caller


#: A page's parameter: who looks at it. A page that is posted to gives what was posted to `check_csrf`.
Viewer = Annotated[Submitter, Depends(looking)]


def csrf_token(request: Request) -> str:
    """What the forms of a page must hold in `csrf_token`: the session's, after `caller_of` has seen the request."""
    return sessions_of(request).csrf_token(request)


def check_csrf(request: Request, form_token: str) -> None:
    """Refuse a form that no page of this session's has sent.

    Raises:
        ForbiddenError: when its token is not the session's.
    """
    if not hmac.compare_digest(csrf_token(request).encode(), form_token.encode("utf-8", "replace")):
        raise ForbiddenError("the form is not of your session, or the session is another by now: load the page again")


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form that was posted, each once.

    Raises:
        BadInputError: when the body is no form, is too large or has a field twice.
        LimitError: when it does not come in time.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise BadInputError("the body is no form: send application/x-www-form-urlencoded")
    body = await body_of(request, most=MAX_FORM_BYTES, within_s=SMALL_BODY_S)
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS, errors="strict")
    except ValueError:
        raise BadInputError("the form cannot be read: it is not UTF-8, or has too many fields") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadInputError("the form has a field twice")
    return found


def shown(request: Request) -> Sequence[tuple[str, str]]:
    """The headers that a request shows, as `Tokens.caller` takes them."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.scope["headers"]]
