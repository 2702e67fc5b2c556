"""A day of audits played against a pool's pods under a policy: events in order, nothing drawn but from the seed.

All slots that have a pack get the same share of the servers, at most what one can use. So it is enough to keep what a
slot was given since the begin (`_given`): a pack ends when that has grown by its tokens, however the share changed.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from autoscaling.asked import Asked, Pack
from autoscaling.hpa import SYNC_S, Hpa
from autoscaling.keda import Keda
from autoscaling.pods import Pod, Tier
from autoscaling.rules import Rules, Signal
from autoscaling.traces import AskedAudit

#: How much is left of a pack whose time has come, by rounding.
_NOTHING: Final = 1e-6


class Policy(StrEnum):
    """Who decides how many pods there are."""

    FIXED = "fixed size"
    WORK = "KEDA, ledger work"
    LIST = "KEDA, list length"
    WHOLE_LIST = "KEDA, list length, all published at once"


#: In the order in which they are shown.
DAY_POLICIES: Final = tuple(Policy)


@dataclass(frozen=True)
class Fleet:
    """What one pool is made of. Defaults are assumptions that docs/scaling.md names."""

    slots: int = 4
    """Of a worker pod: `concurrency`."""
    requests_a_slot: int = 32
    """In flight for a pack: a shard's lanes."""
    stream_tokens_s: float = 40.0
    """Tokens a second of one request on an idle server."""
    gpu_tokens_s: float = 2_500.0
    """Tokens a second of a GPU pod with as much to do as it likes."""
    gpu_requests: int = 256
    """Requests that a GPU pod serves at once; further ones wait in its queue."""
    gpus_a_pod: int = 1
    engine_queues: bool = True
    """Whether requests wait in the backend's engine, as vLLM's do: Triton's queue is empty then."""
    worker_start_s: float = 12.0
    gpu_start_s: float = 150.0
    grace_s: float = 45.0
    """PROCTOR_GRACE_S: what is not done then is handed back."""

    @property
    def slot_tokens_s(self) -> float:
        """Tokens a second that a slot gets when it is alone."""
        return self.requests_a_slot * self.stream_tokens_s


@dataclass(frozen=True)
class Sizing:
    """The rules of both tiers; without any, the tier has a fixed size."""

    workers: Rules
    gpus: Rules | int

    @property
    def most_gpus(self) -> int:
        """GPU pods at most."""
        return self.gpus if isinstance(self.gpus, int) else self.gpus.maximum


class Sample(NamedTuple):
    """What there was at a time."""

    at_s: float
    workers: int
    ready: int
    gpus: int
    work: int
    oldest_s: float


class Ended(NamedTuple):
    """An audit from submission to its last answer."""

    audit: str
    trials: int
    took_s: float


@dataclass
class Outcome:
    """What came of a day."""

    policy: Policy
    samples: list[Sample] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    waits: list[tuple[float, int]] = field(default_factory=list)
    """Seconds from a stage's begin until a slot took a pack of it, and the pack's shards."""
    handed_back: int = 0
    redone_tokens: float = 0.0
    tokens: float = 0.0
    worker_s: float = 0.0
    gpu_s: float = 0.0
    unfinished: int = 0


def under(sizing: Sizing, policy: Policy, fleet: Fleet) -> Sizing:
    """The rules that hold under a policy.

    A list's target is a message a slot, which is what a list that is as long as there are slots keeps busy.
    """
    if policy is Policy.FIXED or policy is Policy.WORK:
        return sizing
    per_pod = float(fleet.slots) if policy is Policy.LIST else None
    workers = _by_list(sizing.workers, per_pod)
    return Sizing(workers, sizing.gpus if isinstance(sizing.gpus, int) else _by_list(sizing.gpus, None))


def _by_list(rules: Rules, per_pod: float | None) -> Rules:
    triggers = [
        replace(one, signal=Signal.LIST_LENGTH, target=per_pod or one.target) if one.signal is Signal.WORK else one
        for one in rules.triggers
    ]
    return replace(rules, triggers=tuple(triggers))


class Day:
    """One run."""

    def __init__(
        self,
        fleet: Fleet,
        sizing: Sizing,
        policy: Policy,
        *,
        seed: int,
        every_s: float = 60.0,
        fixed: int | None = None,
    ) -> None:
        self.fleet, self.policy, self.every_s = fleet, policy, every_s
        self.asked = Asked()
        self.outcome = Outcome(policy)
        self._sizing = under(sizing, policy, fleet)
        self._rng = np.random.default_rng(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._now_s = 0.0
        self._given = 0.0
        self._running: list[tuple[float, int, float, Pod, Pack]] = []
        """When it ends in tokens given, a number, since when, where, what."""
        self._dropped = set[int]()
        self._busy = 0
        self._request_tokens = 0.0
        """Of a request of each busy slot, added up."""
        self._free: list[Pod] = []
        self._left = 0
        self._started: dict[str, float] = {}
        self.workers, self.gpus = Tier(fleet.worker_start_s), Tier(fleet.gpu_start_s)
        self._begin(fixed)

    def _begin(self, fixed: int | None) -> None:
        sizing = self._sizing
        whole = self.policy is Policy.FIXED
        for tier, rules in ((self.workers, sizing.workers), (self.gpus, sizing.gpus)):
            if isinstance(rules, int):
                self._stand(tier, rules)
            elif whole:
                self._stand(tier, min(rules.maximum, fixed or rules.maximum))
            else:
                self._stand(tier, rules.minimum)
                keda = Keda(rules)
                self._at(self._rng.uniform(0, rules.polling_s), partial(self._poll, tier, keda))
                self._at(self._rng.uniform(0, SYNC_S), partial(self._sync, tier, keda, Hpa(rules)))
        self._at(0.0, self._sample)

    def _stand(self, tier: Tier, replicas: int) -> None:
        for pod in tier.grow(0.0, replicas):
            self._is_ready(tier, pod)

    def play(self, trace: Sequence[AskedAudit], *, until_s: float) -> Outcome:
        """The trace from 0 to a time at which all is over, or what is not is counted as unfinished."""
        for audit in trace:
            self._at(audit.at_s, partial(self._arrives, audit))
        self._left = len(trace)
        while self._events:
            at_s = self._events[0][0]
            done_s = self._next_done_s()
            if min(at_s, done_s) > until_s:
                break
            if done_s <= at_s:
                self._pass(done_s)
                self._finish_due()
            else:
                self._pass(at_s)
                heapq.heappop(self._events)[2]()
            self._dispatch()
        self._pass(until_s)
        for tier in (self.workers, self.gpus):
            tier.count(until_s)
        outcome = self.outcome
        outcome.worker_s = self.workers.bought_s
        outcome.gpu_s = self.gpus.bought_s * self.fleet.gpus_a_pod
        outcome.unfinished = self._left
        return outcome

    # Time and the servers' shares.

    def _at(self, at_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (at_s, next(self._order), action))

    @property
    def _share(self) -> float:
        """Tokens a second of a busy slot."""
        if not self._busy:
            return 0.0
        return min(self.fleet.slot_tokens_s, self.gpus.ready * self.fleet.gpu_tokens_s / self._busy)

    def _pass(self, to_s: float) -> None:
        self._given += self._share * (to_s - self._now_s)
        self._now_s = to_s

    def _next_done_s(self) -> float:
        while self._running and self._running[0][1] in self._dropped:
            self._dropped.discard(heapq.heappop(self._running)[1])
        share = self._share
        if not self._running or not share:
            return float("inf")
        return self._now_s + max(0.0, self._running[0][0] - self._given) / share

    def _finish_due(self) -> None:
        while self._running and self._running[0][0] <= self._given + _NOTHING:
            _, number, since_s, pod, pack = heapq.heappop(self._running)
            if number in self._dropped:
                self._dropped.discard(number)
                continue
            self._busy -= 1
            self._request_tokens -= pack.stage.trial_tokens
            pod.busy -= 1
            self.outcome.tokens += pack.tokens
            if pod.leaving:
                if not pod.busy:
                    self.workers.end(self._now_s, pod)
            else:
                self._free.append(pod)
            if self.asked.answer(pack, self._now_s - since_s):
                self._stage_over(pack)

    # Audits.

    def _arrives(self, audit: AskedAudit) -> None:
        self._started[audit.audit] = self._now_s
        self.asked.probe(audit, self._now_s)

    def _stage_over(self, pack: Pack) -> None:
        audit, following = pack.stage.audit, pack.stage.number + 1
        if following < len(audit.stages):
            before_s = audit.stages[following].before_s
            self._at(self._now_s + before_s, partial(self._stage, audit, following))
            return
        self._left -= 1
        self.outcome.ended.append(Ended(audit.audit, audit.trials, self._now_s - self._started[audit.audit]))

    def _stage(self, audit: AskedAudit, number: int) -> None:
        self.asked.stage(audit, number, self._now_s)

    def _dispatch(self) -> None:
        asked = self.asked
        asked.hand_out(self.workers.ready * self.fleet.slots)
        while self._free:
            pod = self._free[-1]
            if pod.leaving or pod.gone:
                self._free.pop()
                continue
            pack = asked.take()
            if pack is None:
                return
            self._free.pop()
            pod.busy += 1
            self._busy += 1
            self._request_tokens += pack.stage.trial_tokens
            due = self._given + pack.tokens
            heapq.heappush(self._running, (due, next(self._order), self._now_s, pod, pack))
            if pack.stage.number >= 0:
                self.outcome.waits.append((self._now_s - pack.stage.since_s, pack.shards))
            asked.hand_out(self.workers.ready * self.fleet.slots)

    # Pods.

    def _is_ready(self, tier: Tier, pod: Pod) -> None:
        if pod.leaving:
            return
        pod.ready = True
        if tier is self.workers:
            self._free += [pod] * self.fleet.slots

    def _resize(self, tier: Tier, replicas: int) -> None:
        for pod in tier.grow(self._now_s, replicas):
            self._at(self._now_s + tier.start_s, partial(self._is_ready, tier, pod))
        for pod in tier.shrink(self._now_s, replicas):
            if pod.busy:
                self._at(self._now_s + self.fleet.grace_s, partial(self._grace_over, pod))
            else:
                tier.end(self._now_s, pod)

    def _grace_over(self, pod: Pod) -> None:
        if pod.gone:
            return
        for due, number, _, where, pack in self._running:
            if where is pod and number not in self._dropped:
                self._dropped.add(number)
                self._busy -= 1
                self._request_tokens -= pack.stage.trial_tokens
                self.outcome.handed_back += pack.shards
                self.outcome.redone_tokens += pack.tokens - max(0.0, due - self._given)
                self.asked.hand_back(pack)
        pod.busy = 0
        self.workers.end(self._now_s, pod)

    # The two controllers.

    def _value(self, signal: Signal) -> float:
        asked = self.asked
        match signal:
            case Signal.WORK:
                return asked.work
            case Signal.LIST_LENGTH:
                return asked.every_queued if self.policy is Policy.WHOLE_LIST else len(asked.messages)
            case Signal.QUEUE_TIME:
                return 0.0 if self.fleet.engine_queues else self._queue_time_s()
            case Signal.ENGINE_TIME:
                return self._queue_time_s() if self.fleet.engine_queues else 0.0

    def _queue_time_s(self) -> float:
        """By Little's law: who waits, over how many are served a second."""
        fleet = self.fleet
        waiting = self._busy * fleet.requests_a_slot - self.gpus.ready * fleet.gpu_requests
        # Tokens a second of all, over what a request takes on average.
        served_s = self._busy**2 * self._share / self._request_tokens if self._busy else 0.0
        return max(0, waiting) / served_s if served_s else 0.0

    def _values(self, rules: Rules) -> list[float | None]:
        return [self._value(trigger.signal) for trigger in rules.triggers]

    def _poll(self, tier: Tier, keda: Keda) -> None:
        self._at(self._now_s + keda.rules.polling_s, partial(self._poll, tier, keda))
        self._resize(tier, keda.poll(self._now_s, tier.replicas, self._values(keda.rules)))

    def _sync(self, tier: Tier, keda: Keda, hpa: Hpa) -> None:
        self._at(self._now_s + SYNC_S, partial(self._sync, tier, keda, hpa))
        readings = keda.readings(tier.replicas, self._values(keda.rules))
        if readings is not None:
            self._resize(tier, hpa.sync(self._now_s, tier.replicas, tier.ready, readings))

    def _sample(self) -> None:
        self._at(self._now_s + self.every_s, self._sample)
        self.outcome.samples.append(
            Sample(
                self._now_s,
                self.workers.replicas,
                self.workers.ready,
                self.gpus.replicas,
                self.asked.work,
                self.asked.oldest_s(self._now_s),
            )
        )
