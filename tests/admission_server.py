"""The gateway's admission webhook over a record store, for tests that call it, or have an API server call it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from proctor.gateway.admission.certificates.source import CertificateSource
from proctor.gateway.admission.desk import Terms
from proctor.gateway.admission.server import AdmissionOptions, serving_admission
from proctor.gateway.front import Front
from proctor.runtime.grpc.serving import Address
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from tests.support import wait_until


@contextmanager
def webhook_server(
    settings: Settings,
    records: Records,
    port: int,
    source: CertificateSource,
    terms: Terms | None = None,
    client_authority: Path | None = None,
) -> Iterator[None]:
    """The gateway's webhook over a record store, in a thread."""
    desk = SimpleNamespace(settings=settings, records=records)
    front = cast(Front, SimpleNamespace(desk=desk))
    options = AdmissionOptions(Address("127.0.0.1", port), source, terms or Terms(), client_authority)
    listens, stop = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with serving_admission(front, options, lambda bound: listens.set()):
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        wait_until(lambda: listens.is_set() or not thread.is_alive(), what="the webhook")
        assert listens.is_set()
        yield
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join()
