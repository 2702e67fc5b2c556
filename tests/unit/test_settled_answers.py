"""Whether an answer that was cut had already given what is read of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.labels import LabelScheme
from proctor.grading import EXTRACTORS
from proctor.grading.settled import is_settled

CITIES = ("Paris", "Rome", "Oslo", "Bern")


def settled(name: str, text: str, choices: tuple[str, ...] = (), labels: LabelScheme | None = None) -> bool:
    return is_settled(EXTRACTORS[name], text, choices, labels)


@pytest.mark.parametrize(
    "text",
    [
        "B",
        " B",
        "(B)",
        "B. Rome, because the",
        "B\nQuestion: what is the capital of",
        "Rome",
        "Rome\nThe capital of Italy is",
        r"So it is \boxed{B} as the",
        "The answer is B. Let me check each of the other",
    ],
)
def test_an_option_that_was_named_stays_named_whatever_would_have_followed(text: str) -> None:
    assert settled("choice_letter", text, CITIES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Let us see. Option A is the capital of France, so we",
        "We look at every city. Rome is old, and",
        "First (A) can be ruled",
        "The capital",
        "E",
    ],
)
def test_an_option_that_is_only_being_considered_is_no_settled_answer(text: str) -> None:
    assert not settled("choice_letter", text, CITIES)


def test_numbers_as_labels_are_settled_as_letters_are() -> None:
    assert settled("choice_letter", "2", CITIES, LabelScheme.NUMBERS)
    assert not settled("choice_letter", "There are 4 cities, of which", CITIES, LabelScheme.NUMBERS)


@pytest.mark.parametrize(
    ("extractor", "text"),
    [
        ("numeric", "#### 18\n\nQuestion: How many"),
        ("numeric", r"Thus \boxed{18}. To check, 3"),
        ("numeric", "The answer is 18 because 9 + 9"),
        ("hash_marker", "9 + 9 = 18\n#### 18\nQuestion: How"),
        ("boxed", r"\boxed{x + 1} since"),
        ("answer_phrase", "The answer is New York. It"),
        ("article", "the answer is york and then"),
        ("execution", "```python\ndef f():\n    return 1\n```\nThis"),
    ],
)
def test_an_answer_that_was_marked_is_settled(extractor: str, text: str) -> None:
    assert settled(extractor, text)


@pytest.mark.parametrize(
    ("extractor", "text"),
    [
        ("numeric", "First there are 9 eggs, and then 3"),
        ("numeric", "There are 7 of them and"),
        ("numeric", "#### 1"),
        ("numeric", "The answer is 1"),
        ("numeric", "no number yet"),
        ("hash_marker", "9 + 9 = 18"),
        ("last_number", "#### 18\n\nQuestion: 5"),
        ("boxed", r"\boxed{x + "),
        ("exact", "Paris is the capital of"),
        ("answer_phrase", "The answer is New"),
        ("article", "it must be a city in"),
        ("constraints", "Once upon a time there"),
        ("execution", "```python\ndef f():\n    ret"),
        ("execution", "def f():\n    ret"),
    ],
)
def test_an_answer_that_was_still_being_written_is_not(extractor: str, text: str) -> None:
    assert not settled(extractor, text)


@given(st.sampled_from(sorted(EXTRACTORS)), st.text(max_size=200))
def test_what_cannot_be_read_at_all_is_never_settled(name: str, text: str) -> None:
    if EXTRACTORS[name].extract(text, CITIES, None) is None:
        assert not settled(name, text, CITIES)
