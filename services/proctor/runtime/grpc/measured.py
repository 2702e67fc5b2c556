"""Counts and times the calls of a gRPC server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final

import grpc

from proctor.runtime.metrics import recording as metrics

_OTHER: Final = "other"


class MeasuredCalls(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Tells the metrics of each call when it ends. The first of a server's, so that it sees what the others refuse.

    Args:
        methods: those that are told apart, as `/service/method`; callers make up more.
    """

    def __init__(self, methods: Collection[str]) -> None:
        self._methods = frozenset(methods)

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], details: Any) -> Any:
        """The call's own handler, with its time taken."""
        handler = await continuation(details)
        method = details.method if details.method in self._methods else _OTHER
        if handler is None:
            metrics.grpc_request(method, grpc.StatusCode.UNIMPLEMENTED.name, 0.0)
            return None
        said = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if handler.response_streaming:
            behaviour = handler.stream_stream if handler.request_streaming else handler.unary_stream

            async def streamed(request: Any, context: Any) -> None:
                with _timed(method, context):
                    replies = behaviour(request, context)
                    if isinstance(replies, AsyncIterator):
                        async for reply in replies:
                            await context.write(reply)
                    else:
                        await replies

            kind = (
                grpc.stream_stream_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_stream_rpc_method_handler
            )
            return kind(streamed, **said)
        answers = handler.stream_unary if handler.request_streaming else handler.unary_unary

        async def answered(request: Any, context: Any) -> Any:
            with _timed(method, context):
                return await answers(request, context)

        kind = (
            grpc.stream_unary_rpc_method_handler if handler.request_streaming else grpc.unary_unary_rpc_method_handler
        )
        return kind(answered, **said)


@contextmanager
def _timed(method: str, context: Any) -> Iterator[None]:
    started_s, code = monotonic(), grpc.StatusCode.UNKNOWN
    try:
        yield
        code = _code(context, grpc.StatusCode.OK)
    except asyncio.CancelledError:
        code = grpc.StatusCode.CANCELLED
        raise
    except BaseException:
        code = _code(context, grpc.StatusCode.UNKNOWN)
        raise
    finally:
        metrics.grpc_request(method, code.name, monotonic() - started_s)


def _code(context: Any, unsaid: grpc.StatusCode) -> grpc.StatusCode:
    """What a handler has said, as a status; `unsaid` where it has said nothing."""
    said = context.code()
    if isinstance(said, grpc.StatusCode):
        return said
    # The asynchronous server says the number, which is 0 until something else is said.
    return next((status for status in grpc.StatusCode if status.value[0] == said and said != 0), unsaid)
