"""Answers behind phrases: the article's patterns, and those of the field's harnesses."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.grading import EXTRACTORS


def read(name: str, text: str) -> str | None:
    return EXTRACTORS[name].extract(text, ())


def articles_own(response: str) -> str:
    """`extract_answer` of the article, word for word."""
    patterns = [
        r"(?:the answer is|answer:)\s*(\S+)",
        r"(?:therefore|so|thus)[,:]?\s*(\S+)",
        r"(\d+)\s*$",
    ]
    for pattern in patterns:
        match = re.search(pattern, response.lower())
        if match:
            return match.group(1)
    return response.strip().split()[-1]


EXAMPLES = [
    "The answer is 42",
    "Answer: 42 apples",
    "Alice has 45 left. Therefore, 135",
    "so: 12",
    "Thus 7",
    "She had 90, gave 45 and bought 90: 135",
    "It is Paris",
    "She sold 3 of them. 5",
    "The answer is 42.",
    "No, the answer is 4. Wait: the answer is 5",
]


@pytest.mark.parametrize("response", EXAMPLES)
def test_the_article_s_patterns_read_what_its_code_reads(response: str) -> None:
    assert read("article", response) == articles_own(response)


@given(st.text(st.sampled_from("so thus42.:,\n answeri"), max_size=60))
def test_they_do_for_whatever_is_answered(response: str) -> None:
    assert read("article", response) == (articles_own(response) if response.split() else None)


def test_what_they_misread_is_known() -> None:
    assert read("article", "She sold 3 of them. 5") == "ld"
    assert read("article", "The answer is 42.") == "42."
    assert read("article", "The answer is New York") == "new"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The answer is Paris.", "paris"),
        ("Let me think.\nAnswer: New York City\n", "new york city"),
        ("the answer is 4. Wait, the final answer is **5**.", "5"),
        ("It was the U.S. Answer: the U.S. Army. Indeed.", "the u.s. army"),
        ("Paris", "paris"),
        ("I considered this.\nAnd that.", None),
        ("", None),
    ],
)
def test_a_phrase_says_the_answer_to_the_end_of_its_sentence(text: str, answer: str | None) -> None:
    assert read("answer_phrase", text) == answer


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        ("hash_marker", "5 + 5 = 10\n#### 10", "10"),
        ("hash_marker", "#### -1,200.", "-1200"),
        ("hash_marker", "The answer is 10", None),
        ("hash_marker", "#### ten", None),
        ("last_number", "First 3, then $1,234.", "1234"),
        ("last_number", "no number", None),
        ("last_number", "#### 10\nQuestion 2", "2"),
        ("boxed", "so \\boxed{\\frac{1}{2}} or \\boxed{x+1}", "x+1"),
        ("boxed", "\\boxed{\\frac{1}{2}}", "1/2"),
        ("boxed", "1/2", None),
    ],
)
def test_the_field_s_extractors_read_what_they_are_known_for(name: str, text: str, answer: str | None) -> None:
    assert read(name, text) == answer


@pytest.mark.parametrize(
    ("name", "text", "target", "right"),
    [
        ("answer_phrase", "The answer is 42.0.", "42", True),
        ("answer_phrase", "Answer: paris!", "Paris", True),
        ("answer_phrase", "Answer: Rome", "Paris", False),
        ("boxed", "\\boxed{0.5}", "1/2", True),
        ("hash_marker", "#### 18", "worked\n#### 18", True),
        ("last_number", "it is 18", "19", False),
        ("article", "The answer is Paris", "Paris", True),
    ],
)
def test_what_is_read_is_compared_with_the_target(name: str, text: str, target: str, right: bool) -> None:
    extracted = read(name, text)
    assert extracted is not None
    assert EXTRACTORS[name].agrees(extracted, target) is right


@pytest.mark.parametrize("name", ["answer_phrase", "article", "boxed", "hash_marker", "last_number"])
@pytest.mark.parametrize(
    "text", ["answer " * 50_000, "#" * 200_000, "1" * 200_000, "so " * 60_000, "answer is" + " " * 200_000]
)
@pytest.mark.timeout(10)
def test_hostile_answers_are_read_in_little_time(name: str, text: str) -> None:
    read(name, text)
