"""What a backend is: the contract that every one keeps, and what they share in keeping it.

A backend asks one endpoint. It keeps the order of the trials, answers every one of them, and never raises for a
single trial: what went wrong stands in that trial's completion, with whether asking again may help.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from proctor.domain.answer_bounds import CHARACTER_BYTES, MIN_ANSWER_BYTES, max_answer_bytes
from proctor.domain.canonical import digest_matches
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError
from proctor.domain.trial import Completion, Decoding, FinishReason, Trial
from proctor.domain.weights import Weights
from proctor.inference.worker.token_counts import believed_input, believed_output
from proctor.runtime.logs.context import trial_in_hand

#: A prompt above this is refused before it is sent: no benchmark has one, and 64 of them travel at once.
MAX_PROMPT_BYTES = 1 << 20
#: Of what an endpoint says of a failure, in a completion that is kept.
MAX_ERROR_CHARACTERS = 1000
#: Characters that pass no bound, whatever the ceiling of tokens.
_SHORT: Final = MIN_ANSWER_BYTES // CHARACTER_BYTES


class Probe(NamedTuple):
    """What an endpoint says of itself. `model_digest` is None where it does not report its weights."""

    ok: bool
    model_digest: str | None = None
    server: str = ""
    detail: str = ""
    unavailable: bool = False
    """Whether it was not there at all, which may pass by itself."""
    weights: Weights | None = None
    """How the digest is known; None where it is what a digest that is reported is: declared."""


class Answer(NamedTuple):
    """What a model said to one prompt, before it is tied to a trial."""

    text: str
    finish_reason: FinishReason = "unknown"
    input_tokens: int | None = None
    output_tokens: int | None = None
    model_digest: str | None = None
    """Digest of the weights that answered, where the endpoint reports it with the answer."""


class TrialFailure(Exception):
    """One trial that got no answer. Stays inside the backends: it becomes the completion's `error`.

    `unavailable` says that the server is at fault and no prompt: it refused or broke the connection, or answered that
    it cannot serve now. `doubtful` says that it is taken for the prompt's fault by its words alone.
    """

    def __init__(self, message: str, *, retryable: bool, unavailable: bool = False, doubtful: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.unavailable = unavailable
        self.doubtful = doubtful

    def again(self) -> TrialFailure:
        """The same failure for another trial: an exception that is raised twice keeps the frames of both."""
        return TrialFailure(str(self), retryable=self.retryable, unavailable=self.unavailable, doubtful=self.doubtful)


class Backend(Protocol):
    """One endpoint, ready to be asked. All methods run on the event loop that opened it."""

    async def probe(self) -> Probe:
        """Ask whether the endpoint serves the pinned model. Never raises for an endpoint that does not."""
        ...

    async def complete(self, trials: Sequence[Trial], decoding: Decoding, *, deadline_s: float) -> list[Completion]:
        """One completion a trial, in the trials' order.

        Args:
            trials: what to ask; two trials may be equal, and each is asked.
            decoding: how answers are drawn.
            deadline_s: seconds from now after which every trial without an answer ends as a retryable error.

        Raises:
            EndpointError: the endpoint serves another model than the pinned one.
        """
        ...

    async def close(self) -> None:
        """Give back the connection."""
        ...


class Session(Protocol):
    """A server that was checked and can be asked trials one by one, until it is closed."""

    async def ask(self, trial: Trial, *, deadline: float) -> Completion:
        """The completion of a trial.

        Args:
            trial: what to ask.
            deadline: on the clock of `time.monotonic`.

        Raises:
            TrialFailure: there was no answer, or none before the deadline.
        """
        ...

    async def close(self) -> None:
        """End it; what is still being answered is cancelled on the server where the protocol can."""
        ...


@runtime_checkable
class Server(Backend, Protocol):
    """A backend of one server that can be asked trial by trial, so that several can share a shard's trials."""

    async def session(self, decoding: Decoding, *, repeats: int, deadline_s: float, instead: bool = False) -> Session:
        """Begin to ask.

        Args:
            decoding: how answers are drawn.
            repeats: how often a request may be sent again, over all trials of the session.
            deadline_s: seconds from now within which the server must have said what it is.
            instead: whether another server can be asked instead: then no request is sent again to one that is away.

        Raises:
            TrialFailure: the server cannot be asked now.
            EndpointError: it serves another model than the pinned one, or one that cannot be asked so.
        """
        ...


async def attempt(session: Session, trial: Trial, spec: EndpointSpec, deadline: float) -> Completion:
    """The completion of a trial, whatever comes of it."""
    started = time.monotonic()
    token = trial_in_hand.set(trial)
    try:
        return await session.ask(trial, deadline=deadline)
    except TrialFailure as failure:
        return failed(trial, spec, failure, latency_s=time.monotonic() - started)
    finally:
        trial_in_hand.reset(token)


def prompt_bytes(prompt: str) -> bytes:
    """A prompt as UTF-8.

    Raises:
        TrialFailure: it holds lone surrogates, which no protocol can carry, or is longer than MAX_PROMPT_BYTES.
    """
    try:
        data = prompt.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TrialFailure(
            f"the prompt is not valid Unicode: a lone surrogate at character {error.start}", retryable=False
        ) from None
    if len(data) > MAX_PROMPT_BYTES:
        raise TrialFailure(f"the prompt has {len(data):,} bytes, the limit is {MAX_PROMPT_BYTES:,}", retryable=False)
    return data


def check_length(length: int, max_tokens: int, *, unit: str = "bytes") -> None:
    """Raises TrialFailure: an answer is longer than its ceiling of tokens allows, so that it is none to this request.

    Args:
        length: of its text in UTF-8, or a lower bound of that.
        max_tokens: the ceiling.
        unit: what was counted.
    """
    limit = max_answer_bytes(max_tokens)
    if length > limit:
        raise TrialFailure(
            f"the answer has {length:,} {unit}, and {max_tokens:,} tokens have at most {limit:,} bytes: it is not kept "
            "(decoding_config.max_tokens)",
            retryable=False,
        )


def answered(trial: Trial, spec: EndpointSpec, answer: Answer, *, max_tokens: int, latency_s: float) -> Completion:
    """The completion of a trial that got an answer.

    Args:
        trial: what was asked.
        spec: the endpoint.
        answer: what it said.
        max_tokens: the ceiling with which it was asked.
        latency_s: how long that took.

    Raises:
        TrialFailure: the text is longer than so many tokens can be.
    """
    text = answer.text
    # Most answers are too short to pass any bound, whatever their alphabet.
    if len(text) > _SHORT:
        # A text that is too long even so is not encoded to find out by how much.
        check_length(len(text), max_tokens, unit="characters")
        if not text.isascii():
            check_length(len(text.encode("utf-8", "surrogatepass")), max_tokens)
    return Completion(
        trial_id=trial.trial_id,
        text=answer.text,
        finish_reason=answer.finish_reason,
        input_tokens=believed_input(answer.input_tokens, trial.prompt, spec.url),
        output_tokens=believed_output(answer.output_tokens, max_tokens, spec.url),
        model_digest=answer.model_digest,
        endpoint=spec.url,
        latency_ms=round(latency_s * 1000, 3),
    )


def failed(trial: Trial, spec: EndpointSpec, failure: TrialFailure, *, latency_s: float = 0.0) -> Completion:
    """The completion of a trial that got none."""
    return Completion(
        trial_id=trial.trial_id,
        finish_reason="error",
        endpoint=spec.url,
        latency_ms=round(latency_s * 1000, 3),
        error=printable(str(failure)),
        retryable=failure.retryable,
    )


def check_version(spec: EndpointSpec, reported: str) -> None:
    """Compare the weights that an endpoint reports with the pinned ones.

    Raises:
        EndpointError: they are others. What is pinned or reported in fewer digits is compared in those.
    """
    pinned = spec.model_version
    if pinned is None or digest_matches(pinned, reported) or digest_matches(reported, pinned):
        return
    raise EndpointError(
        f"{spec.url} serves {spec.served_name!r} with weights {printable(reported)[:80]}, the suite pins {pinned}; "
        "serve the pinned weights, or pin the ones that are to be audited"
    )


def printable(text: str) -> str:
    """Text from an endpoint on one line, valid, without control characters, and bounded."""
    kept = "".join(character if character.isprintable() else " " for character in text[: 2 * MAX_ERROR_CHARACTERS])
    return " ".join(kept.split())[:MAX_ERROR_CHARACTERS]
