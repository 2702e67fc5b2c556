"""The gRPC server around the perturbation service: address, TLS, health, reflection, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection

from proctor.domain.errors import EncoderError
from proctor.perturbation.serving.limits import Limits
from proctor.perturbation.serving.service import SERVICE, PerturbationService
from proctor.perturbation.serving.stream_engine import StreamEngine
from proctor.runtime.grpc.calls import MAX_REFLECTIONS, Rationed
from proctor.runtime.grpc.health import PROBES, HealthCalls
from proctor.runtime.grpc.serving import Address, Tls, bind, hold_to_callers, server_options
from proctor.runtime.grpc.tokens import TokenCheck, Tokens

log = logging.getLogger(__name__)

#: Where the one token is taken from; with an S behind, those of callers by their names.
TOKEN_VARIABLE: Final = "PROCTOR_PERTURBATION_TOKEN"  # noqa: S105, the name of a variable
#: How soon a mended encoder shows in the health service; a stream tries it at once.
_RETRY_ENCODER_S: Final = 30.0


async def serve(
    engine: StreamEngine,
    address: Address,
    *,
    limits: Limits,
    grace_s: float,
    tokens: Tokens | None = None,
    tls: Tls | None = None,
    ready: Callable[[Address], None],
) -> None:
    """Serve until SIGTERM or SIGINT.

    From then on new streams are refused; those that are open have `grace_s` seconds to end before they are cancelled.
    The batch that is worked on at that moment is finished.

    Args:
        engine: what batches are put through.
        address: where to listen.
        limits: what is taken at once.
        grace_s: seconds that open streams have after the signal.
        tokens: what callers must show; None asks for none.
        tls: certificates; None serves plain text.
        ready: told the address, with its real port, once the server listens.

    Raises:
        BadInputError: when the address cannot be listened on or the certificates cannot be used, or other machines
            could call without a token or a certificate.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with running(engine, address, limits=limits, grace_s=grace_s, tokens=tokens, tls=tls) as bound:
        ready(bound)
        await stop.wait()
        log.info("stopping: open streams have %g s", grace_s)


@contextlib.asynccontextmanager
async def running(
    engine: StreamEngine,
    address: Address,
    *,
    limits: Limits,
    grace_s: float = 0.0,
    tokens: Tokens | None = None,
    tls: Tls | None = None,
) -> AsyncIterator[Address]:
    """The server, listening, for as long as the block lasts; gives the address with its real port.

    Raises:
        BadInputError: as `serve`.
    """
    hold_to_callers(address, tls, has_tokens=tokens is not None, variable=TOKEN_VARIABLE, what="have it work for them")
    checks = [] if tokens is None else [TokenCheck(tokens, TOKEN_VARIABLE)]
    # With room for streams that are told that there are too many.
    calls = 2 * limits.max_streams + MAX_REFLECTIONS + PROBES
    server = grpc.aio.server(
        interceptors=[*checks, Rationed(reflection.SERVICE_NAME, MAX_REFLECTIONS)],
        # Replies carry up to a hundred variants of an item.
        options=server_options(limits.max_message_bytes, calls),
        maximum_concurrent_rpcs=calls,
    )
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="perturbation-engine") as worker:
        service = PerturbationService(engine, worker, limits, tokens)
        states = health.aio.HealthServicer()
        server.add_generic_rpc_handlers((service.handler(), HealthCalls(states).handler()))
        reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        await states.set(SERVICE, health_pb2.HealthCheckResponse.NOT_SERVING)
        bound = bind(server, address, tls)
        await server.start()
        encoder = asyncio.create_task(_announce_encoder(service, engine, states))
        try:
            yield bound
        finally:
            encoder.cancel()
            await states.enter_graceful_shutdown()
            await server.stop(grace_s)
            await asyncio.gather(encoder, return_exceptions=True)


async def _announce_encoder(service: PerturbationService, engine: StreamEngine, states: Any) -> None:
    """Load the encoder, and report the service as serving once it embeds."""
    said = ""
    while True:
        try:
            encoder = await service.run(engine.encoder)
        except EncoderError as error:
            if str(error) != said:
                said = str(error)
                log.warning("not serving yet: %s", said)
            await asyncio.sleep(_RETRY_ENCODER_S)
        else:
            log.info("the encoder %s is loaded", encoder.name)
            await states.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
            return
