"""One shard's trials on their way to several replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from proctor.domain.errors import EndpointError
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.balancing.member import Member
from proctor.inference.worker.backend import Session, TrialFailure
from proctor.inference.worker.retry import repeats_for


class Ask(NamedTuple):
    """A trial that waits for a replica. `failure` is what came of asking another one, `avoided`."""

    call: Call
    place: int
    size: int
    avoided: Member | None = None
    failure: Completion | None = None

    @property
    def trial(self) -> Trial:
        """What is asked."""
        return self.call.trials[self.place]


class Call:
    """A shard that is being asked: its completions so far, and a session on each replica that it needed."""

    def __init__(self, trials: Sequence[Trial], decoding: Decoding, *, deadline: float) -> None:
        self.trials = trials
        self.deadline = deadline
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.tasks: set[asyncio.Task[None]] = set()
        self._decoding = decoding
        self._completions: list[Completion | None] = [None] * len(trials)
        self._left = len(trials)
        self._sessions: dict[Member, asyncio.Task[Session]] = {}
        self._retired: list[asyncio.Task[Session]] = []
        if not trials:
            self.done.set_result(None)

    @property
    def asks(self) -> list[Ask]:
        """Every trial, not yet asked."""
        return [Ask(self, place, len(trial.prompt)) for place, trial in enumerate(self.trials)]

    @property
    def completions(self) -> list[Completion]:
        """One a trial, once all are there."""
        return [completion for completion in self._completions if completion is not None]

    def settle(self, ask: Ask, completion: Completion) -> None:
        """A trial has its completion."""
        if self._completions[ask.place] is None:
            self._completions[ask.place] = completion
            self._left -= 1
            if not self._left and not self.done.done():
                self.done.set_result(None)

    def fail(self, error: EndpointError) -> None:
        """Nobody can answer."""
        if not self.done.done():
            self.done.set_exception(error)

    async def session(self, member: Member) -> Session:
        """The session on a replica; the first trial opens it for all.

        Raises:
            TrialFailure: it cannot be asked now; the next trial tries again.
            EndpointError: it serves another model.
        """
        opening = self._sessions.get(member)
        if opening is None:
            left_s = max(self.deadline - asyncio.get_running_loop().time(), 0.0)
            opening = self._sessions[member] = asyncio.create_task(
                member.server.session(
                    self._decoding, repeats=repeats_for(len(self.trials)), deadline_s=left_s, instead=True
                )
            )
        try:
            # Shielded: others wait for it too.
            return await asyncio.shield(opening)
        except TrialFailure as failure:
            raise failure.again() from None
        except EndpointError as error:
            raise EndpointError(str(error)) from None

    def retire(self, member: Member, session: Session | None) -> None:
        """Open another session on a replica next time, instead of this one or of the one that could not be opened.

        It is closed at the end: others may still wait on it.
        """
        opening = self._sessions.get(member)
        if opening is None or not opening.done() or opening.cancelled():
            return
        # Not one that was opened since.
        if session is None if opening.exception() is not None else opening.result() is session:
            self._retired.append(self._sessions.pop(member))

    async def close(self) -> None:
        """Cancel what still runs, and end the sessions."""
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        openings = [*self._sessions.values(), *self._retired]
        self._sessions, self._retired = {}, []
        for opening in openings:
            if not opening.done():
                opening.cancel()
            with suppress(TrialFailure, EndpointError, asyncio.CancelledError):
                await (await opening).close()
