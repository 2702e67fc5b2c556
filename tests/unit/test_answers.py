"""Questions that were open and became ones that yes or no answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.item import Item, Rejection
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import YES_OR_NO, screen
from proctor.perturbation.candidate import Candidate
from proctor.text.answers import asks_yes_or_no, keeps_open

OPTIONS = ("working families", "self-interest", "issues", "false consciousness")


@pytest.mark.parametrize(
    "text",
    [
        "Did Butler propose that support stemmed from working families?",
        "According to Stone, did the family begin to take shape before then?",
        "Hospitals became trusts during the reform, right?",
        "A story is told. Is it true that x is 3?",
    ],
)
def test_a_question_of_fact_is_answered_by_yes_or_no(text: str) -> None:
    assert asks_yes_or_no(text)


@pytest.mark.parametrize(
    "text",
    [
        "What did Butler propose?",
        "Butler proposed that:",
        "Is it working families, self-interest or issues?",
        "Can you name the right order of these?",
        "Should G be such a group, then what is G called?",
        "For a city, how did the approach describe groups?",
        "Is the sky blue? Then name the cause.",
        "",
    ],
)
def test_an_open_question_is_not(text: str) -> None:
    assert not asks_yes_or_no(text)


def test_an_open_stem_may_not_become_a_question_that_no_option_answers() -> None:
    original, closed = "Support for Labour arose from:", "Did support for Labour arise from working families?"
    assert not keeps_open(original, closed, OPTIONS)
    assert keeps_open(original, closed, ("Yes, it did", "No, it did not"))
    assert keeps_open(original, closed, ())
    assert keeps_open("Did support for Labour arise from anger?", closed, OPTIONS)
    item = Item(item_id="i", question=original, choices=OPTIONS, target=OPTIONS[0])
    rejected = screen(item, Candidate(closed, OPTIONS, "s", 1, {}), PerturbationSection())
    assert isinstance(rejected, Rejection)
    assert rejected.reason == YES_OR_NO


@given(st.text(max_size=300), st.lists(st.text(max_size=20), max_size=5))
def test_a_text_keeps_open_what_it_asks_itself(text: str, options: list[str]) -> None:
    assert keeps_open(text, text, options)
