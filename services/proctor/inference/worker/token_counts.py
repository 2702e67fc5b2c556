"""Which reported token counts are believed. They are added up, cost money, and stop audits that have a ceiling."""

from __future__ import annotations

import logging
from typing import Final

from proctor.domain.answer_bounds import CHARACTER_BYTES

logger = logging.getLogger(__name__)

#: Tokens that an endpoint may count beside the prompt's and the answer's: its template and instructions, and reasoning
#: that it keeps to itself. As many as the highest ceiling that a suite can set.
UNSEEN_TOKENS: Final = 131_072

#: What was said once: an endpoint that counts so does it with every answer. Emptied now and then, so it has a bound.
_said: set[tuple[str, str]] = set()
_MAX_SAID: Final = 256


def believed_input(count: int | None, prompt: str, url: str) -> int | None:
    """The reported tokens of a prompt; None where no prompt of this length has so many. The log says so then.

    Every token of a prompt stands for a byte of it at least.

    Args:
        count: as the endpoint reported it, from 0; None where it did not.
        prompt: what was asked.
        url: the endpoint, for the log.
    """
    if count is None or count <= UNSEEN_TOKENS:
        return count
    return _believed(count, len(prompt) * CHARACTER_BYTES + UNSEEN_TOKENS, "input", url)


def believed_output(count: int | None, max_tokens: int, url: str) -> int | None:
    """The reported tokens of an answer; None where so many were not allowed, nor can have been thought beside it."""
    if count is None or count <= UNSEEN_TOKENS:
        return count
    return _believed(count, max_tokens + UNSEEN_TOKENS, "output", url)


def _believed(count: int, most: int, kind: str, url: str) -> int | None:
    if count <= most:
        return count
    if (url, kind) not in _said:
        if len(_said) >= _MAX_SAID:
            _said.clear()
        _said.add((url, kind))
        logger.warning(
            "%s reports %s %s tokens, and this request can have %s: counts past that are left out of what was used",
            url,
            f"{count:,}",
            kind,
            f"{most:,}",
        )
    return None
