"""A user name and a password in front of an ASGI application: of all of it, whatever its paths are."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_REFUSAL: Final = b"user name or password is missing or wrong\n"
#: RFC 6455: the endpoint's policy is violated.
_POLICY_VIOLATED: Final = 1008


def basic_credentials(user: str, password: str) -> str:
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


class BasicAuth:
    """Lets through what shows the user name and the password, before the application sees anything of it."""

    def __init__(self, application: Application, user: str, password: str, *, realm: str) -> None:
        self._application = application
        self._expected = basic_credentials(user, password).encode()
        self._realm = realm

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, of any kind that ASGI knows."""
        if scope["type"] == "lifespan" or self._is_shown(scope):
            await self._application(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATED})
        else:
            challenge = f'Basic realm="{self._realm}", charset="UTF-8"'.encode()
            headers = [(b"www-authenticate", challenge), (b"content-type", b"text/plain"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": _REFUSAL})

    def _is_shown(self, scope: Scope) -> bool:
        shown = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        return len(shown) == 1 and hmac.compare_digest(shown[0], self._expected)
