from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proctor.text.told_options import told_options

OPTIONS = ("organic solidarity", "mechanical solidarity", "gesellschaft", "anomie")
QUESTION = "Tönnies' gemeinschaft describes the same relations as:"


def test_the_options_that_a_rewording_tells_are_named_by_their_place() -> None:
    assert told_options(QUESTION, "Is Tönnies' gemeinschaft like mechanical solidarity?", OPTIONS) == [1]
    assert told_options(QUESTION, "Is Tönnies' gemeinschaft gesellschaft or anomie?", OPTIONS) == [2, 3]


def test_words_that_the_original_has_tell_nothing() -> None:
    original = "Which solidarity is gemeinschaft, mechanical or organic?"
    assert told_options(original, "Is gemeinschaft an organic or a mechanical solidarity, and which?", OPTIONS) == []


def test_a_word_with_another_ending_tells_its_option() -> None:
    assert told_options("It is caused by:", "Does racism cause it?", ("racist acts", "sexist acts")) == []
    assert told_options("It is caused by:", "Is it caused by racist actions?", ("racism", "sexism")) == [0]


def test_small_words_and_verdicts_tell_nothing() -> None:
    options = ("True, True", "False, False", "all of the above", "none")
    assert (
        told_options("Statement 1 | x. Statement 2 | y.", "Is it true of all that x? Is none above y?", options) == []
    )


@given(st.text(max_size=80), st.lists(st.text(max_size=20), max_size=4))
def test_the_question_itself_tells_no_option(question: str, options: list[str]) -> None:
    assert told_options(question, question, options) == []


@given(st.text(max_size=80), st.text(max_size=80), st.lists(st.text(max_size=20), max_size=4))
def test_only_options_that_exist_are_told(original: str, rewording: str, options: list[str]) -> None:
    told = told_options(original, rewording, options)
    assert told == sorted(set(told))
    assert set(told) <= set(range(len(options)))
