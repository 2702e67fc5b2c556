"""Typos: one slip a word, in words on which nothing hangs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.item import Item
from proctor.perturbation.strategies.guarded import carries_an_invariant
from proctor.perturbation.strategies.typo import Typo
from proctor.text import relations, units
from proctor.text.surface import levenshtein
from tests.unit.strategy_checks import candidates, stories


@given(stories(), st.integers(0, 99), st.sampled_from([0.0, 0.2, 1.0]))
def test_a_slip_is_one_swap_or_one_key_in_a_long_word_and_its_ends_stay(item: Item, seed: int, rate: float) -> None:
    for one in candidates(Typo(rate), item.question, seed=seed):
        old, new = item.question.split(), one.question.split()
        changed = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
        assert len(changed) == one.provenance["typo"]["slips"] >= 1
        for before, after in changed:
            assert len(before) == len(after) >= 5
            assert levenshtein(before, after) <= 2
            assert (before[0], before[-1]) == (after[0], after[-1])
            assert not any(character.isdigit() or character.isupper() for character in before)


def test_the_rate_is_the_share_of_the_words_that_can_take_one() -> None:
    question = " ".join(["gardener waters flowers behind wooden fences using copper kettle while singing"] * 1)
    for rate, slips in ((0.0, 1), (0.3, 3), (1.0, 10)):
        made = candidates(Typo(rate), question, limit=1)[0]
        assert abs(made.provenance["typo"]["slips"] - slips) <= 1


@pytest.mark.parametrize(
    "question",
    [
        "Seven dozen minutes, never fewer than twenty kilometers without thirds.",
        "Anna met Laura.",
        "A cat sat on my mat.",
        '`while` and "house" and https://example.org/house',
        "DON'T SHOUT o'clock farmer's",
    ],
)
def test_words_on_which_something_hangs_are_spelt_right(question: str) -> None:
    assert candidates(Typo(1.0), question) == []


def test_words_of_the_options_are_spelt_right() -> None:
    assert candidates(Typo(1.0), "Which planet?", choices=("this planet which", "x"), target="x") == []


def test_the_guarded_words_hold_all_units_and_words_of_direction() -> None:
    spelt = {word for word in units._UNITS if len(word) >= 5 and word.isascii() and word.isalpha()}
    spelt |= {word for word in relations._UP | relations._DOWN if len(word) >= 5}
    assert not {word for word in spelt if not carries_an_invariant(word)}
