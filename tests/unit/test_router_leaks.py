"""Whether a message gives an answer away: what it says beyond the list of options that it has to transmit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.grading.router_leaks import read_off, stated_option

CHOICES = ("Paris", "Rome", "Berlin", "Madrid")
QUESTION = "What is the capital of France?"
LIST = "A. Paris\nB. Rome\nC. Berlin\nD. Madrid"


def stated(message: str, question: str = QUESTION) -> str | None:
    return stated_option(message, question, CHOICES)


@pytest.mark.parametrize(
    "message",
    [
        f"Question: {QUESTION}\nOptions:\n{LIST}",
        f"Question: {QUESTION}\nOptions:\n{LIST}\nAnswer:",
        f"{QUESTION} Options: A. Paris, B. Rome, C. Berlin, D. Madrid",
        f"{QUESTION}\nOptions: A. Paris B. Rome C. Berlin D. Madrid",
        f"{QUESTION} (A) Paris (B) Rome (C) Berlin (D) Madrid",
        f"Pick one of A, B, C or D.\n{LIST}",
        f"Choose the best answer:\n{LIST}",
        "**A** Paris, **B** Rome",
        "Where is the Eiffel tower? Choose from Paris, Rome, Berlin and Madrid.",
        f"{QUESTION}\nA. Paris\nC. Berlin",
        "",
    ],
)
def test_a_message_that_only_transmits_states_nothing(message: str) -> None:
    assert stated(message) is None


@pytest.mark.parametrize(
    ("message", "option"),
    [
        (f"{QUESTION}\n{LIST}\nThe answer is A.", "Paris"),
        (f"{QUESTION}\n{LIST}\nThe correct option: B", "Rome"),
        ("A. Paris B. Rome C. Berlin D. Madrid. The answer is C. Berlin", "Berlin"),
        (f"{QUESTION}\nA. the French one\nB. the Roman one\nThe correct answer is B. Rome", "Rome"),
        (f"{QUESTION}\n{LIST.replace('A. Paris', 'A. Paris (correct)')}", "Paris"),
        (f"{QUESTION}\n{LIST.replace('D. Madrid', 'D. Madrid ✓')}", "Madrid"),
        (f"{QUESTION}\nC. Berlin", "Berlin"),
        ("A", "Paris"),
        ("Paris", "Paris"),
        (f"{QUESTION} It lies on the Seine, as all of Paris does.\n{LIST}", "Paris"),
    ],
)
def test_an_answer_beside_the_list_is_read_right_or_wrong(message: str, option: str) -> None:
    assert stated(message) == option


def test_an_option_that_the_question_names_itself_is_no_answer() -> None:
    question = "Rome lies south of which city?"
    assert stated(f"{question}\n{LIST}", question) is None
    assert stated(f"{question}\n{LIST}\nThe answer is C.", question) == "Berlin"


@given(st.text(max_size=200))
def test_any_text_is_read_without_failing(message: str) -> None:
    assert stated(message) in (None, *CHOICES)


def test_a_hostile_message_is_read_in_bounded_time() -> None:
    for part in ("A. Paris ", "(((((", "A. " * 3, "answer is ", "\n\n\t* "):
        stated(part * 20_000)


def test_the_reader_goes_by_the_most_messages_and_does_not_break_ties() -> None:
    assert read_off(["Paris", None, "Rome", "Paris"]) == "Paris"
    assert read_off(["Paris", "Rome"]) is None
    assert read_off([None, None]) is None
    assert read_off([]) is None
