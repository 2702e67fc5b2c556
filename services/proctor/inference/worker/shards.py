"""Asking an endpoint a whole shard, and keeping the connections on which that happens."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from proctor.domain.backends import BACKENDS
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError, ProctorError
from proctor.domain.levels import MAX_FAILED_SHARE
from proctor.domain.log_origin import LOG_BACKEND
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.worker.backend import Backend, Probe, printable
from proctor.inference.worker.open_backend import open_backend
from proctor.runtime.settings import Settings
from proctor.runtime.traces import tracing
from proctor.runtime.traces.span import Attributes, Kind

logger = logging.getLogger(__name__)

#: Waits before the prompts that failed in passing are asked again: a server that restarts needs a few seconds.
_AGAIN_AFTER_S = (1.0, 4.0)
#: A worker meets few endpoints; past this many the least recently used connection is given back.
_MAX_OPEN = 8


class ShardUnanswered(EndpointError):
    """Too few trials of a shard got an answer, and asking again may help: the endpoint is at fault, no prompt.

    `unreachable` says that none got one, so that the endpoint may be away.
    """

    def __init__(self, message: str, *, unreachable: bool = False) -> None:
        super().__init__(message)
        self.unreachable = unreachable


class Backends:
    """The open backends of a worker process, one an endpoint. Its coroutines share one event loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: dict[EndpointSpec, Backend] = {}

    async def probe(self, spec: EndpointSpec) -> Probe:
        """Ask an endpoint whether it serves the pinned model."""
        with _naming_plugin(spec):
            return await (await self._backend(spec)).probe()

    async def answer(
        self,
        spec: EndpointSpec,
        trials: Sequence[Trial],
        decoding: Decoding,
        *,
        deadline_s: float,
        last_attempt: bool = True,
    ) -> list[Completion]:
        """One completion a trial, in order. Trials that failed in passing are asked again while there is time.

        A shard is recorded once, and no later attempt fills its holes: while there is one to come, it has none.

        Raises:
            ShardUnanswered: a trial failed in passing; in the last attempt, more than a twentieth of them did.
            EndpointError: the endpoint serves another model than the pinned one.
        """
        with _naming_plugin(spec):
            return await self._answered(spec, trials, decoding, deadline_s=deadline_s, last_attempt=last_attempt)

    async def _answered(
        self, spec: EndpointSpec, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float, last_attempt: bool
    ) -> list[Completion]:
        deadline = time.monotonic() + deadline_s
        backend = await self._backend(spec)
        completions = await _complete(backend, spec, trials, decoding, deadline_s=deadline_s)
        _check_order(spec, trials, completions)
        for wait_s in _AGAIN_AFTER_S:
            failed = [place for place, completion in enumerate(completions) if _failed_in_passing(completion)]
            if len(failed) == len(completions):
                raise ShardUnanswered(completions[0].error or "no trial was answered", unreachable=True)
            left_s = deadline - time.monotonic() - wait_s
            if not failed or left_s <= 0:
                break
            await asyncio.sleep(wait_s)
            again = [trials[place] for place in failed]
            repeated = await _complete(backend, spec, again, decoding, deadline_s=left_s)
            for place, completion in zip(failed, repeated, strict=True):
                completions[place] = completion
        failed = [place for place, completion in enumerate(completions) if _failed_in_passing(completion)]
        # Past the protocol channel's limit in the last attempt the shard is given up with the cause.
        if len(failed) > (MAX_FAILED_SHARE * len(completions) if last_attempt else 0):
            raise ShardUnanswered(
                f"{len(failed)} of {len(completions)} prompts got no answer: {completions[failed[0]].error}"
            )
        return completions

    async def close(self) -> None:
        """Give back every connection."""
        backends, self._open = list(self._open.values()), {}
        for backend in backends:
            await backend.close()

    async def _backend(self, spec: EndpointSpec) -> Backend:
        backend = self._open.pop(spec, None) or open_backend(spec, self._settings)
        self._open[spec] = backend
        if len(self._open) > _MAX_OPEN:
            oldest = next(iter(self._open))
            await self._open.pop(oldest).close()
        return backend


async def _complete(
    backend: Backend, spec: EndpointSpec, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float
) -> list[Completion]:
    """Ask a backend, in a span of its own: one for all the trials, of which there may be hundreds."""
    operation = "chat" if spec.chat else "text_completion"
    said: Attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": spec.backend,
        "gen_ai.request.model": spec.served_name,
        "gen_ai.request.max_tokens": decoding.max_tokens,
        "proctor.trials": len(trials),
    }
    with tracing.span(operation, said, kind=Kind.CLIENT) as span:
        completions = await backend.complete(trials, decoding, deadline_s=deadline_s)
        failed = sum([completion.error is not None for completion in completions])
        span.set(
            {
                "gen_ai.usage.input_tokens": sum([completion.input_tokens or 0 for completion in completions]),
                "gen_ai.usage.output_tokens": sum([completion.output_tokens or 0 for completion in completions]),
                "proctor.trials.failed": failed or None,
            }
        )
        if failed == len(completions):
            span.failed("unanswered")
        return completions


@contextmanager
def _naming_plugin(spec: EndpointSpec) -> Iterator[None]:
    """Have what the code of a plug-in's backend raises say whose it is; asking again may help."""
    try:
        yield
    except ProctorError:
        raise
    except Exception as error:
        if spec.backend in (*BACKENDS.built_in, LOG_BACKEND):
            raise
        whose = f"the backend {spec.backend!r} of {BACKENDS.origin(spec.backend)}"
        logger.exception("%s raised", whose)
        raise ShardUnanswered(printable(f"{whose} failed: {type(error).__name__}: {error}")) from error


def _check_order(spec: EndpointSpec, trials: Sequence[Trial], completions: Sequence[Completion]) -> None:
    """Raises EndpointError where a plug-in's backend did not answer the trials that it was asked, in their order."""
    if spec.backend in BACKENDS.built_in:
        return
    if [trial.trial_id for trial in trials] != [completion.trial_id for completion in completions]:
        raise EndpointError(
            f"the backend {spec.backend!r} of {BACKENDS.origin(spec.backend)} gave {len(completions)} completions for "
            f"{len(trials)} trials, or not in their order; have it give one a trial, as they stand"
        )


def _failed_in_passing(completion: Completion) -> bool:
    return completion.error is not None and completion.retryable
