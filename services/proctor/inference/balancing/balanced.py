"""A backend that stands for several replicas of one model, and spreads trials over them one by one."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Sequence

from proctor.domain.canonical import digest_matches
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.domain.weights import Weights, weakest, weights_known
from proctor.inference.balancing.call import Ask, Call
from proctor.inference.balancing.member import Member
from proctor.inference.balancing.members import Members
from proctor.inference.balancing.strategies import strategy_of
from proctor.inference.worker.backend import Probe, Server, Session, TrialFailure, failed

logger = logging.getLogger(__name__)

#: How long the first look-up of the replicas may take.
_FIND_S = 10.0


class BalancedBackend:
    """An endpoint with several replicas, listed or found while it is asked.

    Trials wait in one line and are handed out when a replica has room, so a slow replica holds up nobody. A trial that
    failed in passing is asked once more on another replica. A replica that fails is left alone for a while, and so is
    one that serves another model: of the weights that answer first, all others of this endpoint must be.
    """

    def __init__(
        self, spec: EndpointSpec, open_server: Callable[[EndpointSpec], Server], *, rng: random.Random | None = None
    ) -> None:
        """
        Args:
            spec: the endpoint.
            open_server: opens the backend of one replica; connects when first asked.
            rng: draws the jitter of the breakers' waits; changes no answer.
        """
        self._spec = spec
        self._strategy = strategy_of(spec.balance)
        self._line: deque[Ask] = deque()
        #: Those that failed on one replica. A line of their own: waiting for another one, they would hold up the rest.
        self._again: deque[Ask] = deque()
        self._calls = 0
        self._digest = spec.model_version
        self._members = Members(
            spec,
            open_server,
            rng or random.Random(),  # noqa: S311 - jitter, not a secret
            changed=self._hand_out,
        )

    async def probe(self) -> Probe:
        """Ask every replica what it serves. One that serves the pinned model is enough; others are left alone."""
        await self._members.found(_FIND_S)
        if not self._calls:
            # Nothing is under way that other weights could be mixed into, and a new audit begins with a probe.
            self._digest = self._spec.model_version
        members = self._members.in_use
        if not members:
            return Probe(False, detail=self._nobody())
        probes = await asyncio.gather(*(member.server.probe() for member in members))
        now = time.monotonic()
        accepted: Probe | None = None
        kinds = list[Weights]()
        for member, probe in zip(members, probes, strict=True):
            if probe.ok and probe.model_digest is not None and not self._accepts(probe.model_digest):
                self._refuse(member, self._other_weights(member, probe.model_digest), now)
            elif probe.ok:
                kinds.append(weights_known(probe.weights, reported=probe.model_digest is not None))
                accepted = accepted or probe
        if accepted is None:
            return next((probe for probe in probes if not probe.ok), Probe(False, detail=self._nobody()))
        # What is known of all of them is what is known of the one of which the least is.
        accepted = accepted._replace(weights=weakest(kinds))
        n_ok = sum(probe.ok and not member.is_refused(now) for member, probe in zip(members, probes, strict=True))
        if n_ok == len(members):
            return accepted
        why = "; ".join(probe.detail for probe in probes if not probe.ok)
        return accepted._replace(detail=f"{n_ok} of {len(members)} replicas can be asked" + (f": {why}" if why else ""))

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        """One completion a trial, in order; see `Backend.complete`."""
        deadline = time.monotonic() + deadline_s
        await self._members.found(min(_FIND_S, deadline_s))
        call = Call(trials, decoding, deadline=deadline)
        self._calls += 1
        self._line.extend(call.asks)
        too_late = asyncio.get_running_loop().call_later(
            max(deadline - time.monotonic(), 0.0), self._give_up_waiting, call
        )
        try:
            self._hand_out()
            await call.done
            return call.completions
        finally:
            too_late.cancel()
            self._calls -= 1
            self._leave_line(call)
            await call.close()

    async def close(self) -> None:
        """Give back every connection, and look for no more replicas."""
        await self._members.close()

    def _hand_out(self) -> None:
        """Hand the trials in line to replicas, as far as there is room for them."""
        for line in (self._again, self._line):
            while line and self._hand_out_first(line):
                pass

    def _hand_out_first(self, line: deque[Ask]) -> bool:
        """Hand out the first trial of a line. False where it had better wait."""
        ask, now = line[0], time.monotonic()
        able = [member for member in self._members.in_use if member is not ask.avoided and member.admits(now)]
        if not able:
            line.popleft()
            self._give_up(ask, now)
            return True
        loads = [member.load(ask.size, now) for member in able]
        chosen = self._strategy.choose(loads, len(self._again) + len(self._line))
        if chosen is None:
            return False
        line.popleft()
        self._send(ask, able[chosen], now)
        return True

    def _send(self, ask: Ask, member: Member, now: float) -> None:
        member.pace.sent(member.window.held, now)
        member.window.try_acquire(ask.size)
        probing = member.breaker.sent()
        task = asyncio.get_running_loop().create_task(self._ask(ask, member, probing=probing))
        ask.call.tasks.add(task)

        # Not in a `finally` of the task: one that is cancelled before its first step never gets there.
        def ended(task: asyncio.Task[None]) -> None:
            ask.call.tasks.discard(task)
            member.window.release(ask.size)
            if task.cancelled():
                member.breaker.abandoned(probe=probing)
            elif (error := task.exception()) is not None:
                logger.error("asking %s failed", member.replica.url, exc_info=error)
                member.breaker.abandoned(probe=probing)
                fault = TrialFailure(f"the inference worker failed: {type(error).__name__}: {error}", retryable=True)
                ask.call.settle(ask, failed(ask.trial, member.spec, fault))
            self._members.release(member)
            self._hand_out()

        task.add_done_callback(ended)

    async def _ask(self, ask: Ask, member: Member, *, probing: bool) -> None:
        """Ask a replica one trial, and draw the conclusions."""
        session: Session | None = None
        started = time.monotonic()
        try:
            session = await ask.call.session(member)
            completion = await session.ask(ask.trial, deadline=ask.call.deadline)
        except EndpointError as error:
            member.breaker.succeeded(probe=probing)
            ask.call.retire(member, session)
            self._refuse(member, str(error), time.monotonic())
            self._line.appendleft(ask)
            return
        except TrialFailure as failure:
            now = time.monotonic()
            self._judge(member, failure, now, probing=probing)
            if failure.unavailable:
                ask.call.retire(member, session)
            completion = failed(ask.trial, member.spec, failure, latency_s=now - started)
            if failure.retryable and ask.failure is None and now < ask.call.deadline:
                self._again.append(ask._replace(avoided=member, failure=completion))
                return
        else:
            now = time.monotonic()
            member.breaker.succeeded(probe=probing)
            member.pace.answered(member.window.held, now)
            if completion.model_digest is not None and not self._accepts(completion.model_digest):
                self._refuse(member, self._other_weights(member, completion.model_digest), now)
                self._line.appendleft(ask)
                return
        ask.call.settle(ask, completion)

    def _judge(self, member: Member, failure: TrialFailure, now: float, *, probing: bool) -> None:
        """What a failed trial says of the replica."""
        if failure.unavailable or (probing and failure.retryable):
            if member.breaker.failed(str(failure), now, probe=probing) and not probing:
                logger.warning("replica %s is left alone for a while: %s", member.replica.url, failure)
        elif not failure.retryable:
            # That it refuses a prompt is an answer. A deadline says as little of the server as of the prompt.
            member.breaker.succeeded(probe=probing)

    def _accepts(self, digest: str) -> bool:
        """Whether these weights are the endpoint's; the first ones that fit what is pinned are, from then on."""
        known = self._digest
        if known is not None and not digest_matches(known, digest) and not digest_matches(digest, known):
            return False
        if known is None or len(digest) > len(known):
            self._digest = digest
        return True

    def _other_weights(self, member: Member, digest: str) -> str:
        return (
            f"{member.replica.url} serves {self._spec.served_name!r} with weights {digest}, others of this endpoint "
            f"{self._digest}; all replicas of an endpoint must serve the same"
        )

    def _refuse(self, member: Member, why: str, now: float) -> None:
        if not member.is_refused(now):
            logger.warning("replica %s is not asked for a while: %s", member.replica.url, why)
        member.refuse(why, now)

    def _give_up(self, ask: Ask, now: float) -> None:
        """Nobody is there to be asked: what came of it before stands, if anything did."""
        members = self._members.in_use
        if members and all(member.is_refused(now) for member in members):
            ask.call.fail(EndpointError("; ".join(member.refusal for member in members)[:1000]))
        elif ask.failure is not None:
            ask.call.settle(ask, ask.failure)
        else:
            why = "; ".join(member.why_not(now) for member in members) or self._nobody()
            failure = TrialFailure(f"no replica can be asked: {why}", retryable=True, unavailable=True)
            ask.call.settle(ask, failed(ask.trial, self._spec, failure))

    def _give_up_waiting(self, call: Call) -> None:
        """The deadline has come for what still waits in line; what was sent has the same deadline there."""
        late = TrialFailure(f"no answer from {self._spec.url} before the deadline", retryable=True)
        for ask in [ask for ask in (*self._again, *self._line) if ask.call is call]:
            call.settle(ask, ask.failure or failed(ask.trial, self._spec, late))
        self._leave_line(call)

    def _leave_line(self, call: Call) -> None:
        for line in (self._again, self._line):
            if any(ask.call is call for ask in line):
                kept = [ask for ask in line if ask.call is not call]
                line.clear()
                line.extend(kept)

    def _nobody(self) -> str:
        return f"no replica of {self._spec.url} is known{self._members.why_none}"
