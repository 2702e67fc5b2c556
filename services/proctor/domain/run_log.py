"""A run as somebody's log tells it: one answer an item, under one extractor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from proctor.domain.recorded_card import NOTHING_RECORDED, RecordedCard

#: How a log says that an answer was cut at its token limit: OpenAI and vLLM, Anthropic and Inspect, Gemini, TGI.
CUT: Final = frozenset({"length", "max_tokens", "max_length", "model_length", "max_output_tokens"})
#: Finish reasons that say nothing of how an answer ended.
SILENT: Final = frozenset({"", "unknown", "none", "null"})
#: What an extractor that found nothing writes: nothing, or lm-evaluation-harness's word for it.
UNREAD: Final = frozenset({"", "[invalid]"})
#: Settings of one log, each that is different. One that has more was asked in as many ways.
MAX_SETTINGS: Final = 8


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One item's row. `correct` is None for an error row, which is a missing answer and not a wrong one."""

    item_id: str
    correct: bool | None
    line: int
    """Where it stands in the file, from 1: its line, or its place among the rows of a file without lines."""
    content: str | None = None
    """Digest of the question with the name of how it was made, `scheme:hex`; only equal schemes are compared."""
    answer: str | None = None
    """What the extractor read."""
    text: str | None = None
    """What the model wrote, or the first of what it wrote where it was asked several times."""
    finish_reason: str | None = None
    tokens: int | None = None
    """Tokens of `text`."""
    error: str | None = None
    question: str | None = None
    expected: str | None = None
    """The target as the log tells it: an answer, or a worked solution that ends in one."""
    samples: tuple[str, ...] = ()
    """Further texts to the same question, beside `text`."""
    prompt: str | None = None
    """All that the model was sent, where it was one text; None where the log does not say so."""
    trial: str | None = None
    """The trial of a suite of which an exported task says that it is this row."""
    input_tokens: int | None = None

    @property
    def truncated(self) -> bool | None:
        """Whether its finish reason says that it was cut at a token limit; None where the log gives none that does."""
        reason = "" if self.finish_reason is None else self.finish_reason.strip().lower()
        return None if reason in SILENT else reason in CUT

    @property
    def unread(self) -> bool:
        """Whether the log says that the extractor found no answer in the text."""
        return self.answer is not None and self.answer.strip() in UNREAD


@dataclass(frozen=True, slots=True)
class AskedWith:
    """Settings under which a log says that answers were drawn, from a row on."""

    line: int
    values: Mapping[str, Any]
    """By the names of `Decoding` (temperature, top_p, max_tokens, seed, stop as a list), and `chat`, whether the prompt
    was a message of a chat. What is not recorded is left out."""


@dataclass(frozen=True, slots=True)
class RunLog:
    """Every answer of one run as one extractor read it; item ids are unique."""

    source: str
    """The file, as the user named it."""
    format: str
    extractor: str
    """The log's name of its filter or extractor."""
    answers: tuple[LoggedAnswer, ...]
    token_limit: int | None = None
    """Most tokens that an answer could have; None where the log does not say."""
    regraded: bool = False
    """Whether Proctor graded the texts again; otherwise the grades are the log's own."""
    model: str | None = None
    """The model as the log calls it."""
    asked_with: tuple[AskedWith, ...] = ()
    """The settings that the log records, each that is different once; empty where it records none."""
    card: RecordedCard = NOTHING_RECORDED
    """The protocol card as far as the log records it."""

    def cut(self, answer: LoggedAnswer) -> bool | None:
        """Whether an answer was cut at a token limit: by its finish reason, else by its tokens and the limit.

        None where the log gives neither. Never by the text: one that breaks off may have been written so. An answer
        that ended just at the limit counts as cut where only tokens are known.
        """
        if answer.truncated is not None or answer.tokens is None or self.token_limit is None:
            return answer.truncated
        return answer.tokens >= self.token_limit
