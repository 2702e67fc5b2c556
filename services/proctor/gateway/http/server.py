"""The HTTP server beside the gRPC server: where it listens, under which certificate, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Any, Final, NamedTuple

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from proctor.domain.errors import BadInputError
from proctor.domain.host import unbracketed
from proctor.domain.triggers import Triggers
from proctor.gateway.front import Front
from proctor.gateway.http.app import Webhooks, application
from proctor.gateway.http.sessions import Sessions
from proctor.gateway.triggers.beside import starting
from proctor.gateway.triggers.secrets import WebhookSecrets
from proctor.gateway.triggers.traffic import Traffic
from proctor.registry.webhooks.receiver import Receiver
from proctor.runtime.grpc.serving import Address, Tls, checked_pem
from proctor.runtime.kubernetes.leader import Leads, everybody_leads
from proctor.runtime.redis.replays import Replays
from proctor.runtime.redis.sessions import SessionStore

#: Of a request line and its headers.
MAX_HEAD_BYTES: Final = 16 << 10
#: Until the headers of a request have come, from the connection's beginning or the request's first byte.
MAX_HEAD_S: Final = 10.0
#: A connection without a request.
_IDLE_S: Final = 15
#: Connections at once; further ones are answered with 503 and closed.
MAX_CONNECTIONS: Final = 512
#: Threads in which deliveries are put on record: what waits at one time is written at once.
_WEBHOOK_THREADS: Final = 16


class HttpOptions(NamedTuple):
    """How HTTP is served."""

    address: Address
    tls: Tls | None = None
    grace_s: float = 0.0
    triggers: Triggers | None = None
    """What registries' webhooks may start; None serves no webhooks."""
    secrets: WebhookSecrets = WebhookSecrets()
    reconcile_every_s: float = 60.0
    leads: Leads = everybody_leads
    """Whether this gateway is the one that reads the registry."""


class _Impatient(H11Protocol):
    """Closes a connection whose headers do not come: uvicorn waits for them for ever."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(MAX_HEAD_S, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of the headers, from their first byte on."""
        if self._head_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._head_timer = self.loop.call_later(MAX_HEAD_S, self._give_up)
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._waited()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._waited()
        super().connection_lost(exc)

    def _waited(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self.transport.abort()


class _Server(uvicorn.Server):
    """A server among others of its process, whose signals are not its own."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None are captured: who serves beside it says when it ends."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and tell who waits for that."""
        await super().startup(sockets)
        self.listens.set()


@asynccontextmanager
async def serving_http(
    front: Front, options: HttpOptions, ready: Callable[[Address], None] = lambda bound: None
) -> AsyncIterator[Address]:
    """Serve for as long as the block lasts; gives the address with its real port, and tells it to `ready`.

    Raises:
        BadInputError: when the address cannot be listened on or the certificates cannot be used.
    """
    if options.triggers is None:
        async with _listening(front, None, options) as bound:
            ready(bound)
            yield bound
        return
    desk, triggers, traffic = front.desk, options.triggers, Traffic()
    every_s = options.reconcile_every_s
    with (
        closing(Replays(desk.settings.ledger_url)) as replays,
        ThreadPoolExecutor(_WEBHOOK_THREADS, thread_name_prefix="gateway-webhooks") as workers,
    ):
        async with starting(
            desk, triggers, reconcile_every_s=every_s, give_way=traffic.give_way, leads=options.leads
        ) as wake:
            receiver = Receiver(triggers, options.secrets.by_registry, replays, desk.records.requests, wake=wake)
            async with _listening(front, Webhooks(receiver, workers, traffic), options) as bound:
                ready(bound)
                yield bound


@asynccontextmanager
async def _listening(front: Front, webhooks: Webhooks | None, options: HttpOptions) -> AsyncIterator[Address]:
    with closing(SessionStore(front.desk.settings.ledger_url)) as store:
        public = front.desk.settings.dashboard_url or ""
        # Where people come by another's TLS, the cookie is to go by nothing else, too.
        sessions = Sessions(front, store, secure=options.tls is not None or public.startswith("https://"))
        app = application(front, webhooks, sessions)
        async with served(app, options.address, options.grace_s, _certificates(options.tls)) as bound:
            yield bound


@asynccontextmanager
async def served(
    app: ASGIApp, address: Address, grace_s: float, certificates: dict[str, Any], context: ssl.SSLContext | None = None
) -> AsyncIterator[Address]:
    """An application, listening, for as long as the block lasts; gives the address with its real port.

    Args:
        app: what is served.
        address: where to listen.
        grace_s: seconds that open requests have at the end.
        certificates: uvicorn's options of them.
        context: takes the place of what they come to, for certificates that change while they are served.

    Raises:
        BadInputError: the address cannot be listened on.
    """
    listener = _bound(address)
    config = uvicorn.Config(
        app,
        http=_Impatient,
        ws="none",
        lifespan="off",
        # Its lines have the query in them; what goes wrong is said by the application.
        access_log=False,
        log_config=None,
        server_header=False,
        # Nobody stands in front who is believed about whose call it is.
        proxy_headers=False,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=max(1, round(grace_s)),
        **certificates,
    )
    if context is not None:
        config.load()
        config.ssl = context
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    listens = asyncio.create_task(server.listens.wait())
    try:
        await asyncio.wait([task, listens], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            # Says why it did not begin.
            task.result()
            raise BadInputError(f"the HTTP server cannot listen on {address}")
        yield address._replace(port=listener.getsockname()[1])
    finally:
        listens.cancel()
        server.should_exit = True
        await task


def _bound(address: Address) -> socket.socket:
    host = unbracketed(address.host)
    try:
        found = socket.getaddrinfo(host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, where = found[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise BadInputError(f"the server cannot listen on {address}: {error.strerror or error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
    except OSError as error:
        listener.close()
        raise BadInputError(f"the server cannot listen on {address}: {error.strerror or error}") from None
    return listener


def _certificates(tls: Tls | None) -> dict[str, Any]:
    if tls is None:
        return {}
    checked_pem(tls.certificate, tls.key, tls.client_authority)
    files: dict[str, Any] = {"ssl_certfile": str(tls.certificate), "ssl_keyfile": str(tls.key)}
    if tls.client_authority is not None:
        files |= {"ssl_ca_certs": str(tls.client_authority), "ssl_cert_reqs": ssl.CERT_REQUIRED}
    return files


logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
# A line for every page of the registry that is read would bury the gateway's own.
logging.getLogger("httpx").setLevel(logging.WARNING)
