"""Formats: the same words in another setting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.item import Item
from proctor.perturbation.strategies.formatting import Formatting
from proctor.text.normalise import words
from tests.unit.strategy_checks import candidates, questions, stories


@given(stories(), st.integers(0, 99))
def test_words_and_their_order_stay(item: Item, seed: int) -> None:
    for one in candidates(Formatting(), item.question, seed=seed):
        assert words(one.question) == words(item.question)


def test_every_change_is_made_by_some_seed() -> None:
    changes = {
        name
        for apostrophe in ("'", "\u2019")
        for seed in range(20)
        for one in candidates(Formatting(), f"Anna{apostrophe}s hens, ducks and geese lay. How many do?", seed=seed)
        for name in one.provenance["format"]["changes"]
    }
    assert changes == {
        "straight_quotes", "curly_apostrophes", "lower_case", "upper_case", "no_comma_space", "no_final_mark",
        "spaced_final_mark", "one_sentence_a_line", "blank_lines", "two_spaces",
    }  # fmt: skip


@pytest.mark.parametrize("question", ["What is NASA?", "Take plan B, not the iPhone?", "Is `x` A?", "a\nb C?"])
def test_case_that_means_something_stays(question: str) -> None:
    assert all(
        set(one) & set("NBPAC") == set(question) & set("NBPAC") for one in questions(Formatting(), question, seeds=20)
    )


def test_layout_that_means_something_stays() -> None:
    table = "a\t1\nb\t2\nWhich is more?"
    assert all("a\t1\nb\t2\n" in one for one in questions(Formatting(), table))


def test_numbers_keep_their_commas() -> None:
    assert all(
        "1,360" in one and "3, 4" in one
        for one in questions(Formatting(), "Of 1,360 take 3, 4, big, red. Why?", seeds=30)
    )
