"""The inference service's tasks: ask an endpoint what it is, and ask a model a shard of prompts.

Knows nothing of audits: what it needs stands in the message, and it answers to the router. Every message gets an
answer, so that an error reaches the router now instead of as an overdue shard later.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, NamedTuple

from celery.signals import worker_process_shutdown, worker_shutdown
from pydantic import ValidationError

from proctor.domain.errors import ProctorError, StoreError
from proctor.domain.manifest import CompletionSet
from proctor.domain.messages import EndpointProbed, ProbeEndpoint, RunShard, ShardAnswered
from proctor.domain.trial import Shard
from proctor.inference.backend import Probe, printable
from proctor.inference.event_loop import EventLoopThread
from proctor.inference.shards import Backends, ShardUnanswered
from proctor.runtime import metrics
from proctor.runtime.artifacts import get_model, put_model
from proctor.runtime.tasks import handles, redelivered, send, worker_artifacts, worker_settings

logger = logging.getLogger(__name__)
# One line a request would bury the worker's log.
logging.getLogger("httpx").setLevel(logging.WARNING)


class _Worker(NamedTuple):
    """What a worker process keeps between tasks. Made by the first task, hence after a fork."""

    loop: EventLoopThread
    backends: Backends


@cache
def _worker() -> _Worker:
    return _Worker(EventLoopThread(), Backends(worker_settings()))


@handles(ProbeEndpoint)
def probe(message: ProbeEndpoint) -> None:
    """Ask whether an endpoint serves the pinned model, and tell the router."""
    try:
        found = _worker().loop.run(_worker().backends.probe(message.endpoint))
    except ProctorError as error:
        found = Probe(False, detail=str(error))
    except Exception as error:
        logger.exception("the probe of %s failed", message.endpoint.url)
        found = Probe(False, detail=_unexpected(error))
    send(
        EndpointProbed(
            audit_id=message.audit_id,
            ok=found.ok,
            model_digest=found.model_digest,
            server=found.server,
            detail=found.detail,
        )
    )


@handles(RunShard)
def run_shard(message: RunShard) -> None:
    """Ask a model a shard of prompts, store what it said, and tell the router.

    A message that was delivered before is let go: what its shard did to its first worker it may do to the next, and
    the broker has no end to that. The ledger has: it hands the shard out again when its lease is over, and counts.
    """
    if redelivered():
        logger.warning(
            "shard %s, attempt %d, was delivered before: left to its lease", message.shard_id, message.attempt
        )
        return
    with metrics.shard_attempt(message.endpoint.backend) as attempt:
        answer = _attempt(message)
        attempt.outcome = metrics.ShardOutcome.of(answer)
    send(answer)


def _attempt(message: RunShard) -> ShardAnswered:
    completions, error, retryable = None, None, False
    try:
        completions = _answered(message)
    except (ShardUnanswered, StoreError) as failure:
        error, retryable = str(failure), True
    except ProctorError as failure:
        error = str(failure)
    except ValidationError as failure:
        # A stored shard that is none stays so (a lone surrogate in a prompt makes it invalid UTF-8).
        error = printable(f"shard {message.shard} is not valid: {failure}")
    except Exception as failure:
        logger.exception("shard %s failed", message.shard_id)
        error, retryable = _unexpected(failure), True
    return ShardAnswered(
        audit_id=message.audit_id,
        stage=message.stage,
        shard_id=message.shard_id,
        attempt=message.attempt,
        completions=completions,
        error=error,
        retryable=retryable,
    )


def _answered(message: RunShard) -> str:
    shard = get_model(worker_artifacts(), message.shard, Shard)
    answers = _worker().backends.answer(
        message.endpoint,
        shard.trials,
        message.decoding,
        deadline_s=message.deadline_s,
        last_attempt=message.last_attempt,
    )
    return put_model(worker_artifacts(), CompletionSet(completions=tuple(_worker().loop.run(answers))))


def _unexpected(error: Exception) -> str:
    return printable(f"the inference worker failed: {type(error).__name__}: {error}")


def _leave(**_: Any) -> None:
    """Give back the connections, once, when the worker or its pool process ends."""
    if _worker.cache_info().currsize:
        worker = _worker()
        _worker.cache_clear()
        worker.loop.run(worker.backends.close())
        worker.loop.stop()


worker_process_shutdown.connect(_leave, weak=False)
worker_shutdown.connect(_leave, weak=False)
