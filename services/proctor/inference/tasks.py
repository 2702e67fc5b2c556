"""The inference service's tasks: ask an endpoint what it is, and ask a model shards of prompts.

Knows nothing of audits: what it needs stands in the message, and it answers to the router. Every message gets an
answer, so that an error reaches the router now instead of as an overdue shard later. Tasks run in threads, several at
a time in one process, and their requests on one event loop, so that an endpoint's window stays full over the ends of
messages.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from celery.signals import worker_ready, worker_shutdown, worker_shutting_down

from proctor.domain.backends import BACKENDS
from proctor.domain.errors import ProctorError, StoreError
from proctor.domain.messages import EndpointProbed, ProbeEndpoint, RunShards, ShardAnswer, ShardsAnswered
from proctor.domain.weights import Weights
from proctor.inference.worker.attempts import Attempts, unexpected
from proctor.inference.worker.backend import Probe
from proctor.inference.worker.event_loop import EventLoopThread
from proctor.inference.worker.leaving import Leaving
from proctor.inference.worker.shards import Backends
from proctor.runtime.messaging.tasks import (
    handles,
    redelivered,
    send,
    worker_artifacts,
    worker_id,
    worker_presence,
    worker_settings,
)
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.redis.presence import Held, tolerated

logger = logging.getLogger(__name__)
# One line a request would bury the worker's log.
logging.getLogger("httpx").setLevel(logging.WARNING)


class _Worker(NamedTuple):
    """What a worker process keeps between tasks."""

    loop: EventLoopThread
    backends: Backends
    attempts: Attempts
    leaving: Leaving


@cache
def _made() -> _Worker:
    loop, backends = EventLoopThread(), Backends(worker_settings())
    attempts = Attempts(loop, backends, worker_artifacts())
    return _Worker(loop, backends, attempts, Leaving(worker_settings().timing.grace_s, attempts.hand_back))


_making = threading.Lock()


def _worker() -> _Worker:
    # Two first tasks may come at the same time, and there has to be one loop.
    with _making:
        return _made()


@handles(ProbeEndpoint)
def probe(message: ProbeEndpoint) -> None:
    """Ask whether an endpoint serves the pinned model, and tell the router."""
    try:
        found = _worker().loop.run(_worker().backends.probe(message.endpoint))
    except ProctorError as error:
        found = Probe(False, detail=str(error))
    except Exception as error:
        logger.exception("the probe of %s failed", message.endpoint.url)
        found = Probe(False, detail=unexpected(error))
    send(
        EndpointProbed(
            audit_id=message.audit_id,
            ok=found.ok,
            model_digest=found.model_digest,
            server=found.server,
            detail=found.detail,
            unavailable=found.unavailable,
            tried=message.tried,
            weights=_weights_of(found, message.endpoint.backend),
        )
    )


def _weights_of(found: Probe, backend: str) -> Weights | None:
    """How the digest of a probe is known, where that is more than declared; no plug-in computes for Proctor."""
    return found.weights if found.weights is Weights.PROVEN and backend in BACKENDS.built_in else None


@handles(RunShards)
def run_shards(message: RunShards) -> None:
    """Ask a model shards of prompts, store what it said, and tell the router as they are done.

    A message that was delivered before is not run: what its shards did to their first worker they may do to the next,
    and the broker has no end to that. The ledger has: it hands a shard out again when its worker is lost or its lease
    is over, and counts.
    """
    held = [Held(message.audit_id, message.stage, shard.shard_id, shard.attempt) for shard in message.shards]
    if redelivered():
        _let_go(message, held)
        return
    with tolerated("note what is in hand"):
        worker_presence().holding(worker_id(), held)
    try:
        with metrics.pack(message.endpoint.backend):
            _run(message)
    except BaseException:
        # Some were not answered, e.g. because the broker is away for long. No worker would be missed for them.
        with tolerated("note what was left"):
            worker_presence().abandoned(held)
        raise
    with tolerated("note what is done"):
        worker_presence().released(worker_id(), held)


def _run(message: RunShards) -> None:
    since_s = time.monotonic()
    for answers in _worker().attempts.run(message):
        now_s = time.monotonic()
        _tell(message, answers, seconds=now_s - since_s)
        since_s = now_s


def _let_go(message: RunShards, held: Sequence[Held]) -> None:
    """See to a message that was delivered before: what no worker has begun is handed back, the rest is left alone.

    A worker that leaves gives back what it took from the queue in its last moment, and never looked at.
    """
    try:
        begun = worker_presence().begun(held)
    except StoreError as error:
        logger.warning("shards that were delivered before are left to their leases: %s", error)
        return
    logger.warning("of %d shards that were delivered before, %d are left to their leases", len(held), len(begun))
    untouched = [
        ShardAnswer(shard_id=one.shard_id, attempt=one.attempt, error="no worker has begun it", handed_back=True)
        for one in held
        if one not in begun
    ]
    if untouched:
        _tell(message, untouched, seconds=0.0)


def _tell(message: RunShards, answers: Sequence[ShardAnswer], *, seconds: float) -> None:
    send(
        ShardsAnswered(audit_id=message.audit_id, stage=message.stage, answers=tuple(answers), seconds=seconds),
    )


def _prepare(**_: Any) -> None:
    """Be ready for the first task, and to leave before it comes."""
    _worker()


def _begin_to_leave(**_: Any) -> None:
    """SIGTERM, and each one after it."""
    # Without the lock: in a signal's handler nobody would release it.
    if _made.cache_info().currsize:
        _made().leaving.begin()


def _leave(**_: Any) -> None:
    """Give back the connections, once, when the worker ends."""
    if _made.cache_info().currsize:
        worker = _made()
        _made.cache_clear()
        worker.loop.run(worker.backends.close())
        worker.loop.stop()
        worker.attempts.close()


worker_ready.connect(_prepare, weak=False)
worker_shutting_down.connect(_begin_to_leave, weak=False)
worker_shutdown.connect(_leave, weak=False)
