"""The gRPC server around the audit service: address, TLS, token, health, reflection, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from proctor.domain.errors import BadInputError
from proctor.gateway.audits import LocalDesk
from proctor.gateway.limits import Limits
from proctor.gateway.rpc import audit_pb2_grpc
from proctor.gateway.service import SERVICE, AuditServicer
from proctor.gateway.token import TokenCheck
from proctor.runtime.grpc_serving import Address, Tls, bind, server_options

log = logging.getLogger(__name__)


async def serve(
    desk: LocalDesk,
    address: Address,
    *,
    limits: Limits,
    grace_s: float,
    token: str | None = None,
    tls: Tls | None = None,
    ready: Callable[[Address], None],
) -> None:
    """Serve until SIGTERM or SIGINT.

    From then on new calls are refused and watches end at once; what else is open has `grace_s` seconds to end.

    Args:
        desk: audits on the stores of this machine.
        address: where to listen.
        limits: what is taken at once.
        grace_s: seconds that open calls have after the signal.
        token: what callers must show; None asks for none.
        tls: certificates; None serves plain text.
        ready: told the address, with its real port, once the server listens.

    Raises:
        BadInputError: when the address cannot be listened on or the certificates cannot be used, or other machines
            could call without a token.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with running(desk, address, limits=limits, grace_s=grace_s, token=token, tls=tls) as bound:
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
    token: str | None = None,
    tls: Tls | None = None,
) -> AsyncIterator[Address]:
    """The server, listening, for as long as the block lasts; gives the address with its real port.

    Raises:
        BadInputError: as `serve`.
    """
    if token is None and not address.loopback:
        raise BadInputError(
            f"{address} can be reached from other machines, which could begin and cancel audits: set "
            "PROCTOR_GATEWAY_TOKEN to what callers must show, or listen on 127.0.0.1"
        )
    server = grpc.aio.server(
        interceptors=[] if token is None else [TokenCheck(token)],
        options=server_options(limits.max_message_bytes),
        maximum_concurrent_rpcs=limits.max_watches + limits.max_other_calls,
    )
    with ThreadPoolExecutor(max_workers=limits.threads, thread_name_prefix="gateway-stores") as workers:
        servicer = AuditServicer(desk, workers, limits)
        states = health.aio.HealthServicer()
        audit_pb2_grpc.add_AuditServiceServicer_to_server(servicer, server)
        health_pb2_grpc.add_HealthServicer_to_server(states, server)
        reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        bound = bind(server, address, tls)
        await states.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
        await server.start()
        try:
            yield bound
        finally:
            servicer.leave()
            await states.enter_graceful_shutdown()
            await server.stop(grace_s)
