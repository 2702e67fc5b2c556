"""What processes count and time, for Prometheus: the calls that record it, and the words that their labels take.

Nothing is recorded, and prometheus_client is not imported, until a process serves metrics (`record_in`). What is
recorded is in `proctor.runtime.metrics.catalogue`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import product
from typing import TYPE_CHECKING, Literal

from proctor.domain.backends import Backend
from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import NewerVersionError
from proctor.domain.messages import Message, ShardAnswer
from proctor.domain.plugins import declared
from proctor.domain.registered_version import RegistryKind
from proctor.domain.routing import STAGES_GROUP
from proctor.domain.trial import ANSWER_STAGE, PARAPHRASE_STAGE, TRANSMIT_STAGE, Arm
from proctor.runtime.metrics.catalogue import (
    ADMISSION_DURATION,
    ADMISSION_REVIEWS,
    DEAD_LETTERED_TRIALS,
    DEAD_LETTERS,
    DECISIONS,
    DUPLICATES_SUPPRESSED,
    GRPC_DURATION,
    GRPC_REQUESTS,
    HTTP_DURATION,
    HTTP_REQUESTS,
    MESSAGE_DURATION,
    MESSAGES,
    MESSAGES_REDELIVERED,
    PACKS_IN_FLIGHT,
    POOLS_AWAY,
    REGISTRY_WRITES,
    SHARD_DURATION,
    SHARD_REDELIVERIES,
    SHARDS_IN_FLIGHT,
    SHARDS_SPLIT,
    TOKENS,
    TRIALS,
    TRIALS_GRADED_AHEAD,
    WEBHOOK_DELIVERIES,
    Metric,
)

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

#: Whatever else a caller makes up is counted together.
_HTTP_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


class TrialState(StrEnum):
    """What became of a trial."""

    PLANNED = "planned"
    ANSWERED = "answered"
    DEAD_LETTERED = "dead_lettered"


class ShardOutcome(StrEnum):
    """How an attempt at a shard ended."""

    ANSWERED = "answered"
    FAILED = "failed"
    """Asking again may help."""
    REFUSED = "refused"
    """Asking again would not help."""
    HANDED_BACK = "handed_back"
    """The worker left before it was done."""

    @classmethod
    def of(cls, answer: ShardAnswer) -> ShardOutcome:
        """The outcome that an inference worker tells the router."""
        if answer.error is None:
            return cls.ANSWERED
        if answer.handed_back:
            return cls.HANDED_BACK
        return cls.FAILED if answer.retryable else cls.REFUSED


class Redelivery(StrEnum):
    """Why a shard is handed out again."""

    FAILED = "failed"
    OVERDUE = "overdue"
    LOST = "lost"
    """Its worker died, or the endpoint went away with it."""
    HANDED_BACK = "handed_back"


class MessageOutcome(StrEnum):
    """How the task of a message ended."""

    DONE = "done"
    FAILED = "failed"
    """With an exception: the message was no valid one, or the task has a defect."""
    GIVEN_BACK = "given_back"
    """It is of a later version: another worker's."""


class RegistryWrite(StrEnum):
    """How a write to the registry ended."""

    WRITTEN = "written"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class WebhookOutcome(StrEnum):
    """What became of a webhook's delivery."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    IGNORED = "ignored"
    FORGED = "forged"
    """Not from who knows a secret, or stale."""
    INVALID = "invalid"
    """Too large, unreadable, or its id was used for another."""
    REFUSED = "refused"
    """Too many at once; it is sent again."""
    FAILED = "failed"
    """A store was away, no secret is set up, or a defect."""


class Instruments:
    """The metrics that processes record, made in a registry of prometheus_client. Those of a scrape are not here."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.trials = self._counter(TRIALS)
        self.dead_lettered_trials = self._counter(DEAD_LETTERED_TRIALS)
        self.shard_duration = self._histogram(SHARD_DURATION)
        self.shards_in_flight = self._gauge(SHARDS_IN_FLIGHT)
        self.packs_in_flight = self._gauge(PACKS_IN_FLIGHT)
        self.shard_redeliveries = self._counter(SHARD_REDELIVERIES)
        self.shards_split = self._counter(SHARDS_SPLIT)
        self.trials_graded_ahead = self._counter(TRIALS_GRADED_AHEAD)
        # Not the sum: each process tells of all pools, and who looked last knows best.
        self.pools_away = self._gauge(POOLS_AWAY, "livemostrecent")
        self.duplicates_suppressed = self._counter(DUPLICATES_SUPPRESSED)
        self.messages = self._counter(MESSAGES)
        self.messages_redelivered = self._counter(MESSAGES_REDELIVERED)
        self.message_duration = self._histogram(MESSAGE_DURATION)
        self.dead_letters = self._counter(DEAD_LETTERS)
        self.tokens = self._counter(TOKENS)
        self.decisions = self._counter(DECISIONS)
        self.registry_writes = self._counter(REGISTRY_WRITES)
        self.webhook_deliveries = self._counter(WEBHOOK_DELIVERIES)
        self.http_requests = self._counter(HTTP_REQUESTS)
        self.http_duration = self._histogram(HTTP_DURATION)
        self.grpc_requests = self._counter(GRPC_REQUESTS)
        self.grpc_duration = self._histogram(GRPC_DURATION)
        self.admission_reviews = self._counter(ADMISSION_REVIEWS)
        self.admission_duration = self._histogram(ADMISSION_DURATION)

    def begin_at_zero(self, service: str, faults: Iterable[str] = ()) -> None:
        """Have what alerts look at be there before the first case, for what a service records.

        A counter that appears with its first case has not risen, as Prometheus sees it.

        Args:
            faults: what dead letters may be put aside for.
        """
        for fault in faults if service != "gateway" else ():
            self.dead_letters.labels(fault)
        tasks = [kind.task for kind in Message.__subclasses__() if kind.task.startswith(f"{service}.")]
        for task in tasks:
            for outcome in MessageOutcome:
                self.messages.labels(task, outcome.value)
        if service == "router":
            for cause in Redelivery:
                self.shard_redeliveries.labels(cause.value)
        elif service == "scorer":
            for decision in DecisionOutcome:
                self.decisions.labels(decision.value)
        elif service == "registry":
            for write in RegistryWrite:
                self.registry_writes.labels(write.value)
        elif service == "gateway":
            for registry, delivery in product(RegistryKind, WebhookOutcome):
                self.webhook_deliveries.labels(registry.value, delivery.value)

    def _counter(self, metric: Metric) -> Counter:
        from prometheus_client import Counter

        return Counter(metric.name, metric.help, metric.labels, registry=self._registry)

    def _histogram(self, metric: Metric) -> Histogram:
        from prometheus_client import Histogram

        return Histogram(metric.name, metric.help, metric.labels, registry=self._registry, buckets=metric.buckets)

    def _gauge(self, metric: Metric, over_processes: Literal["livesum", "livemostrecent"] = "livesum") -> Gauge:
        from prometheus_client import Gauge

        # Over living processes alone: what a killed one had in flight is not in flight any more.
        return Gauge(metric.name, metric.help, metric.labels, registry=self._registry, multiprocess_mode=over_processes)


_instruments: Instruments | None = None


def record_in(instruments: Instruments | None) -> None:
    """Record from now on in these instruments, in this process and in those that it forks; None records nothing."""
    global _instruments
    _instruments = instruments


def recording() -> bool:
    """Whether anything is recorded: who must look something up to record it need not, where it is not."""
    return _instruments is not None


def trials(state: TrialState, stage: str, arm: Arm, count: int) -> None:
    """Count trials that came to a state. `stage` is the ledger's name; rounds of one kind are counted together."""
    if _instruments is None:
        return
    _instruments.trials.labels(state.value, _stage_kind(stage), arm.value).inc(count)
    if state is TrialState.DEAD_LETTERED:
        _instruments.dead_lettered_trials.inc(count)


def _stage_kind(stage: str) -> str:
    kind = stage.partition("-")[0]
    known = kind in (ANSWER_STAGE, PARAPHRASE_STAGE, TRANSMIT_STAGE) or kind in declared(STAGES_GROUP)
    return kind if known else "other"


def tokens(stage: str, *, read: int, written: int) -> None:
    """Count the tokens of an answered shard, once."""
    if _instruments is not None:
        _instruments.tokens.labels(_stage_kind(stage), "input").inc(read)
        _instruments.tokens.labels(_stage_kind(stage), "output").inc(written)


def decided(outcome: DecisionOutcome) -> None:
    """Count a decision that was put on record now."""
    if _instruments is not None:
        _instruments.decisions.labels(outcome.value).inc()


def registry_write(outcome: RegistryWrite) -> None:
    """Count a write to the registry, after its last try."""
    if _instruments is not None:
        _instruments.registry_writes.labels(outcome.value).inc()


def webhook_delivery(registry: RegistryKind, outcome: WebhookOutcome) -> None:
    """Count a delivery."""
    if _instruments is not None:
        _instruments.webhook_deliveries.labels(registry.value, outcome.value).inc()


def http_request(route: str, method: str, status: int, seconds: float) -> None:
    """Count and time a request.

    Args:
        route: the route's own path, or one word for what no route is for; not the caller's path.
        method: as it was asked.
        status: of the answer, of which the class is counted.
        seconds: until the answer began.
    """
    if _instruments is not None:
        known = method if method in _HTTP_METHODS else "other"
        _instruments.http_requests.labels(route, known, f"{status // 100}xx").inc()
        _instruments.http_duration.labels(route, known).observe(seconds)


def grpc_request(method: str, code: str, seconds: float) -> None:
    """Count and time a call: of a method that the server has, or `other`, and the name of its status."""
    if _instruments is not None:
        _instruments.grpc_requests.labels(method, code).inc()
        _instruments.grpc_duration.labels(method).observe(seconds)


def shard_redelivered(cause: Redelivery) -> None:
    """Count a shard that is handed out again."""
    if _instruments is not None:
        _instruments.shard_redeliveries.labels(cause.value).inc()


def shard_split() -> None:
    """Count a shard that was cut in smaller ones."""
    if _instruments is not None:
        _instruments.shards_split.inc()


def trials_graded_ahead(count: int) -> None:
    """Count trials that were graded as they were answered."""
    if _instruments is not None:
        _instruments.trials_graded_ahead.inc(count)


def pools_away(count: int) -> None:
    """Say how many endpoints do not answer now, of all that audits ask."""
    if _instruments is not None:
        _instruments.pools_away.set(count)


def duplicate_suppressed() -> None:
    """Count an answer that the ledger had already."""
    if _instruments is not None:
        _instruments.duplicates_suppressed.inc()


def dead_letter(fault: str) -> None:
    """Count a queue entry that nobody can handle, by its `proctor.runtime.messaging.dead_letters.Fault`."""
    if _instruments is not None:
        _instruments.dead_letters.labels(fault).inc()


def admission_review(decision: StrEnum, reason: StrEnum) -> None:
    """Count a workload that the admission webhook was asked about. Enumerations alone: a model's name is no reason."""
    if _instruments is not None:
        _instruments.admission_reviews.labels(decision.value, reason.value).inc()


def admission_answered(seconds: float) -> None:
    """Time an answer of the admission webhook."""
    if _instruments is not None:
        _instruments.admission_duration.observe(seconds)


class Attempt:
    """An attempt at a shard that is being timed. Who makes it sets the outcome; by default it failed."""

    def __init__(self) -> None:
        self.outcome = ShardOutcome.FAILED


@contextmanager
def shard_attempt(backend: Backend, stage: str) -> Iterator[Attempt]:
    """Time an attempt at a shard of the ledger's stage, and count it as in flight while it lasts."""
    attempt = Attempt()
    if _instruments is None:
        yield attempt
        return
    in_flight, started_s = _instruments.shards_in_flight.labels(backend), time.monotonic()
    in_flight.inc()
    try:
        yield attempt
    finally:
        in_flight.dec()
        duration = _instruments.shard_duration.labels(backend, _stage_kind(stage), attempt.outcome.value)
        duration.observe(time.monotonic() - started_s)


@contextmanager
def pack(backend: Backend) -> Iterator[None]:
    """Count a message with shards as in flight while its shards are asked."""
    if _instruments is None:
        yield
        return
    in_flight = _instruments.packs_in_flight.labels(backend)
    in_flight.inc()
    try:
        yield
    finally:
        in_flight.dec()


@contextmanager
def message_handling(
    task: str, *, redelivered: bool, given_back: tuple[type[Exception], ...] = (NewerVersionError,)
) -> Iterator[None]:
    """Count and time the task of one message; what it raises is counted as failed, and passes on.

    Args:
        task: its name.
        redelivered: whether it was delivered before.
        given_back: what is raised where the message goes back to its queue.
    """
    if _instruments is None:
        yield
        return
    if redelivered:
        _instruments.messages_redelivered.labels(task).inc()
    outcome, started_s = MessageOutcome.FAILED, time.monotonic()
    try:
        yield
        outcome = MessageOutcome.DONE
    except given_back:
        outcome = MessageOutcome.GIVEN_BACK
        raise
    finally:
        _instruments.message_duration.labels(task).observe(time.monotonic() - started_s)
        _instruments.messages.labels(task, outcome.value).inc()
