"""Batches of texts for a forward pass."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proctor.perturbation.encoder.batches import batches

_TEXTS = st.lists(st.text(max_size=30), max_size=40)


@given(_TEXTS, st.integers(1, 100))
def test_every_text_is_in_one_batch(texts: list[str], most: int) -> None:
    assert sorted(place for batch in batches(texts, most) for place in batch) == list(range(len(texts)))


@given(_TEXTS, st.integers(1, 100))
def test_no_batch_is_larger_than_allowed_when_each_text_counts_as_its_longest(texts: list[str], most: int) -> None:
    for batch in batches(texts, most):
        longest = max(len(texts[place].encode("utf-8", "replace")) for place in batch)
        assert len(batch) == 1 or len(batch) * longest <= most


@given(_TEXTS, st.integers(1, 100))
def test_a_batch_that_could_hold_the_next_text_does(texts: list[str], most: int) -> None:
    made = list(batches(texts, most))
    for batch in made[:-1]:
        longest = len(texts[batch[0]].encode("utf-8", "replace"))
        assert (len(batch) + 1) * longest > most


def test_texts_of_like_length_are_together_the_longest_first() -> None:
    assert list(batches(["bb", "a" * 9, "cc", "dddddddd"], 18)) == [[1, 3], [0, 2]]


def test_no_texts_make_no_batch() -> None:
    assert list(batches([], 10)) == []
