"""The gateway's HTTP in the process of the test, over real stores; the router's messages are kept."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from queue import Queue
from typing import Any

import httpx
from pydantic import SecretStr

from proctor.domain.registered_version import RegistryKind
from proctor.domain.triggers import Triggers
from proctor.gateway.audits import LocalDesk
from proctor.gateway.front import Front
from proctor.gateway.http.server import HttpOptions, serving_http
from proctor.gateway.limits import Limits
from proctor.gateway.oidc.bearer import Bearers
from proctor.gateway.server import running
from proctor.gateway.triggers.secrets import WebhookSecrets
from proctor.runtime.grpc.serving import Address
from proctor.runtime.grpc.tokens import server_tokens
from tests.registry_webhooks import HUB_SECRET, SECOND, SECRET

SECRETS = WebhookSecrets(
    {
        RegistryKind.MLFLOW: (SecretStr(SECRET), SecretStr(SECOND)),
        RegistryKind.HUGGINGFACE: (SecretStr(HUB_SECRET),),
    }
)


@contextmanager
def serving_both(
    desk: LocalDesk,
    *,
    triggers: Triggers | None = None,
    tokens: Mapping[str, Any] | None = None,
    bearers: Bearers | None = None,
    limits: Limits | None = None,
    reconcile_every_s: float = 3_600.0,
) -> Iterator[tuple[str, str]]:
    """Both servers on free ports, in a thread of their own; yields gRPC's `host:port` and HTTP's URL."""
    known = server_tokens(None, json.dumps(tokens or {}), variable="PROCTOR_GATEWAY_TOKEN", source="the test")
    began: Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event, str, str] | BaseException] = Queue()
    urls: list[str] = []

    def beside(front: Front) -> Any:
        options = HttpOptions(
            Address("127.0.0.1", 0), triggers=triggers, secrets=SECRETS, reconcile_every_s=reconcile_every_s
        )
        return serving_http(front, options, lambda bound: urls.append(f"http://{bound}"))

    async def serve() -> None:
        stop = asyncio.Event()
        address = Address("127.0.0.1", 0)
        async with running(
            desk, address, limits=limits or Limits(), tokens=known, bearers=bearers, beside=beside
        ) as bound:
            began.put((asyncio.get_running_loop(), stop, str(bound), urls[0]))
            await stop.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            began.put(error)

    thread = threading.Thread(target=run)
    thread.start()
    first = began.get(timeout=20)
    if isinstance(first, BaseException):
        raise first
    loop, stop, address, url = first
    try:
        yield address, url
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)


@contextmanager
def client(url: str, token: str | None = None) -> Iterator[httpx.Client]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=20) as found:
        yield found
