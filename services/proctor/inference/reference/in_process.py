"""The backend for machines on which Triton does not run: the same reference models, inside the inference worker."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError, ProctorError
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.domain.weights import Weights
from proctor.inference.reference.sampling import generate, parse_sampling
from proctor.inference.reference.triton_repository import VERSION
from proctor.inference.triton.vllm import sampling_parameters
from proctor.inference.worker.backend import (
    Answer,
    Probe,
    TrialFailure,
    answered,
    check_version,
    failed,
    printable,
    prompt_bytes,
)
from proctor.runtime.settings import Settings

if TYPE_CHECKING:
    from proctor.inference.reference.model import Generation, ReferenceModel

SERVER = "in-process (no Triton on this machine)"
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
#: As many prompts a forward pass as the Triton model takes; the deadline is looked at between two passes.
_BATCH = 64


class InProcessBackend:
    """A reference model of the bundle, loaded when first asked."""

    def __init__(self, spec: EndpointSpec, settings: Settings) -> None:
        self._spec = spec
        self._bundle = settings.bundle
        self._model: ReferenceModel | None = None
        self._digest: str | None = None
        self._one_at_a_time = asyncio.Lock()

    async def probe(self) -> Probe:
        """Load the model and compare its weights with the pinned digest."""
        try:
            await self._loaded()
        except ProctorError as error:
            return Probe(False, self._digest, SERVER, str(error))
        return Probe(True, self._digest, SERVER, weights=Weights.PROVEN)

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        """One completion a trial, in order; see `Backend.complete`."""
        deadline = time.monotonic() + deadline_s
        model = await self._loaded()
        completions: list[Completion] = []
        for start in range(0, len(trials), _BATCH):
            batch = trials[start : start + _BATCH]
            if time.monotonic() > deadline:
                late = TrialFailure("the model did not get to this prompt before the deadline", retryable=True)
                completions += [failed(trial, self._spec, late) for trial in batch]
            else:
                async with self._one_at_a_time:
                    completions += await asyncio.to_thread(self._answer, model, batch, decoding)
        return completions

    async def close(self) -> None:
        """Let the model go."""
        self._model = None

    async def _loaded(self) -> ReferenceModel:
        async with self._one_at_a_time:
            if self._model is None:
                self._model = await asyncio.to_thread(self._load)
            return self._model

    def _load(self) -> ReferenceModel:
        try:
            from proctor.inference.reference.model import ReferenceModel, weights_digest
        except ModuleNotFoundError as error:
            raise EndpointError(
                f"a model cannot be served in process, because the package {error.name!r} is missing; "
                "install proctor[reference]"
            ) from error
        name = self._spec.served_name
        if self._spec.chat:
            raise EndpointError(f"the model {printable(name)[:80]!r} has no chat template; set chat_template to 'none'")
        if not _MODEL_NAME.fullmatch(name):
            raise EndpointError(
                f"{printable(name)[:80]!r} is not the name of a model of the bundle: letters, digits, '.', '_', '-'"
            )
        folder = self._bundle / "models" / name / VERSION
        self._digest = weights_digest(folder)
        check_version(self._spec, self._digest)
        return ReferenceModel.load(folder)

    def _answer(self, model: ReferenceModel, trials: Sequence[Trial], decoding: Decoding) -> list[Completion]:
        started = time.monotonic()
        answers: dict[int, Generation] = {}
        failures: dict[int, TrialFailure] = {}
        try:
            sampling = parse_sampling(sampling_parameters(decoding))
            for place, trial in enumerate(trials):
                try:
                    prompt_bytes(trial.prompt)
                except TrialFailure as failure:
                    failures[place] = failure
            asked = [place for place in range(len(trials)) if place not in failures]
            generated = generate(model, [(trials[place].prompt, sampling) for place in asked])
            answers = dict(zip(asked, generated, strict=True))
        except ProctorError as error:
            failures = {place: TrialFailure(str(error), retryable=False) for place in range(len(trials))}
        latency_s = time.monotonic() - started
        return [
            failed(trial, self._spec, failures[place], latency_s=latency_s)
            if place in failures
            else answered(
                trial,
                self._spec,
                Answer(*answers[place], self._digest),
                max_tokens=decoding.max_tokens,
                latency_s=latency_s,
            )
            for place, trial in enumerate(trials)
        ]
