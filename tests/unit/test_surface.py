"""Surface distance and normal forms of text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.text.normalise import has_lone_surrogate, normalise, words
from proctor.text.surface import containment, levenshtein, token_overlap, word_edit_distance


def _levenshtein_by_definition(left: Sequence[str], right: Sequence[str]) -> int:
    """Wagner and Fischer's table, written for clarity."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(right, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


def _containment_by_definition(left: str, right: str) -> float:
    grams = left.split()
    runs = [" ".join(grams[n : n + 5]) for n in range(len(grams) - 4)]
    return sum(f" {run} " in f" {right} " for run in runs) / len(runs)


@given(st.lists(st.sampled_from("abc"), min_size=5, max_size=40), st.lists(st.sampled_from("abc"), max_size=40))
def test_containment_is_the_share_of_runs_of_five_words_that_the_other_text_holds(
    left: list[str], right: list[str]
) -> None:
    texts = " ".join(left), " ".join(right)
    assert containment(*texts) == pytest.approx(_containment_by_definition(*texts))


@pytest.mark.parametrize(
    ("text", "rewording", "share"),
    [
        ("How old is Ann?", "Say: how old is Ann, then?", 1.0),
        ("How old is Ann?", "What is the age of Ann?", 0.0),
        ("one two three four five six", "well, one two three four five", 0.5),
        ("?!", "x", 1.0),
        ("x", "", 0.0),
    ],
)
def test_what_a_rewording_adds_does_not_lower_containment(text: str, rewording: str, share: float) -> None:
    assert containment(text, rewording) == share


_tokens = st.lists(st.sampled_from("abcde"), max_size=80)


@given(_tokens, _tokens)
def test_edit_distance_agrees_with_the_table_of_its_definition(left: list[str], right: list[str]) -> None:
    assert levenshtein(left, right) == _levenshtein_by_definition(left, right)


@given(st.text(max_size=100), st.text(max_size=100))
def test_surface_measures_are_shares_and_symmetric(left: str, right: str) -> None:
    for measure in (token_overlap, word_edit_distance):
        assert 0.0 <= measure(left, right) <= 1.0
        assert measure(left, right) == measure(right, left)


@given(st.text(max_size=100))
def test_a_text_is_at_no_distance_from_itself(text: str) -> None:
    assert token_overlap(text, text) == 1.0
    assert word_edit_distance(text, text) == 0.0


def test_shuffled_options_lower_the_overlap_of_a_long_question_by_as_much_as_of_a_short_one() -> None:
    question = " ".join(f"word{n}" for n in range(100))
    assert token_overlap(question, question, ("a", "b", "c"), ("c", "b", "a")) == pytest.approx(0.5)


def test_case_quotes_width_and_space_are_no_difference() -> None:
    assert normalise("Janet\u2019s  \uff24ucks\n") == normalise("janet's ducks")
    assert words("Don\u2019t stop, \u6771\u4eac!") == ("don't", "stop", "\u6771", "\u4eac")


def test_half_a_surrogate_pair_is_seen() -> None:
    assert has_lone_surrogate("a\ud800b")
    assert not has_lone_surrogate("a\U0001f600b")
