"""The replicas of an endpoint that are in use: taken up when they are found, let go when what they do is done."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from proctor.domain.endpoint import Balance, EndpointSpec
from proctor.domain.errors import ProctorError
from proctor.inference.balancing.discovery.choosing import discovery_of
from proctor.inference.balancing.discovery.found import Discovery, Found
from proctor.inference.balancing.member import Member
from proctor.inference.balancing.queue_watch import QueueWatch
from proctor.inference.worker.backend import Server

logger = logging.getLogger(__name__)

#: As many as an operator can list. Each has connections, a window and a breaker; who answers for a name could else name
#: as many as fit into his answer.
MAX_MEMBERS: Final = 256


class Members:
    """Keeps the servers of the replicas that are there now, in their order."""

    def __init__(
        self,
        spec: EndpointSpec,
        open_server: Callable[[EndpointSpec], Server],
        rng: random.Random,
        *,
        changed: Callable[[], None],
        discovery: Discovery | None = None,
    ) -> None:
        """
        Args:
            spec: the endpoint.
            open_server: opens the backend of one replica.
            rng: draws the jitter of the breakers' waits.
            changed: called when replicas came or went.
            discovery: how replicas are found; by the endpoint's own way where None.
        """
        self._spec = spec
        self._open_server = open_server
        self._rng = rng
        self._changed = changed
        self._discovery = discovery or discovery_of(spec)
        self._members: dict[str, Member] = {}
        self._leaving: list[Member] = []
        self._known = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing: set[asyncio.Task[None]] = set()
        self.in_use: tuple[Member, ...] = ()
        self.why_none = ""
        self._error: ProctorError | None = None

    async def found(self, within_s: float) -> None:
        """Wait until the replicas are known, the first time; then they are.

        Raises:
            BadInputError: one of them has no URL of its kind.
            EndpointError: they cannot be looked for here.
        """
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._discover())]
            if self._spec.balance is Balance.LEAST_LOADED:
                watch = QueueWatch(self._spec.served_name, lambda: self.in_use)
                self._tasks.append(asyncio.create_task(watch.run()))
        if not self._known.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._known.wait()
        if self._error is not None and not self.in_use:
            raise type(self._error)(str(self._error))

    def use(self, found: Sequence[Found]) -> None:
        """These are the replicas now: take up the new ones, and let go of the others. Past MAX_MEMBERS none is used."""
        if len(found) > MAX_MEMBERS:
            logger.warning(
                "%s has %d replicas; the first %d of them are asked", self._spec.url, len(found), MAX_MEMBERS
            )
        wanted = {one.key: one for one in found[:MAX_MEMBERS]}
        for key in [key for key in self._members if key not in wanted]:
            member = self._members.pop(key)
            member.leaving = True
            self._leaving.append(member)
            logger.info("replica %s of %s is gone", member.replica.url, self._spec.url)
            self.release(member)
        for key, one in wanted.items():
            if key in self._members:
                continue
            spec = one.spec_of(self._spec)
            self._members[key] = Member(one.replica, spec, self._open_server(spec), self._rng)
            if self._known.is_set():
                logger.info("replica %s of %s is taken up", one.replica.url, self._spec.url)
        self.in_use = tuple(self._members[key] for key in wanted)
        self._known.set()
        self._changed()

    def release(self, member: Member) -> None:
        """A request ended: of a replica that is gone, the last one gives back its connection."""
        if member.leaving and member.is_idle and member in self._leaving:
            self._leaving.remove(member)
            closing = asyncio.create_task(member.server.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Give back every connection, and look for no more replicas."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._closing, return_exceptions=True)
        members = [*self._members.values(), *self._leaving]
        self._tasks, self._members, self._leaving, self.in_use = [], {}, [], ()
        self._known.clear()
        for member in members:
            await member.server.close()

    async def _discover(self) -> None:
        try:
            await self._discovery.watch(self.use, self._missed)
        except asyncio.CancelledError:
            raise
        except ProctorError as error:
            # What was found stays in use; who waits for a first finding is told.
            self._error = error
            self._missed(str(error))
            self._known.set()

    def _missed(self, why: str) -> None:
        """A look-up failed: what was known stays in use."""
        self.why_none = f": {why}"
        logger.warning("replicas of %s could not be looked up: %s", self._spec.url, why)
