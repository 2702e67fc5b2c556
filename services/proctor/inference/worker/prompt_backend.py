"""A backend of which only the asking of one prompt has to be written; the rest of the contract is kept here."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.worker.backend import (
    Answer,
    Probe,
    TrialFailure,
    answered,
    attempt,
    check_version,
    printable,
    prompt_bytes,
)
from proctor.inference.worker.window import Window, map_bounded


class PromptBackend(ABC):
    """One server that is asked prompt by prompt, as many at once as its window has places.

    Args:
        spec: the endpoint.
        window: bounds what is in flight.
    """

    def __init__(self, spec: EndpointSpec, *, window: Window | None = None) -> None:
        self.spec = spec
        self._window = window or Window()

    @abstractmethod
    async def answer(self, prompt: str, decoding: Decoding) -> Answer:
        """What the model says to a prompt.

        Raises:
            TrialFailure: there is no answer, with whether asking again may help. OSError counts as such a failure that
                may pass, and any other exception as one that does not.
        """

    async def probe(self) -> Probe:
        """Ask whether the endpoint serves the pinned model; see `Backend.probe`. By default nothing is asked."""
        return Probe(True, detail=f"which model {self.spec.url} serves is unchecked")

    async def close(self) -> None:  # noqa: B027 - most backends have nothing to give back
        """Give back what is open; by default nothing is."""

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        """One completion a trial, in order; see `Backend.complete`."""
        deadline = time.monotonic() + deadline_s
        session = await self.session(decoding, repeats=0, deadline_s=deadline_s)
        return await map_bounded(
            self._window,
            trials,
            lambda trial: len(trial.prompt),
            lambda trial: attempt(session, trial, self.spec, deadline),
        )

    async def session(
        self, decoding: Decoding, *, repeats: int, deadline_s: float, instead: bool = False
    ) -> PromptSession:
        """Trials one by one; see `Server.session`."""
        return PromptSession(self, decoding)


class PromptSession:
    """Trials that are asked with the same decoding."""

    def __init__(self, backend: PromptBackend, decoding: Decoding) -> None:
        self._backend = backend
        self._decoding = decoding

    async def ask(self, trial: Trial, *, deadline: float) -> Completion:
        """The completion of a trial; see `Session.ask`."""
        started, spec = time.monotonic(), self._backend.spec
        prompt_bytes(trial.prompt)
        try:
            async with asyncio.timeout(deadline - started):
                answer = await self._backend.answer(trial.prompt, self._decoding)
        except (TrialFailure, EndpointError):
            raise
        except TimeoutError:
            raise TrialFailure(f"no answer from {spec.url} before the deadline", retryable=True) from None
        except Exception as error:
            said = printable(f"{type(error).__name__}: {error}")
            raise TrialFailure(said, retryable=isinstance(error, OSError)) from error
        if answer.model_digest is not None:
            check_version(spec, answer.model_digest)
        latency_s = time.monotonic() - started
        return answered(trial, spec, answer, max_tokens=self._decoding.max_tokens, latency_s=latency_s)

    async def close(self) -> None:
        """Nothing is open: the backend keeps its connections."""
