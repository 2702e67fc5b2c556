"""What a chaos run lays into a worker's process before it starts: faults on demand, and stand-ins for what is costly.

Everything here is outside the package: the worker that runs is Proctor's own, over its own broker, ledger and stores.
Three pieces are replaced by others with the same contract, because they are not what is being tested and would take
the time: the sentence encoder (by vectors of a hash), the reference models (by `tests.chaos.arithmetic`, inside the
process as they are), and MLflow (by a file with one line for each write).
"""

from __future__ import annotations

import errno
import hashlib
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.chaos import arithmetic, crash_points
from tests.chaos.control import Control

#: Environment of a worker: the control folder; seconds by which its clock is wrong; the planted bug, if any.
CONTROL, SKEW, PLANT = "CHAOS_CONTROL", "CHAOS_SKEW_S", "CHAOS_PLANT"
DISK_FULL, SLOW_MODEL, BROKEN_MODEL = "disk-full", "slow-model", "broken-model"
#: The model answers nothing while it stands.
HELD_MODEL = "held-model"
#: With a process id: it gets SIGTERM with a shard in hand, which it then takes as long for as it may.
LEAVE = "leave-"
#: With a process id: when that was, by the clock that all processes share.
LEAVING = "leaving-"
REGISTRY = "registry.jsonl"


def install(service: str) -> None:
    """Lay everything into this process, for the worker of one service."""
    folder = Path(os.environ[CONTROL])
    control = Control(folder)
    _skew_the_clock(float(os.environ.get(SKEW) or 0.0))
    importlib.import_module(f"proctor.{service}.tasks")
    _fill_the_disk(control)
    if service == "perturbation":
        replace("proctor.perturbation.tasks", "_encoder", HashedEncoder)
    if service == "inference":
        _answer_in_process(control)
    if service == "registry":
        _write_to_a_file(folder / REGISTRY)
    if service == "router":
        _log_the_ledger(control)
        _cut_searches_small()
    if plant := os.environ.get(PLANT):
        importlib.import_module(f"tests.chaos.planted.{plant}").plant(service)
    crash_points.install(service, control)


def replace(module: str, name: str, value: Any) -> Any:
    """Put something in the place of a module's attribute, and return what was there.

    Raises:
        AttributeError: there is nothing of that name, so that whatever was to be replaced would go on unnoticed.
    """
    owner: Any = importlib.import_module(module)
    before = getattr(owner, name)
    setattr(owner, name, value)
    return before


def _skew_the_clock(seconds: float) -> None:
    """Let every module that has taken `time.time` for itself, and every later one, see a clock that is wrong."""
    if not seconds:
        return
    right = time.time

    def wrong() -> float:
        return right() + seconds

    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is right:
                setattr(module, name, wrong)


def _fill_the_disk(control: Control) -> None:
    def write_if_there_is_room(path: Path, data: bytes, **keywords: Any) -> None:
        if control.standing(DISK_FULL) is not None:
            control.log("disk-full")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, data, **keywords)

    write = replace("proctor.runtime.artifacts.local", "write_atomic", write_if_there_is_room)


class HashedEncoder:
    """Vectors that a text's hash decides; two different texts are at a cosine distance of about 0.3."""

    name = "hashed"
    digest = fingerprint = "sha256:" + "e" * 64
    loaded = True

    def encode(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        """One unit vector a text."""
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") for text in texts]
        noise = np.stack([np.random.default_rng(seed).normal(size=64) for seed in seeds])
        noise *= np.sqrt(0.3) / np.linalg.norm(noise, axis=1, keepdims=True)
        return np.concatenate([np.full((len(texts), 1), np.sqrt(0.7)), noise], axis=1).astype(np.float32)


def _answer_in_process(control: Control) -> None:
    import asyncio

    from proctor.domain.endpoint import EndpointSpec
    from proctor.domain.messages import RunShards, ShardAnswer, ShardToRun
    from proctor.domain.trial import Completion, Decoding, Trial
    from proctor.inference.worker.attempts import Attempts
    from proctor.inference.worker.backend import Answer, Backend, Probe, TrialFailure, answered, failed
    from proctor.runtime.settings import Settings

    leave = LEAVE + str(os.getpid())

    class Sums:
        """The model of `tests.chaos.arithmetic`, where the reference models would be."""

        def __init__(self, spec: EndpointSpec) -> None:
            self._spec = spec

        async def probe(self) -> Probe:
            return Probe(True, arithmetic.DIGEST, "in process")

        async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
            began = time.monotonic()
            if control.take(leave):
                control.order(LEAVING + str(os.getpid()), str(time.monotonic()))
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.sleep(deadline_s)
            if (wait := control.standing(SLOW_MODEL)) is not None:
                await asyncio.sleep(min(float(wait), deadline_s))
            while control.standing(HELD_MODEL) is not None and time.monotonic() - began < deadline_s:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            if control.standing(BROKEN_MODEL) is not None:
                failure = TrialFailure("the model server is broken", retryable=True)
                return [failed(trial, self._spec, failure.again()) for trial in trials]
            completions = []
            for trial in trials:
                if arithmetic.POISON in trial.prompt:
                    control.log("poisoned")
                    os.kill(os.getpid(), signal.SIGKILL)
                said = Answer(arithmetic.answer(trial.prompt, decoding.seed), "stop", 20, 5, arithmetic.DIGEST)
                took_s = time.monotonic() - began
                completions.append(answered(trial, self._spec, said, max_tokens=decoding.max_tokens, latency_s=took_s))
            return completions

        async def close(self) -> None:
            return None

    def opened(spec: EndpointSpec, settings: Settings) -> Backend:
        if spec.backend == "in_process":
            return Sums(spec)
        backend: Backend = open_backend(spec, settings)
        return backend

    async def logged(self: Attempts, message: RunShards, shard: ShardToRun) -> ShardAnswer:
        named = {"audit": message.audit_id, "shard": shard.shard_id, "attempt": shard.attempt}
        control.log("begin", **named)
        answer = await attempt(self, message, shard)
        control.log("end", **named, handed_back=answer.handed_back)
        return answer

    open_backend = replace("proctor.inference.worker.shards", "open_backend", opened)
    attempt, Attempts._attempt = Attempts._attempt, logged  # type: ignore[method-assign]


def _write_to_a_file(path: Path) -> None:
    from proctor.domain.decision import DecisionEvent

    def write(uri: str, event: DecisionEvent, *_: Any) -> str:
        line = json.dumps(event.plain(), sort_keys=True).encode() + b"\n"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
        return "1"

    replace("proctor.registry.tasks", "write_with_retries", write)


def _cut_searches_small() -> None:
    """Have a search that one worker would do in a second be one of many shards, as that of a large corpus is."""
    from proctor.domain.search_shards import cut

    replace("proctor.router.search_dispatch", "cut", partial(cut, shard_bytes=arithmetic.SEARCH_SHARD_BYTES))


def _log_the_ledger(control: Control) -> None:
    from proctor.router.ledger.store import Answer, Failed, Ledger, Recorded
    from proctor.router.pools.store import Outage, Pools

    record_all, fail, unreachable = Ledger.record_all, Ledger.fail, Pools.unreachable

    def recorded(
        self: Ledger, audit_id: str, stage: str, answers: Iterable[Answer | tuple[str, str, int, int]]
    ) -> list[Recorded]:
        rows = list(answers)
        outcomes = record_all(self, audit_id, stage, rows)
        for row, outcome in zip(rows, outcomes, strict=True):
            control.log("record", audit=audit_id, shard=row[0], outcome=outcome)
        return outcomes

    def given_up(self: Ledger, audit_id: str, stage: str, shard_id: str, attempt: int, **keywords: Any) -> Failed:
        outcome = fail(self, audit_id, stage, shard_id, attempt, **keywords)
        control.log("fail", audit=audit_id, shard=shard_id, outcome=outcome, **keywords)
        return outcome

    def away(self: Pools, pool: str, *shard: str, **keywords: Any) -> Outage:
        outage = unreachable(self, pool, *shard, **keywords)
        control.log("away", pool=pool, since_s=outage.since_s)
        return outage

    Ledger.record_all, Ledger.fail, Pools.unreachable = recorded, given_up, away  # type: ignore[method-assign]
