"""What the workers count and time, for Prometheus: every metric, its labels, and the calls that record it.

Nothing is recorded, and prometheus_client is not imported, until a worker serves metrics (`record_in`). A metric's
labels take few values: names of states, stages, arms, backends and tasks. What grows with use (an audit's id, a
model, an item, an endpoint's address) is never a label: each value would be a series that is kept for ever, and an
address may hold a secret. docs/metrics.md says what each metric means.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

from proctor.domain.backends import Backend
from proctor.domain.errors import NewerVersionError
from proctor.domain.messages import ShardAnswer
from proctor.domain.plugins import declared
from proctor.domain.routing import STAGES_GROUP
from proctor.domain.trial import ANSWER_STAGE, PARAPHRASE_STAGE, TRANSMIT_STAGE, Arm

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

#: From a shard of a reference model to the lease, past which the shard is given to another worker.
_SHARD_BUCKETS_S = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0)
#: From the router's steps, which take milliseconds, to rewording a benchmark.
_MESSAGE_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)


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


class Metric(NamedTuple):
    """One metric. Its unit is the last part of its name, before `total`; without one it counts."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


TRIALS = Metric(
    "proctor_trials_total", "counter", "Trials that were planned, answered or dead-lettered.", ("state", "stage", "arm")
)
#: Beside the state of the same name, because an alert needs a series that is there, at 0, before the first one.
DEAD_LETTERED_TRIALS = Metric(
    "proctor_dead_lettered_trials_total", "counter", "Trials that were given up with their shard."
)
SHARD_DURATION = Metric(
    "proctor_shard_duration_seconds",
    "histogram",
    "Time that an inference worker took for an attempt at a shard.",
    ("backend", "outcome"),
    _SHARD_BUCKETS_S,
)
SHARDS_IN_FLIGHT = Metric(
    "proctor_shards_in_flight", "gauge", "Shards that the worker's processes are asking a model now.", ("backend",)
)
PACKS_IN_FLIGHT = Metric("proctor_packs_in_flight", "gauge", "Messages whose shards the worker asks now.", ("backend",))
SHARD_REDELIVERIES = Metric(
    "proctor_shard_redeliveries_total", "counter", "Shards that were queued again after a lost attempt.", ("cause",)
)
SHARDS_SPLIT = Metric("proctor_shards_split_total", "counter", "Shards that were lost again and cut in smaller ones.")
TRIALS_GRADED_AHEAD = Metric(
    "proctor_trials_graded_ahead_total",
    "counter",
    "Trials that were graded before the last one was answered.",
)
POOLS_AWAY = Metric("proctor_pools_away", "gauge", "Endpoints that do not answer: only a probing shard is handed out.")
DUPLICATES_SUPPRESSED = Metric(
    "proctor_duplicates_suppressed_total", "counter", "Answers to shards that came again and changed nothing."
)
MESSAGES = Metric("proctor_messages_total", "counter", "Messages whose task ended.", ("task", "outcome"))
MESSAGES_REDELIVERED = Metric(
    "proctor_messages_redelivered_total", "counter", "Messages that the broker delivered another time.", ("task",)
)
MESSAGE_DURATION = Metric(
    "proctor_message_duration_seconds", "histogram", "Time that a message's task took.", ("task",), _MESSAGE_BUCKETS_S
)
DEAD_LETTERS = Metric(
    "proctor_dead_letters_total",
    "counter",
    "Queue entries that nobody can handle, and that were put aside.",
    ("cause",),
)
AUDITS = Metric("proctor_audits", "gauge", "Audits on record by state; served by the router alone.", ("state",))
SCALING_WORK = Metric(
    "proctor_scaling_work",
    "gauge",
    "What waits for a service or is in its hands, by which its workers are scaled; served by the router alone.",
    ("service",),
)
SHARDS = Metric(
    "proctor_shards",
    "gauge",
    "Shards of the stages under way by where they are; served by the router alone.",
    ("state",),
)
OLDEST_UNFINISHED = Metric(
    "proctor_oldest_unfinished_seconds",
    "gauge",
    "Time since the oldest audit that is in a state, and not paused, was submitted; served by the router alone.",
    ("state",),
)
LEDGER_PROMISES = Metric(
    "proctor_ledger_promises",
    "gauge",
    "1 at how the ledger's Redis keeps a promise; served by the router alone.",
    ("promise", "verdict"),
)
BUILD_INFO = Metric("proctor_build_info", "gauge", "1, with the version of Proctor that runs.", ("version", "worker"))

#: Every metric that a worker may serve.
METRICS = (
    TRIALS,
    DEAD_LETTERED_TRIALS,
    SHARD_DURATION,
    SHARDS_IN_FLIGHT,
    PACKS_IN_FLIGHT,
    SHARD_REDELIVERIES,
    SHARDS_SPLIT,
    TRIALS_GRADED_AHEAD,
    POOLS_AWAY,
    DUPLICATES_SUPPRESSED,
    MESSAGES,
    MESSAGES_REDELIVERED,
    MESSAGE_DURATION,
    DEAD_LETTERS,
    AUDITS,
    OLDEST_UNFINISHED,
    SCALING_WORK,
    SHARDS,
    LEDGER_PROMISES,
    BUILD_INFO,
)


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


class Attempt:
    """An attempt at a shard that is being timed. Who makes it sets the outcome; by default it failed."""

    def __init__(self) -> None:
        self.outcome = ShardOutcome.FAILED


@contextmanager
def shard_attempt(backend: Backend) -> Iterator[Attempt]:
    """Time an attempt at a shard, and count it as in flight while it lasts."""
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
        duration = _instruments.shard_duration.labels(backend, attempt.outcome.value)
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
def message_handling(task: str, *, redelivered: bool) -> Iterator[None]:
    """Count and time the task of one message; what it raises is counted as failed, and passes on."""
    if _instruments is None:
        yield
        return
    if redelivered:
        _instruments.messages_redelivered.labels(task).inc()
    outcome, started_s = MessageOutcome.FAILED, time.monotonic()
    try:
        yield
        outcome = MessageOutcome.DONE
    except NewerVersionError:
        outcome = MessageOutcome.GIVEN_BACK
        raise
    finally:
        _instruments.message_duration.labels(task).observe(time.monotonic() - started_s)
        _instruments.messages.labels(task, outcome.value).inc()
