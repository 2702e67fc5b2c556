"""The gateway's own work: audits are started as they are asked for, and registries read now and then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing, suppress
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from proctor.domain.errors import ProctorError
from proctor.domain.registered_version import RegistryKind
from proctor.domain.triggers import Triggers
from proctor.gateway.audits import LocalDesk
from proctor.gateway.triggers.starter import Starter
from proctor.registry.hub_versions import HubVersions
from proctor.registry.reconciler import reconcile
from proctor.registry.version_source import MlflowVersions, VersionSource
from proctor.runtime.kubernetes.leader import Leads, everybody_leads

logger = logging.getLogger(__name__)

#: Between two looks for requests that another gateway took in, or that were set back.
_LOOK_EVERY_S: Final = 5.0
#: Between two looks whether it is this gateway that leads.
_FOLLOWS_S: Final = 1.0


@asynccontextmanager
async def starting(
    desk: LocalDesk,
    triggers: Triggers,
    *,
    reconcile_every_s: float,
    give_way: Callable[[], None] = lambda: None,
    leads: Leads = everybody_leads,
) -> AsyncIterator[Callable[[], None]]:
    """Start audits while the block lasts; gives what wakes whoever starts them, from any thread.

    Args:
        desk: where audits begin.
        triggers: what is audited.
        reconcile_every_s: between two rounds of reading the registry; the first is at once.
        give_way: waits for what is more urgent than an audit.
        leads: whether this gateway is the one that reads the registry. Audits are started by all of them.

    Raises:
        RegistryError: when the registry's URI is none that versions can be read from.
    """
    loop, woken = asyncio.get_running_loop(), asyncio.Event()
    uri = desk.settings.registry_uri
    with ExitStack() as stack:
        mlflow = stack.enter_context(closing(MlflowVersions(uri))) if uri is not None and _is_mlflow(uri) else None
        hub = stack.enter_context(closing(HubVersions(desk.settings.hub)))
        sources: dict[RegistryKind, VersionSource] = {RegistryKind.HUGGINGFACE: hub}
        if mlflow is not None:
            sources[RegistryKind.MLFLOW] = mlflow
        starter, requests = Starter(triggers, desk, sources, give_way), desk.records.requests
        # A thread each: a registry that is slow to answer keeps no audit from starting.
        threads = stack.enter_context(ThreadPoolExecutor(2, thread_name_prefix="gateway-triggers"))

        async def in_thread(what: str, work: Callable[[], bool]) -> bool:
            try:
                return await loop.run_in_executor(threads, work)
            except (ProctorError, SQLAlchemyError) as error:
                logger.warning("%s: %s", what, error if isinstance(error, ProctorError) else type(error).__name__)
            except Exception:
                # What one request or one page has in it must not end the work on all others.
                logger.exception("%s failed", what)
            return False

        def first() -> bool:
            starter.reopen()
            return True

        async def start() -> None:
            await in_thread("refused requests cannot be looked at again now", first)
            while True:
                woken.clear()
                if not await in_thread("audits cannot be started now", starter.round):
                    await _until(woken, _LOOK_EVERY_S)

        async def read(source: MlflowVersions) -> None:
            def once() -> bool:
                found = reconcile(source, triggers, requests)
                if found.asked:
                    logger.info("%d audits are asked for of which no webhook told", found.asked)
                    wake()
                return not found.ended

            while True:
                if not leads():
                    await asyncio.sleep(min(_FOLLOWS_S, reconcile_every_s))
                    continue
                await in_thread("the registry cannot be read now", once)
                await asyncio.sleep(reconcile_every_s)

        def wake() -> None:
            # A delivery may be on record just when the server ends: another gateway starts it, or this one's next.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(woken.set)

        tasks = [asyncio.create_task(start())]
        if mlflow is not None:
            tasks.append(asyncio.create_task(read(mlflow)))
        try:
            yield wake
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _until(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


def _is_mlflow(uri: str) -> bool:
    return uri.partition(":")[0].lower() in ("http", "https")
