"""The bodies of requests: how large they may be, and how long they may take to come."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import ClientDisconnect, Request

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError

#: A small body comes with its request.
SMALL_BODY_S: Final = 10.0


class BodyTooLargeError(BadInputError):
    """A body that is read no further."""


async def body_of(request: Request, *, most: int, within_s: float) -> bytes:
    """The bytes of a body as they came.

    Raises:
        BodyTooLargeError: when it is larger than `most`, before it is in memory.
        LimitError: when it does not come in time.
        BadInputError: when its sender went away, or says nonsense of its length.
    """
    said = request.headers.get("content-length", "0")
    if not (said.isascii() and said.isdigit() and len(said) <= 19):
        raise BadInputError("Content-Length is no number of bytes")
    if int(said) > most:
        raise _too_large(most)
    body = bytearray()
    try:
        async with asyncio.timeout(within_s):
            async for piece in request.stream():
                body += piece
                if len(body) > most:
                    raise _too_large(most)
    except TimeoutError:
        raise LimitError(f"the body did not come within {within_s:g} s: call again, on a quicker line") from None
    except ClientDisconnect:
        raise BadInputError("the body did not come whole") from None
    return bytes(body)


def _too_large(most: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"the body is larger than {most >> 10} KiB, and is read no further")
