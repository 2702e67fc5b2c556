"""Asking the rewording model from this process, for a build that runs without a stack."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError
from proctor.domain.suite import Suite
from proctor.domain.trial import Completion, Decoding, Trial
from proctor.inference.worker.event_loop import EventLoopThread
from proctor.inference.worker.shards import Backends, ShardUnanswered
from proctor.router.submit.endpoints import resolve_paraphraser
from proctor.runtime.settings import Settings

#: Prompts that are asked for together: what is under way when the model fails is lost, and asked again.
_SHARD_PROMPTS: Final = 64
#: As long as an inference worker gives a shard.
_DEADLINE_S: Final = 720.0
_QUIET_S: Final = 2.0


class Desk:
    """Where the rewording model of a suite is asked; every trial gets a completion.

    Raises:
        EndpointError: when the model cannot be reached, or leaves more than a few prompts unanswered.
    """

    def __init__(
        self, endpoint: EndpointSpec, decoding: Decoding, backends: Backends, progress: Callable[[str], None]
    ) -> None:
        self._endpoint = endpoint
        self._decoding = decoding
        self._backends = backends
        self._progress = progress
        self._loop = EventLoopThread()
        self._asked = 0
        self._told = time.monotonic()

    def __call__(self, needed: Sequence[Trial]) -> Mapping[str, Completion]:
        """The completions of the trials by their identifiers."""
        answers: dict[str, Completion] = {}
        for start in range(0, len(needed), _SHARD_PROMPTS):
            shard = needed[start : start + _SHARD_PROMPTS]
            asking = self._backends.answer(self._endpoint, shard, self._decoding, deadline_s=_DEADLINE_S)
            try:
                completions = self._loop.run(asking)
            except ShardUnanswered as error:
                raise EndpointError(
                    f"the rewording model {self._endpoint.served_name!r} at {self._endpoint.url} did not answer: "
                    f"{error}; what was made so far is kept, and the same command goes on with it"
                ) from None
            answers.update((completion.trial_id, completion) for completion in completions)
            self._asked += len(shard)
            if time.monotonic() - self._told > _QUIET_S:
                self._told = time.monotonic()
                self._progress(f"asked {self._endpoint.served_name} for {self._asked:,} rewordings")
        return answers

    def close(self) -> None:
        """Give back the connection."""
        self._loop.run(self._backends.close())
        self._loop.stop()


@contextmanager
def desk_of(suite: Suite, settings: Settings, progress: Callable[[str], None]) -> Iterator[Desk | None]:
    """Where the suite's rewording model is asked; None where no strategy asks one. Connects when first asked.

    Args:
        suite: names the model and its endpoint.
        settings: the operator's endpoints.
        progress: told now and then how many rewordings were asked for.

    Raises:
        BadInputError: when the suite names no model, or an endpoint that is not known here.
    """
    endpoint = resolve_paraphraser(suite, settings, at_terminal=True)
    if endpoint is None:
        yield None
        return
    # One line a request would bury the progress.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    desk = Desk(endpoint, suite.perturbation.paraphraser.decoding, Backends(settings), progress)
    try:
        yield desk
    finally:
        desk.close()
