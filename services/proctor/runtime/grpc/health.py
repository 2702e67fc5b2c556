"""The health service of a gRPC server, which answers callers without a token and so takes little from each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import grpc
from grpc_health.v1 import health, health_pb2

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError
from proctor.runtime.grpc.calls import Places, Turns, one_message, status_text
from proctor.runtime.grpc.messages import SMALL_MESSAGE_BYTES, Unreadable, reader

#: Of a service's name.
MAX_SERVICE_CHARACTERS: Final = 256
#: Probes at once, which end at once, and watches at once, which stay: of all who ask for health together.
MAX_CHECKS: Final = 16
MAX_WATCHES: Final = 8
#: Room that a server keeps for both beside its own calls.
PROBES: Final = MAX_CHECKS + MAX_WATCHES
#: Messages that are read at once: each may be as large as the largest that the server takes, before it is refused.
_READ_AT_ONCE: Final = 1
#: A probe's message comes with its call. Shorter than for callers who are known: nobody is to hold probes back.
_READ_S: Final = 2.0
_ANYONE: Final = ""


class HealthCalls:
    """grpc.health.v1.Health over the states that a server sets."""

    def __init__(self, states: Any) -> None:
        self._states = states
        self._checks = Places("probes of health are open", MAX_CHECKS, MAX_CHECKS, "try again later")
        self._watches = Places("watches of health are open", MAX_WATCHES, MAX_WATCHES, "probe it instead")
        self._turns = Turns(_READ_AT_ONCE, _READ_AT_ONCE)

    def handler(self) -> Any:
        """What a grpc.aio server is given."""
        said = {"request_deserializer": reader(health_pb2.HealthCheckRequest, max_bytes=SMALL_MESSAGE_BYTES)}
        said["response_serializer"] = health_pb2.HealthCheckResponse.SerializeToString
        methods = {
            "Check": grpc.stream_unary_rpc_method_handler(self.check, **said),
            "Watch": grpc.stream_stream_rpc_method_handler(self.watch, **said),
        }
        return grpc.method_handlers_generic_handler(health.SERVICE_NAME, methods)

    async def check(self, requests: AsyncIterator[Any], context: Any) -> Any:
        """How a service is."""
        try:
            with self._checks.of(_ANYONE):
                return await self._states.Check(await self._asked(requests), context)
        except (BadInputError, LimitError) as error:
            await _refuse(error, context)

    async def watch(self, requests: AsyncIterator[Any], context: Any) -> None:
        """How a service is, and whenever that changes."""
        try:
            with self._watches.of(_ANYONE):
                await self._states.Watch(await self._asked(requests), context)
        except (BadInputError, LimitError) as error:
            await _refuse(error, context)

    async def _asked(self, requests: AsyncIterator[health_pb2.HealthCheckRequest | Unreadable]) -> Any:
        async with self._turns.of(_ANYONE):
            request = await one_message(requests, within_s=_READ_S)
        if len(request.service) > MAX_SERVICE_CHARACTERS:
            raise BadInputError(f"service has more than {MAX_SERVICE_CHARACTERS} characters")
        return request


async def _refuse(error: Exception, context: Any) -> None:
    limit = isinstance(error, LimitError)
    code = grpc.StatusCode.RESOURCE_EXHAUSTED if limit else grpc.StatusCode.INVALID_ARGUMENT
    await context.abort(code, status_text(error))
