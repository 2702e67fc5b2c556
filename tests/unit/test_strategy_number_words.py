"""Notation of numbers: the same multiset of numerals, and numbers that must keep their notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.item import Item
from proctor.perturbation.strategies.number_words import NUMBERS, WORDS, NumberWords
from proctor.text.numerals import numerals
from tests.unit.strategy_checks import candidates, gsm8k, questions, stories


@pytest.mark.parametrize(
    ("question", "reworded"),
    [
        ("Tom has 3 hats.", "Tom has three hats."),
        ("Tom has three hats.", "Tom has 3 hats."),
        ("12 hens lay eggs.", "Twelve hens lay eggs."),
        ("A 3-year-old ate forty-two eggs.", "A three-year-old ate 42 eggs."),
        ("Is it 99?", "Is it ninety-nine?"),
    ],
)
def test_a_number_takes_the_other_notation(question: str, reworded: str) -> None:
    assert reworded in questions(NumberWords(), question, seeds=20)


@pytest.mark.parametrize(
    "question",
    [
        "It costs $3 or 3.50.",
        "It is 5% of 1/2 and 2/3.",
        "Meet at 4 pm or 5:30.",
        "Solve 3 + 4 = 7 and 3x.",
        "See page 3 of chapter 4.",
        "He ran 5 km and 3 kg.",
        "Two thirds of twenty dozen.",
        "One hundred and five of two million.",
        "On June 5 it was 1 or 0.",
        "1. first\n2) second",
        "1999 and 100 and 05",
    ],
)
def test_numbers_that_belong_to_something_keep_their_notation(question: str) -> None:
    assert candidates(NumberWords(), question) == []


def test_words_and_numbers_are_each_others_inverse() -> None:
    assert {number: NUMBERS[word] for number, word in WORDS.items()} == {number: number for number in range(2, 100)}
    assert all(numerals(word) == {number: 1} for number, word in WORDS.items())


@given(stories(), st.integers(0, 99))
def test_the_multiset_of_numerals_is_kept_exactly(item: Item, seed: int) -> None:
    for one in candidates(NumberWords(), item.question, seed=seed):
        assert numerals(one.question) == numerals(item.question)
        assert one.question != item.question


def test_the_multiset_of_numerals_is_kept_exactly_in_gsm8k() -> None:
    for item, _ in gsm8k()[::3]:
        for one in candidates(NumberWords(), item.question, limit=2):
            assert numerals(one.question) == numerals(item.question)
