"""Calls of a gRPC server that are open at once, and their messages: how many, whose, how large and how long."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeVar
from urllib.parse import quote

import grpc

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError
from proctor.runtime.grpc.messages import Unreadable

#: A status travels in a header, percent-encoded, and clients refuse headers of more than 8 KiB.
MAX_STATUS_BYTES: Final = 4_096
#: A small message comes with its call; whoever takes longer holds back those who wait to be read.
SMALL_MESSAGE_S: Final = 10.0

#: Calls that ask for a contract, whose messages are read before they are looked at.
MAX_REFLECTIONS: Final = 2

M = TypeVar("M")


class Places:
    """Calls of a kind that are open at once, of all callers together and of each.

    Args:
        what: what there are only so many of, e.g. `audits are being watched`.
        most: of all callers together.
        each: of one caller.
        mend: what to do when there are no more.
    """

    def __init__(self, what: str, most: int, each: int, mend: str) -> None:
        self._what = what
        self._most = most
        self._each = min(each, most)
        self._mend = mend
        self._taken: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """Places that are taken."""
        return self._taken.total()

    @contextmanager
    def of(self, caller: str) -> Iterator[None]:
        """A place for a caller, for as long as the block lasts.

        Raises:
            LimitError: when there is none.
        """
        if self._taken.total() >= self._most:
            raise LimitError(f"{self._most} {self._what}, and no more are taken: {self._mend}")
        if self._taken[caller] >= self._each:
            raise LimitError(f"{self._each} {self._what} by one caller, and no more are taken: end one, or wait")
        self._taken[caller] += 1
        try:
            yield
        finally:
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]


class Turns:
    """Work that is done by so many at once: others wait, and no caller keeps the others from their turn."""

    def __init__(self, most: int, each: int) -> None:
        self._all = asyncio.Semaphore(most)
        self._each = each
        # Callers are the names of tokens, of which there are only so many.
        self._own: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def of(self, caller: str) -> AsyncIterator[None]:
        """A turn, for as long as the block lasts."""
        own = self._own.setdefault(caller, asyncio.Semaphore(self._each))
        async with own, self._all:
            yield


async def one_message(messages: AsyncIterator[M | Unreadable], *, within_s: float) -> M:
    """The one message of a call that is read as a stream, so that it is not in memory before it is its turn.

    Raises:
        BadInputError: when there is none, or it cannot be read.
        LimitError: when it does not come in time.
    """
    try:
        async with asyncio.timeout(within_s):
            message = await anext(messages, None)
    except TimeoutError:
        raise LimitError(f"the message did not come within {within_s:g} s: call again, on a quicker line") from None
    if message is None:
        raise BadInputError("the call carries no message")
    if isinstance(message, Unreadable):
        raise BadInputError(message.why)
    return message


class Rationed(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Lets so many calls of a service be open at once that reads its messages itself.

    Args:
        service: its name, of which all methods are streams.
        most: calls.
    """

    def __init__(self, service: str, most: int) -> None:
        self._prefix = f"/{service}/"
        self._places = Places(f"calls of {service} are open", most, most, "try again later")

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        """The call's own handler, or one that takes a place first."""
        handler = await continuation(details)
        if handler is None or not details.method.startswith(self._prefix):
            return handler

        async def rationed(requests: Any, context: Any) -> None:
            try:
                with self._places.of(""):
                    async for reply in handler.stream_stream(requests, context):
                        await context.write(reply)
            except LimitError as error:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, status_text(error))

        return grpc.stream_stream_rpc_method_handler(
            rationed,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


def status_text(error: Exception) -> str:
    """What a status says of an error, cut to what a header holds."""
    text = str(error)
    if len(text) * 12 <= MAX_STATUS_BYTES:
        return text
    kept: list[str] = []
    room = MAX_STATUS_BYTES
    for sign in text[:MAX_STATUS_BYTES]:
        # As it is escaped on the wire: a sign of four bytes takes twelve.
        room -= len(quote(sign, safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}", errors="replace"))
        if room < 0:
            break
        kept.append(sign)
    return "".join(kept)
