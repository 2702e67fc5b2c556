"""A run as somebody's log tells it: one answer an item, under one extractor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: How a log says that an answer was cut at its token limit: OpenAI and vLLM, Anthropic and Inspect, Gemini, TGI.
CUT: Final = frozenset({"length", "max_tokens", "max_length", "model_length", "max_output_tokens"})
#: What an extractor that found nothing writes: nothing, or lm-evaluation-harness's word for it.
UNREAD: Final = frozenset({"", "[invalid]"})


@dataclass(frozen=True, slots=True)
class LoggedAnswer:
    """One item's row. `correct` is None for an error row, which is a missing answer and not a wrong one."""

    item_id: str
    correct: bool | None
    line: int
    """Where it stands in the file, from 1."""
    content: str | None = None
    """Digest of the question with the name of how it was made, `scheme:hex`; only equal schemes are compared."""
    answer: str | None = None
    text: str | None = None
    finish_reason: str | None = None
    tokens: int | None = None
    error: str | None = None

    @property
    def truncated(self) -> bool | None:
        """Whether it was cut at a token limit; None where the log does not say."""
        return None if self.finish_reason is None else self.finish_reason.lower() in CUT

    @property
    def unread(self) -> bool:
        """Whether the log says that the extractor found no answer in the text."""
        return self.answer is not None and self.answer.strip() in UNREAD


@dataclass(frozen=True, slots=True)
class RunLog:
    """Every answer of one run as one extractor read it; item ids are unique."""

    source: str
    """The file, as the user named it."""
    format: str
    extractor: str
    """The log's name of its filter or extractor."""
    answers: tuple[LoggedAnswer, ...]
