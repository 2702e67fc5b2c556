"""Distractors: neutral sentences where they cannot be taken for part of the question."""

from __future__ import annotations

import pytest

from proctor.perturbation.strategies.distractor import _SENTENCES, Distractor
from proctor.perturbation.strategies.guarded import carries_an_invariant
from proctor.text.normalise import words
from tests.unit.strategy_checks import candidates, gsm8k, questions


def test_a_distractor_stands_before_a_sentence_and_the_rest_is_as_it_was() -> None:
    for item, _ in gsm8k()[::7]:
        for one in candidates(Distractor(), item.question):
            sentence = one.provenance["distractor"]["sentence"]
            assert one.question.count(sentence) == 1
            assert one.question.replace(f"{sentence} ", "") == item.question
            assert not one.question.rstrip().endswith(sentence)


def test_its_person_is_nobody_of_the_question() -> None:
    question = "Anna has 3 hats and a dog. Tom has 4 hats and a cat. How many hats do they have?"
    for one in questions(Distractor(), question, seeds=60):
        added = set(words(one)) - set(words(question))
        assert not added & {"anna", "tom"}


@pytest.mark.parametrize(
    "question",
    [
        "She has 3 hats and he has the others.",
        "It costs 3 dollars in the end.",
        "Apfel und Birnen kosten 3 Mark. Was kosten sie?",
        "\u6771\u4eac\u3067\u3059\u3002",
        '"Anna is in the house." The end is near to it.',
    ],
)
def test_a_question_that_leans_on_what_is_before_it_gets_none(question: str) -> None:
    assert candidates(Distractor(), question) == []


def test_a_sentence_with_a_pronoun_takes_none_before_it_unless_it_names_somebody() -> None:
    question = (
        "Anna has 3 hats in the box. She sells them to a friend. Tom says he has 4 of the hats. How many are left?"
    )
    places = {
        one.split(". ").index(next(p for p in one.split(". ") if p not in question))
        for one in questions(Distractor(), question)
    }
    assert places == {0, 2}


def test_no_distractor_says_a_number_a_unit_a_denial_or_a_comparison() -> None:
    for sentence in _SENTENCES:
        assert not [word for word in words(sentence) if carries_an_invariant(word)], sentence
