"""Answers that Proctor did not ask for: where logs say that they came from, and what of the asking they record.

What a log does not record is `unknown`, and never taken from the suite: a log is somebody else's word, and what it
leaves out it has not said.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.suite import Suite
from proctor.domain.trial import Completion

#: On a protocol card, of a setting that the logs do not record.
UNKNOWN: Final = "unknown"
#: How an endpoint spec names what answers from logs. No backend of the registry: a suite that names it is refused.
LOG_BACKEND: Final = "log"
_SCHEME: Final = "log:"
#: Settings of the asking that a log may record, by the names of `Decoding`.
DECODING_SETTINGS: Final = ("temperature", "top_p", "max_tokens", "seed", "stop")
#: Whether the prompt was sent as a message of a chat.
CHAT: Final = "chat"

Recorded = Literal["recorded", "partly", "unknown"]
"""Whether every answer of the logs tells something, some do, or none."""


class LogOrigin(Frozen):
    """Where an audit's answers came from that were taken from logs."""

    format: str
    """Whose logs they are."""
    files: tuple[str, ...]
    """SHA-256 of each log, sorted."""
    model: str | None
    """The model as the logs call it; None where they do not."""
    settings: tuple[str, ...]
    """The settings that every log records; their values are the suite's, or the logs would have been refused."""
    finish_reasons: Recorded
    token_counts: Recorded
    answers: str
    """Digest of the `LoggedAnswers`."""
    n_answers: int

    @property
    def url(self) -> str:
        """The endpoint under which an inference worker finds the answers."""
        return f"{_SCHEME}{self.answers}"

    def on_card(self) -> dict[str, Any]:
        """What the protocol card says of the run."""
        return self.model_dump(mode="json", exclude={"answers", "settings"})


def answers_of(url: str) -> str:
    """The digest of the `LoggedAnswers` that an endpoint of logs names."""
    return url.removeprefix(_SCHEME)


class LoggedAnswer(Frozen):
    """What a log says came back for a trial."""

    prompt: str
    """Digest of the prompt that was sent, as `bytes_digest` of its UTF-8."""
    completion: Completion


class LoggedChunk(Frozen):
    """The answers to some items, all of each item's."""

    answers: tuple[LoggedAnswer, ...]


class ChunkOfItems(Frozen):
    """Which items a `LoggedChunk` answers."""

    item_ids: tuple[str, ...]
    chunk: str
    """Digest of the LoggedChunk."""


class LoggedAnswers(Frozen):
    """Every answer that logs have for an audit, by reference."""

    # The name by which forgetting knows what was said (`proctor.router.retention.forgetting`).
    answered: tuple[ChunkOfItems, ...] = Field(min_length=1)


def settings_of(suite: Suite) -> dict[str, Any]:
    """What a log of a suite's prompts has to say of their asking, as far as it says anything."""
    plain = suite.decoding.plain()
    return {name: plain[name] for name in DECODING_SETTINGS} | {CHAT: suite.prompt.chat_template == "user"}
