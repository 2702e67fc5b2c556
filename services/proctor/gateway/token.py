"""The token that callers of a gateway show: `authorization: Bearer TOKEN`."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc
from grpc_health.v1 import health

#: Metadata of a call that carries the token; gRPC's names are in small letters.
METADATA_KEY: Final = "authorization"
_SCHEME: Final = "Bearer "
#: A probe of a server's health knows no token, and learns nothing of audits.
_OPEN: Final = f"/{health.SERVICE_NAME}/"
_REFUSED: Final = (
    "the token is missing or wrong: send the metadata `authorization: Bearer TOKEN` (PROCTOR_GATEWAY_TOKEN)"
)


def metadata_of(token: str | None) -> list[tuple[str, str]]:
    """What a client sends along with each call."""
    return [] if token is None else [(METADATA_KEY, _SCHEME + token)]


class TokenCheck(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Refuses calls without the token before their messages are read, but for those to the health service."""

    def __init__(self, token: str) -> None:
        self._expected = (_SCHEME + token).encode()

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        """The call's own handler, or one that refuses it."""
        if details.method.startswith(_OPEN) or self._shown_in(details.invocation_metadata):
            return await continuation(details)
        # Whatever the method's own kind: this one reads no message.
        return grpc.stream_stream_rpc_method_handler(_refuse)

    def _shown_in(self, metadata: Any) -> bool:
        shown = [value for key, value in metadata if key == METADATA_KEY]
        return len(shown) == 1 and hmac.compare_digest(str(shown[0]).encode(), self._expected)


async def _refuse(requests: Any, context: Any) -> None:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, _REFUSED)
