"""How long an answer can be, by its ceiling of tokens."""

from __future__ import annotations

import pytest

from proctor.domain.answer_bounds import (
    MAX_ANSWER_BYTES,
    MAX_TOKEN_BYTES,
    MIN_ANSWER_BYTES,
    max_answer_bytes,
)
from proctor.domain.trial import Decoding


@pytest.mark.parametrize(
    ("max_tokens", "bound"),
    [
        (1, MIN_ANSWER_BYTES),
        (512, 65_536),
        (513, 65_664),
        (4096, 524_288),
        (16_384, MAX_ANSWER_BYTES),
        (131_072, MAX_ANSWER_BYTES),
    ],
)
def test_an_answer_may_have_the_longest_tokens_but_no_more_bytes_than_the_ceiling(max_tokens: int, bound: int) -> None:
    assert max_answer_bytes(max_tokens) == bound


def test_the_default_ceiling_of_tokens_has_the_lowest_bound() -> None:
    assert Decoding().max_tokens * MAX_TOKEN_BYTES == MIN_ANSWER_BYTES
