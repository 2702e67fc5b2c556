"""Batches of texts for a forward pass."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proctor.perturbation.encoder.batches import batches

_TOKENS = st.lists(st.integers(0, 30), max_size=40)


@given(_TOKENS, st.integers(1, 100))
def test_every_text_is_in_one_batch(tokens: list[int], most: int) -> None:
    assert sorted(place for batch in batches(tokens, most) for place in batch) == list(range(len(tokens)))


@given(_TOKENS, st.integers(1, 100))
def test_no_batch_is_larger_than_allowed_when_each_text_counts_as_its_longest(tokens: list[int], most: int) -> None:
    for batch in batches(tokens, most):
        assert len(batch) == 1 or len(batch) * max(tokens[place] for place in batch) <= most


@given(_TOKENS, st.integers(1, 100))
def test_a_batch_that_could_hold_the_next_text_does(tokens: list[int], most: int) -> None:
    for batch in list(batches(tokens, most))[:-1]:
        assert (len(batch) + 1) * tokens[batch[0]] > most


def test_texts_of_like_length_are_together_the_longest_first() -> None:
    assert list(batches([2, 9, 2, 8], 18)) == [[1, 3], [0, 2]]


def test_no_texts_make_no_batch() -> None:
    assert list(batches([], 10)) == []
