"""The backend of answers that were taken from logs: no model is asked, and every trial gets what a log says of it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import ValidationError

from proctor.domain.canonical import bytes_digest
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError, ProctorError, StoreError
from proctor.domain.log_origin import LoggedAnswer, LoggedAnswers, LoggedChunk, answers_of
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.worker.backend import Answer, Probe, TrialFailure, answered, failed, printable, prompt_bytes
from proctor.runtime.artifacts.opening import open_artifacts
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.settings import Settings

#: What a report calls the server that answered.
SERVER: Final = "a log that Proctor did not produce"
#: A shard's trials are of neighbouring items, and the shards of both arms of the same.
_CHUNKS_KEPT: Final = 8


class LogBackend:
    """Answers from the artifact store. A prompt that is not the one of the log gets none."""

    def __init__(self, spec: EndpointSpec, settings: Settings) -> None:
        self._spec = spec
        self._store = open_artifacts(settings)
        self._chunk_of: Mapping[str, str] | None = None
        self._chunks: OrderedDict[str, Mapping[str, LoggedAnswer]] = OrderedDict()
        self._one_at_a_time = asyncio.Lock()

    async def probe(self) -> Probe:
        """Whether the answers are there. A log proves no weights."""
        try:
            async with self._one_at_a_time:
                await asyncio.to_thread(self._index)
        except StoreError as error:
            return Probe(False, server=SERVER, detail=str(error), unavailable=True)
        except ProctorError as error:
            return Probe(False, server=SERVER, detail=str(error))
        return Probe(True, server=SERVER)

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        """One completion a trial, in order; see `Backend.complete`."""
        async with self._one_at_a_time:
            return await asyncio.to_thread(lambda: [self._completion(trial, decoding) for trial in trials])

    async def close(self) -> None:
        """Let the answers go."""
        self._chunks.clear()

    def _completion(self, trial: Trial, decoding: Decoding) -> Completion:
        try:
            logged = self._logged(trial)
            said = logged.completion
            if said.error is not None:
                raise TrialFailure(said.error, retryable=False)
            if logged.prompt != bytes_digest(prompt_bytes(trial.prompt)):
                raise TrialFailure("the log answers another prompt than this one", retryable=False)
            answer = Answer(said.text, said.finish_reason, said.input_tokens, said.output_tokens)
            return answered(trial, self._spec, answer, max_tokens=decoding.max_tokens, latency_s=0.0)
        except TrialFailure as failure:
            return failed(trial, self._spec, failure)

    def _logged(self, trial: Trial) -> LoggedAnswer:
        chunk = self._index().get(trial.item_id)
        found = None if chunk is None else self._chunk(chunk).get(trial.trial_id)
        if found is None:
            raise TrialFailure("the log has no answer to this prompt", retryable=False)
        return found

    def _index(self) -> Mapping[str, str]:
        if self._chunk_of is None:
            try:
                index = get_model(self._store, answers_of(self._spec.url), LoggedAnswers)
            except ValidationError as error:
                raise EndpointError(printable(f"{self._spec.url} is no log that was taken in: {error}")) from None
            self._chunk_of = {item_id: part.chunk for part in index.answered for item_id in part.item_ids}
        return self._chunk_of

    def _chunk(self, digest: str) -> Mapping[str, LoggedAnswer]:
        found = self._chunks.pop(digest, None)
        if found is None:
            chunk = get_model(self._store, digest, LoggedChunk)
            found = {logged.completion.trial_id: logged for logged in chunk.answers}
        self._chunks[digest] = found
        if len(self._chunks) > _CHUNKS_KEPT:
            self._chunks.popitem(last=False)
        return found
