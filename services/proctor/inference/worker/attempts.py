"""Attempts at the shards of a message, all at the same time, each with an outcome of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TypeVar

from pydantic import ValidationError

from proctor.domain.errors import ProctorError, StoreError
from proctor.domain.manifest import CompletionSet
from proctor.domain.messages import RunShards, ShardAnswer, ShardToRun
from proctor.domain.replicates import of_replicate
from proctor.domain.trial import Completion, Shard, Trial
from proctor.inference.worker.backend import printable
from proctor.inference.worker.event_loop import EventLoopThread
from proctor.inference.worker.shards import Backends, ShardUnanswered
from proctor.runtime.artifacts.store import ArtifactStore, get_model, put_model
from proctor.runtime.logs.context import carried, saying
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.progress import note_step
from proctor.runtime.traces import tracing
from proctor.runtime.traces.span import Attributes

logger = logging.getLogger(__name__)

#: Threads that read shards and write completions: a few, because they wait for a disk or a network, and parse in turns.
_STORE_THREADS = 4
#: Waits before completions are stored again, in all far less than what a lease leaves for the way back.
_STORE_AGAIN_S = (0.5, 1.0, 2.0)
#: An answer does not wait longer than this for those of other shards, to travel with them.
_TOGETHER_S = 1.0

T = TypeVar("T")


class HandedBackError(ProctorError):
    """The worker is leaving, and does not ask what it has in hand any more."""


class Attempts:
    """Asks shards, and stores what was answered. Callers of any thread share one event loop.

    Args:
        loop: where the backends live.
        backends: the open endpoints.
        store: of shards and completions. It is used in threads of its own, so that no request waits for a disk.
    """

    def __init__(self, loop: EventLoopThread, backends: Backends, store: ArtifactStore) -> None:
        self._loop = loop
        self._backends = backends
        self._store = store
        self._threads = ThreadPoolExecutor(_STORE_THREADS, "inference-store")
        self._asking: set[asyncio.Task[list[Completion]]] = set()
        self._leaving = threading.Event()

    def run(self, message: RunShards) -> Iterator[tuple[ShardAnswer, ...]]:
        """The answers to a message's shards as they come, several together where they come close to each other.

        Raises:
            RuntimeError: the event loop was stopped meanwhile.
        """
        done = SimpleQueue[ShardAnswer | None]()
        running = self._loop.start(self._run_all(message, done.put))
        # Behind the last answer, or in its place where the loop was stopped: nobody shall wait for ever.
        running.add_done_callback(lambda _: done.put(None))
        try:
            yield from _batches(done, len(message.shards))
        finally:
            running.cancel()

    def hand_back(self) -> None:
        """Stop asking, now and from now on: what is not answered by now is handed back. For any thread."""
        self._loop.call(self._hand_back)

    def close(self) -> None:
        """End the threads; for when nothing runs any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _hand_back(self) -> None:
        self._leaving.set()
        for asking in self._asking:
            asking.cancel()

    async def _run_all(self, message: RunShards, done: Callable[[ShardAnswer], None]) -> None:
        async def run(shard: ShardToRun) -> None:
            done(await self._attempt(message, shard))

        await asyncio.gather(*map(run, message.shards))

    async def _attempt(self, message: RunShards, shard: ShardToRun) -> ShardAnswer:
        started_s = time.monotonic()
        said: Attributes = {
            "proctor.shard.id": shard.shard_id,
            "proctor.shard.attempt": shard.attempt,
            "proctor.stage": message.stage,
            "proctor.backend": message.endpoint.backend,
        }
        with (
            saying(shard_id=shard.shard_id),
            metrics.shard_attempt(message.endpoint.backend, message.stage) as attempt,
            tracing.span("shard", said) as span,
        ):
            answer = await self._answer(message, shard)
            attempt.outcome = outcome = metrics.ShardOutcome.of(answer)
            span.set({"proctor.shard.outcome": outcome.value, "proctor.trials": answer.n_trials or None})
            if answer.completions is None:
                span.failed(outcome.value)
        return answer.model_copy(update={"seconds": time.monotonic() - started_s})

    async def _answer(self, message: RunShards, shard: ShardToRun) -> ShardAnswer:
        def failure(error: str, *, retryable: bool = True, **why: bool) -> ShardAnswer:
            shard_id, attempt = shard.shard_id, shard.attempt
            return ShardAnswer(shard_id=shard_id, attempt=attempt, error=error, retryable=retryable, **why)

        try:
            return await self._answered(message, shard)
        except HandedBackError as leaving:
            return failure(str(leaving), handed_back=True)
        except ShardUnanswered as error:
            return failure(str(error), unreachable=error.unreachable)
        except StoreError as error:
            return failure(str(error))
        except ProctorError as error:
            return failure(str(error), retryable=False)
        except ValidationError as error:
            # A stored shard that is none stays so (a lone surrogate in a prompt makes it invalid UTF-8).
            return failure(printable(f"shard {shard.shard} is not valid: {error}"), retryable=False)
        except Exception as error:
            logger.exception("shard %s failed", shard.shard_id)
            return failure(unexpected(error))

    async def _answered(self, message: RunShards, shard: ShardToRun) -> ShardAnswer:
        trials = (await self._in_thread(lambda: get_model(self._store, shard.shard, Shard))).trials
        completions = await self._asked(message, shard, trials)
        return ShardAnswer(
            shard_id=shard.shard_id,
            attempt=shard.attempt,
            completions=await self._stored(CompletionSet(completions=tuple(completions))),
            n_trials=len(trials),
            input_tokens=sum(completion.input_tokens or 0 for completion in completions),
            output_tokens=sum(completion.output_tokens or 0 for completion in completions),
            n_refused=sum(completion.error is not None for completion in completions),
        )

    async def _stored(self, completions: CompletionSet) -> str:
        """Store what was answered; a store that is away or full for a moment does not cost the answers.

        Nor the attempts: those that follow each other at once would all meet the same full disk.
        """
        for wait_s in _STORE_AGAIN_S:
            try:
                return await self._in_thread(lambda: put_model(self._store, completions))
            except StoreError as error:
                if self._leaving.is_set():
                    raise
                logger.warning("completions are stored again in %.1f s: %s", wait_s, error)
                await asyncio.sleep(wait_s)
        return await self._in_thread(lambda: put_model(self._store, completions))

    async def _asked(self, message: RunShards, shard: ShardToRun, trials: tuple[Trial, ...]) -> list[Completion]:
        """What the endpoint answers. Only this is cut short when the worker leaves: an answer that is there is kept."""
        if self._leaving.is_set():
            raise HandedBackError("the worker left before it asked")
        # An endpoint that says nothing is not this worker's fault, and another one would hear as little of it.
        note_step(quiet_for_s=message.deadline_s)
        asking = asyncio.ensure_future(
            self._backends.answer(
                message.endpoint,
                trials,
                message.decoding if message.replicates == 1 else of_replicate(message.decoding, trials[0].replicate),
                deadline_s=message.deadline_s,
                last_attempt=shard.last_attempt,
            )
        )
        self._asking.add(asking)
        try:
            return await asking
        except asyncio.CancelledError:
            if self._leaving.is_set():
                raise HandedBackError("the worker left before it was answered") from None
            raise
        finally:
            self._asking.discard(asking)

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, carried(function))


def _batches(done: SimpleQueue[ShardAnswer | None], count: int) -> Iterator[tuple[ShardAnswer, ...]]:
    """`count` answers in the order in which they come: the first of a batch waits for the others, but not for long.

    Raises:
        RuntimeError: None came in an answer's place.
    """
    while count:
        batch, until_s = [_answer(done.get())], time.monotonic() + _TOGETHER_S
        while len(batch) < count:
            try:
                batch.append(_answer(done.get(timeout=max(0.0, until_s - time.monotonic()))))
            except Empty:
                break
        yield tuple(batch)
        count -= len(batch)


def _answer(found: ShardAnswer | None) -> ShardAnswer:
    if found is None:
        raise RuntimeError("the event loop ended before all shards were answered")
    return found


def unexpected(error: Exception) -> str:
    """What the router is told of a defect of the worker."""
    return printable(f"the inference worker failed: {type(error).__name__}: {error}")
