"""The gRPC server around the audit service: address, TLS, token, health, reflection, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeAlias

import grpc
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection

from proctor.domain.submitter import CERTIFIED, LOCAL
from proctor.gateway.audits import LocalDesk
from proctor.gateway.front import Front
from proctor.gateway.limits import Limits
from proctor.gateway.oidc.bearer import Bearers
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.gateway.service import SERVICE, AuditServicer
from proctor.runtime.grpc.calls import MAX_REFLECTIONS, Rationed
from proctor.runtime.grpc.health import PROBES, HealthCalls
from proctor.runtime.grpc.measured import MeasuredCalls
from proctor.runtime.grpc.serving import Address, Tls, bind, hold_to_callers, server_options
from proctor.runtime.grpc.tokens import TokenCheck, Tokens

log = logging.getLogger(__name__)

#: Where a token is taken from, by servers and clients alike.
TOKEN_VARIABLE: Final = "PROCTOR_GATEWAY_TOKEN"  # noqa: S105, the name of a variable


#: What serves beside gRPC, for as long as its block lasts.
Beside: TypeAlias = Callable[[Front], AbstractAsyncContextManager[object]]


def nothing_beside(front: Front) -> AbstractAsyncContextManager[object]:
    """gRPC alone."""
    del front
    return contextlib.nullcontext()


async def serve(
    desk: LocalDesk,
    address: Address,
    *,
    limits: Limits,
    grace_s: float,
    tokens: Tokens | None = None,
    bearers: Bearers | None = None,
    tls: Tls | None = None,
    beside: Beside = nothing_beside,
    ready: Callable[[Address], None],
) -> None:
    """Serve until SIGTERM or SIGINT.

    From then on new calls are refused and watches end at once; what else is open has `grace_s` seconds to end.

    Args:
        desk: audits on the stores of this machine.
        address: where to listen.
        limits: what is taken at once.
        grace_s: seconds that open calls have after the signal.
        tokens: what callers must show, and whose each is; None asks for none.
        bearers: callers who show an issuer's token instead; None knows no issuer.
        tls: certificates; None serves plain text.
        beside: what else serves at the same front, e.g. HTTP.
        ready: told the address, with its real port, once the server listens.

    Raises:
        BadInputError: when the address cannot be listened on or the certificates cannot be used, or other machines
            could call without a token.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with running(
        desk, address, limits=limits, grace_s=grace_s, tokens=tokens, bearers=bearers, tls=tls, beside=beside
    ) as bound:
        ready(bound)
        await stop.wait()
        log.info("stopping: open calls have %g s", grace_s)


@contextlib.asynccontextmanager
async def running(
    desk: LocalDesk,
    address: Address,
    *,
    limits: Limits,
    grace_s: float = 0.0,
    tokens: Tokens | None = None,
    bearers: Bearers | None = None,
    tls: Tls | None = None,
    beside: Beside = nothing_beside,
) -> AsyncIterator[Address]:
    """The server, listening, for as long as the block lasts; gives the address with its real port.

    Raises:
        BadInputError: as `serve`.
    """
    asks = tokens is not None or bearers is not None
    hold_to_callers(address, tls, has_tokens=asks, variable=TOKEN_VARIABLE, what="begin and cancel audits")
    verify = None if bearers is None else bearers.verified
    checks = [TokenCheck(tokens, TOKEN_VARIABLE, verify)] if asks else []
    calls = limits.max_watches + limits.max_other_calls + PROBES
    server = grpc.aio.server(
        interceptors=[MeasuredCalls(_measured()), *checks, Rationed(reflection.SERVICE_NAME, MAX_REFLECTIONS)],
        options=server_options(limits.max_message_bytes, calls),
        maximum_concurrent_rpcs=calls,
    )
    with ThreadPoolExecutor(max_workers=limits.threads, thread_name_prefix="gateway-stores") as workers:
        certified = tls is not None and tls.client_authority is not None
        front = Front(desk, workers, limits, tokens, CERTIFIED if certified else LOCAL, bearers)
        servicer = AuditServicer(front)
        states = health.aio.HealthServicer()
        server.add_generic_rpc_handlers((servicer.handler(), HealthCalls(states).handler()))
        reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        bound = bind(server, address, tls)
        await states.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
        await server.start()
        try:
            async with beside(front):
                yield bound
                # Before what is beside it ends, whose own watches have an end by this.
                front.leave()
        finally:
            front.leave()
            await states.enter_graceful_shutdown()
            await server.stop(grace_s)


def _measured() -> list[str]:
    """Methods that are told apart in the metrics."""
    own = [f"/{SERVICE}/{method.name}" for method in pb.DESCRIPTOR.services_by_name["AuditService"].methods]
    return [*own, f"/{health.SERVICE_NAME}/Check", f"/{health.SERVICE_NAME}/Watch"]
