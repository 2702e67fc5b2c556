"""The gRPC server around the perturbation service: address, TLS, health, reflection, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from proctor.domain.errors import BadInputError, EncoderError
from proctor.perturbation.serving.limits import Limits
from proctor.perturbation.serving.service import SERVICE, PerturbationService
from proctor.perturbation.serving.stream_engine import StreamEngine

log = logging.getLogger(__name__)

#: How soon a mended encoder shows in the health service; a stream tries it at once.
_RETRY_ENCODER_S: Final = 30.0
#: A caller that vanished without a word is noticed after these two together, and gives back its place.
_KEEPALIVE_MS: Final = 60_000
_KEEPALIVE_TIMEOUT_MS: Final = 20_000


class Tls(NamedTuple):
    """PEM files of the server's certificate and key, and of the authority whose clients alone are let in."""

    certificate: Path
    key: Path
    client_authority: Path | None = None


class Address(NamedTuple):
    """Where the server listens; port 0 is any free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `host:port`; an IPv6 host stands in brackets.

        Raises:
            BadInputError: when it is of another form.
        """
        host, colon, port = text.rpartition(":")
        bare = host.startswith("[") == host.endswith("]") and (":" not in host or host.startswith("["))
        if not (colon and host and bare and port.isascii() and port.isdigit() and int(port) <= 65_535):
            raise BadInputError(f"--listen is {text[:80]!r}, but must be host:port, e.g. 127.0.0.1:50051")
        return cls(host, int(port))

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


async def serve(
    engine: StreamEngine,
    address: Address,
    *,
    limits: Limits,
    grace_s: float,
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
        tls: certificates; None serves plain text.
        ready: told the address, with its real port, once the server listens.

    Raises:
        BadInputError: when the address cannot be listened on or the certificates cannot be used.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with running(engine, address, limits=limits, grace_s=grace_s, tls=tls) as bound:
        ready(bound)
        await stop.wait()
        log.info("stopping: open streams have %g s", grace_s)


@contextlib.asynccontextmanager
async def running(
    engine: StreamEngine, address: Address, *, limits: Limits, grace_s: float = 0.0, tls: Tls | None = None
) -> AsyncIterator[Address]:
    """The server, listening, for as long as the block lasts; gives the address with its real port.

    Raises:
        BadInputError: as `serve`.
    """
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", limits.max_message_bytes),
            # Replies carry up to a hundred variants of an item.
            ("grpc.max_send_message_length", -1),
            ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
            ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
            # Two servers on one port would share its callers in silence.
            ("grpc.so_reuseport", 0),
        ]
    )
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="perturbation-engine") as worker:
        service = PerturbationService(engine, worker, limits)
        states = health.aio.HealthServicer()
        server.add_generic_rpc_handlers((service.handler(),))
        health_pb2_grpc.add_HealthServicer_to_server(states, server)
        reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        await states.set(SERVICE, health_pb2.HealthCheckResponse.NOT_SERVING)
        bound = Address(address.host, _bind(server, address, tls))
        await server.start()
        encoder = asyncio.create_task(_announce_encoder(service, engine, states))
        try:
            yield bound
        finally:
            encoder.cancel()
            await states.enter_graceful_shutdown()
            await server.stop(grace_s)
            await asyncio.gather(encoder, return_exceptions=True)


def _bind(server: Any, address: Address, tls: Tls | None) -> int:
    credentials = None if tls is None else _credentials(tls)
    try:
        port: int = (
            server.add_insecure_port(str(address))
            if credentials is None
            else server.add_secure_port(str(address), credentials)
        )
    except RuntimeError:
        hint = "is the port taken, and the host this machine's?" if tls is None else "do certificate and key belong?"
        raise BadInputError(f"the server cannot listen on {address}: {hint}") from None
    return port


def _credentials(tls: Tls) -> Any:
    pem: dict[Path, bytes] = {}
    for path in (tls.certificate, tls.key, tls.client_authority):
        if path is not None:
            try:
                pem[path] = path.read_bytes()
            except OSError as error:
                raise BadInputError(f"the TLS file {path} cannot be read: {error.strerror}") from None
    authority = None if tls.client_authority is None else pem[tls.client_authority]
    return grpc.ssl_server_credentials(
        [(pem[tls.key], pem[tls.certificate])],
        root_certificates=authority,
        require_client_auth=authority is not None,
    )


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
