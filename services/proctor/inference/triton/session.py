"""Asking a model on a Triton server trial by trial, once it is known what the model is."""

from __future__ import annotations

import itertools
import time

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.triton.facts import ModelFacts
from proctor.inference.triton.pieces import AnswerBounds
from proctor.inference.triton.stream import Exchange
from proctor.inference.triton.tensors import finished
from proctor.inference.triton.wire import RequestTemplate
from proctor.inference.worker.backend import TrialFailure, answered, prompt_bytes


class TritonSession:
    """Trials of one call or shard: they share a stream, and what a request says beside its prompt."""

    def __init__(
        self,
        spec: EndpointSpec,
        facts: ModelFacts,
        decoding: Decoding,
        template: RequestTemplate,
        exchange: Exchange,
    ) -> None:
        self._spec = spec
        self._facts = facts
        self._decoding = decoding
        self._template = template
        self._exchange = exchange
        self._numbers = itertools.count()

    async def ask(self, trial: Trial, *, deadline: float) -> Completion:
        """See `Session.ask`."""
        started = time.monotonic()
        # A number, not the trial's id: two equal trials must not take each other's answer.
        prompt = prompt_bytes(trial.prompt)
        request = self._template.request(str(next(self._numbers)), prompt)
        repeated = len(prompt) if self._facts.repeats_the_prompt else 0
        bounds = AnswerBounds(self._decoding.max_tokens, repeated)
        try:
            answer = await self._exchange.ask(request, bounds, deadline=deadline)
        except TimeoutError:
            raise TrialFailure(f"no answer from {self._spec.url} before the deadline", retryable=True) from None
        if self._facts.repeats_the_prompt:
            answer = answer._replace(text=answer.text.removeprefix(trial.prompt))
        answer = finished(answer, self._facts, self._decoding)._replace(model_digest=self._facts.digest)
        latency_s = time.monotonic() - started
        return answered(trial, self._spec, answer, max_tokens=self._decoding.max_tokens, latency_s=latency_s)

    async def close(self) -> None:
        """See `Session.close`."""
        await self._exchange.close()
