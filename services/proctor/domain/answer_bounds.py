"""How long an answer can be that a model gave within its ceiling of tokens."""

from __future__ import annotations

from typing import Final

#: The longest character of UTF-8.
CHARACTER_BYTES: Final = 4
#: The longest token of the tokenisers in use: 128 spaces are one token of OpenAI's and of Llama 3's.
MAX_TOKEN_BYTES: Final = 128
#: The bound of 512 tokens, the default ceiling, is also that of a lower one: an endpoint of the article's contract is
#: never told the ceiling, and bytes that are no text come back as three each.
MIN_ANSWER_BYTES: Final = 64 << 10
#: 16 bytes a token at the highest ceiling that a suite can set (131,072 tokens). Prose and code have four, and no text
#: consists of the longest tokens alone.
MAX_ANSWER_BYTES: Final = 2 << 20


def max_answer_bytes(max_tokens: int) -> int:
    """Bytes in UTF-8 that a text of so many tokens may have: a longer one is no answer to what was asked.

    Never less than MIN_ANSWER_BYTES, and never more than MAX_ANSWER_BYTES.
    """
    return min(max(max_tokens * MAX_TOKEN_BYTES, MIN_ANSWER_BYTES), MAX_ANSWER_BYTES)
