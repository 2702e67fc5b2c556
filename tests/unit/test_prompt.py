"""Items as prompts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError
from proctor.domain.suite import FewShotExample, PromptSection
from proctor.text.prompt import render_prompt


def test_a_multiple_choice_item_shows_its_options_by_letter() -> None:
    prompt = render_prompt(PromptSection(), "Which?", ("red", "blue"))
    assert prompt == "Question: Which?\nOptions:\nA. red\nB. blue\nAnswer:"


def test_an_item_without_options_shows_its_question() -> None:
    assert render_prompt(PromptSection(), "Why?", ()) == "Question: Why?\nAnswer:"


def test_solved_examples_come_first_in_the_same_form() -> None:
    section = PromptSection(template="Q: {question}\nA:", few_shot=(FewShotExample(question="1+1?", answer="2"),))
    assert render_prompt(section, "2+2?", ()) == "Q: 1+1?\nA: 2\n\nQ: 2+2?\nA:"


def test_the_examples_of_one_suite_are_not_those_of_another() -> None:
    sections = [PromptSection(few_shot=(FewShotExample(question="1+1?", answer=answer),)) for answer in ("2", "two")]
    first, second = (render_prompt(section, "2+2?", ()) for section in sections)
    assert first == "Question: 1+1?\nAnswer: 2\n\nQuestion: 2+2?\nAnswer:"
    assert second == first.replace(" 2\n", " two\n")


@given(st.lists(st.sampled_from(["{question}", "{options}", "{", "}", "text", "{{options}}"]), max_size=6), st.text())
def test_a_template_is_filled_at_every_place(parts: list[str], question: str) -> None:
    template = "{question}{options}" + "".join(parts)
    expected = "".join(
        question if piece == "{question}" else "A. yes\nB. no" if piece == "{options}" else piece
        for piece in re.split(r"(\{question\}|\{options\})", template)
    )
    assert render_prompt(PromptSection(template=template), question, ("yes", "no")) == expected


@given(st.text(), st.lists(st.text(), min_size=2, max_size=5))
def test_braces_of_questions_and_options_stay_what_they_are(question: str, choices: list[str]) -> None:
    prompt = render_prompt(PromptSection(), question, choices)
    lines = "".join(f"{letter}. {choice}\n" for letter, choice in zip("ABCDE", choices, strict=False))
    assert prompt == f"Question: {question}\nOptions:\n{lines}Answer:"


def test_a_question_that_names_a_place_of_the_template_is_not_filled() -> None:
    prompt = render_prompt(PromptSection(), "{options} {question} {0} {{x}}", ("yes", "no"))
    assert prompt.startswith("Question: {options} {question} {0} {{x}}\nOptions:\nA. yes")


def test_a_template_that_hides_the_options_is_refused() -> None:
    with pytest.raises(BadInputError, match=r"put \{options\} where they go"):
        render_prompt(PromptSection(template="{question}"), "Which?", ("red", "blue"))
