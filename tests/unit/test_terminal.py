"""What is printed cannot steer the terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.cli.terminal import clean, table


@given(st.text(alphabet=st.characters()))
def test_cleaned_text_holds_no_control_character_and_can_be_encoded(text: str) -> None:
    cleaned = clean(text)
    assert not [character for character in cleaned if unicodedata.category(character) in ("Cc", "Cs")
                and character not in "\t\n"]  # fmt: skip
    cleaned.encode("utf-8")


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs", "Cf"))))
def test_text_without_control_characters_stays_as_it_is(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[2J", "\x1b[31;1m", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1bPq\x1b\\", "\x9b2J", "\x1bc",
        "\x08", "\x7f", "\r", "\u202e", "\u2066", "\ud800",
    ],
)  # fmt: skip
def test_a_control_sequence_goes_whole(hostile: str) -> None:
    assert clean(f"a{hostile}b") == "ab"


def test_an_unfinished_sequence_leaves_no_escape_character() -> None:
    assert "\x1b" not in clean("a\x1b[") + clean("a\x1b") + clean("a\x1b]0;x")


def test_a_table_has_one_line_a_row() -> None:
    text = table(("name", "state"), [("a\nb", "\x1b[31mred"), ("long name", 3)])
    assert text == "name       state\na b        red\nlong name  3"
