"""Asking a model on a Triton server trial by trial, once it is known what the model is."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from typing import Final

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.triton.facts import ModelFacts
from proctor.inference.triton.pieces import AnswerBounds
from proctor.inference.triton.stream import Exchange
from proctor.inference.triton.tensors import finished
from proctor.inference.triton.wire import RequestTemplate
from proctor.inference.worker.backend import Answer, TrialFailure, answered, check_version, prompt_bytes
from proctor.text.chat_template import ChatTemplateError, rendered

#: How long a refusal whose words are not known is doubted. A server that begins to end, or whose engine died, is gone
#: or says so by then.
_DOUBT_S: Final = 1.0
#: What is asked to be told the weights.
_ASKED: Final = b"?"
#: What differs between the same words said to two requests.
_NUMBERS: Final = re.compile(r"\d+")


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
        self._believed = set[str]()

    async def ask(self, trial: Trial, *, deadline: float) -> Completion:
        """See `Session.ask`."""
        started = time.monotonic()
        sent = self._sent(trial)
        prompt = prompt_bytes(sent)
        repeated = len(prompt) if self._facts.repeats_the_prompt else 0
        bounds = AnswerBounds(self._decoding.max_tokens, repeated)
        try:
            answer = await self._answer(prompt, bounds, deadline)
        except TimeoutError:
            raise TrialFailure(f"no answer from {self._spec.url} before the deadline", retryable=True) from None
        if self._facts.repeats_the_prompt:
            answer = answer._replace(text=answer.text.removeprefix(sent))
        answer = finished(answer, self._facts, self._decoding)
        answer = answer._replace(model_digest=self._held(answer.model_digest))
        latency_s = time.monotonic() - started
        return answered(trial, self._spec, answer, max_tokens=self._decoding.max_tokens, latency_s=latency_s)

    async def stated_weights(self, *, deadline: float) -> str | None:
        """The digest that the model computed from the files that it loaded; None where it says none.

        Raises:
            TrialFailure: there was no answer.
            EndpointError: it loaded other weights than the pinned or the declared ones.
        """
        bounds = AnswerBounds(self._decoding.max_tokens, len(_ASKED) if self._facts.repeats_the_prompt else 0)
        try:
            stated = (await self._asked(_ASKED, bounds, deadline)).model_digest
        except TimeoutError:
            raise TrialFailure(f"no answer from {self._spec.url} before the deadline", retryable=True) from None
        self._held(stated)
        return stated

    def _held(self, stated: str | None) -> str | None:
        """The digest of the weights that answered: what the model computed, else what its configuration declares."""
        declared = self._facts.digest
        if stated is None:
            return declared
        check_version(self._spec, stated)
        if declared is not None and declared != stated:
            raise EndpointError(
                f"{self._spec.served_name!r} on {self._spec.url} loaded the weights {stated}, and its configuration "
                f"declares {declared}; load the model anew"
            )
        return stated

    def _sent(self, trial: Trial) -> str:
        """The text that stands for a trial's prompt, or message."""
        template = self._spec.chat_template
        if not self._spec.chat or template is None:
            return trial.prompt
        try:
            return rendered(template, trial.prompt)
        except ChatTemplateError as error:
            raise TrialFailure(str(error), retryable=False) from None

    async def _answer(self, prompt: bytes, bounds: AnswerBounds, deadline: float) -> Answer:
        """What the model says, asked once more where it refuses for the first time in words that are not known.

        A stream brings a text and no status code, and a single error of a server that is on its way out would stand as
        the model's answer for ever. A refusal of the prompt is said again.
        """
        try:
            return await self._asked(prompt, bounds, deadline)
        except TrialFailure as failure:
            words = _NUMBERS.sub("", str(failure))
            if not failure.doubtful or words in self._believed or time.monotonic() + _DOUBT_S >= deadline:
                raise
        await asyncio.sleep(_DOUBT_S)
        try:
            return await self._asked(prompt, bounds, deadline)
        except TrialFailure as failure:
            if failure.doubtful:
                self._believed.add(_NUMBERS.sub("", str(failure)))
            raise

    async def _asked(self, prompt: bytes, bounds: AnswerBounds, deadline: float) -> Answer:
        # A number, not the trial's id: two equal trials must not take each other's answer.
        request = self._template.request(str(next(self._numbers)), prompt)
        return await self._exchange.ask(request, bounds, deadline=deadline)

    async def close(self) -> None:
        """See `Session.close`."""
        await self._exchange.close()
