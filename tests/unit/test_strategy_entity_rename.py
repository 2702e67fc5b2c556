"""Renaming: consistent, of the same kind, declared, and only in made-up stories."""

from __future__ import annotations

import pytest

from proctor.domain.item import Item, Rejection
from proctor.domain.suite import PerturbationSection
from proctor.perturbation.admission.gate import Screened, screen
from proctor.perturbation.admission.renaming import renamed, undone
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.strategies.entity_rename import EntityRename, first_names
from tests.unit.strategy_checks import candidates, gsm8k

STORY = "Anna has 3 hats. Tom gives Anna 4 hats. How many hats does Anna's shelf in Boston hold?"
SETTINGS = PerturbationSection(max_token_overlap=1.0)


def test_a_name_changes_at_every_mention_into_one_of_the_same_kind() -> None:
    for one in candidates(EntityRename(), STORY, limit=9):
        names = one.provenance["entity_rename"]["renamed"]
        assert names.keys() == {"Anna", "Tom", "Boston"}
        assert first_names().gender[names["Anna"]] == "f"
        assert first_names().gender[names["Tom"]] == "m"
        assert not set(names) & set(one.question.replace("'", " ").split())
        assert one.question.count(names["Anna"]) == 3
        assert undone(one.question, one.provenance) == STORY


def test_no_new_name_is_in_the_question_already_or_given_twice() -> None:
    for item, _ in gsm8k()[::5]:
        for one in candidates(EntityRename(), item.question):
            names = one.provenance["entity_rename"]["renamed"]
            assert len(set(names.values())) == len(names)
            assert undone(one.question, one.provenance) == item.question


@pytest.mark.parametrize(
    "question",
    [
        "In 1492, Isabella had 3 ships and 87 men.",  # a year: a matter of fact
        "Who is Anna?",  # no numbers
        "Anna Karenina has 3 parts of 9 chapters.",  # a surname
        "How many of the 3 letters of Anna come 2 times?",  # about the name itself
        "James' 3 dogs eat 4 bones.",
        "He paid 3 or 4 times.",
        'The song "Anna" has 3 lines of 4 words.',
        "Alex has 3 cats. She feeds her 4 dogs.",  # a man by the table, a woman by her pronouns
    ],
)
def test_names_that_may_mean_something_stay(question: str) -> None:
    assert candidates(EntityRename(), question) == []
    assert EntityRename().nothing_for(Item(item_id="i", question=question, target="t"))[0] == "no_names"


def test_names_of_the_options_and_the_target_stay() -> None:
    made = candidates(EntityRename(), STORY, choices=("Anna", "Zoe"), target="Zoe")
    assert made
    assert all("Anna has 3" in one.question and "Tom" not in one.question for one in made)


def test_dollars_become_euros_where_they_are_the_only_money() -> None:
    (one,) = candidates(EntityRename(), "A hat costs $3.50 and a coat 40 dollars.")
    assert one.question == "A hat costs \u20ac3.50 and a coat 40 euros."
    assert isinstance(screen(Item(item_id="i", question=STORY, target="t"), one, SETTINGS), Rejection)
    for question in (
        "A hat is $3, or 12 quarters.",
        "A hat is $3 or \u20ac2.",
        "$x costs $3 and 4.",
        "3 US dollars for 2.",
    ):
        assert candidates(EntityRename(), question) == []


def test_the_gate_admits_a_declared_renaming_and_no_other() -> None:
    item = Item(item_id="i", question=STORY, target="7")
    made = candidates(EntityRename(), STORY, limit=1)[0]
    assert isinstance(screen(item, made, SETTINGS), Screened)
    silent = Candidate(made.question, (), "imported", 1, {})
    verdict = screen(item, silent, SETTINGS)
    assert isinstance(verdict, Rejection)
    assert verdict.reason == "entity"
    more = Candidate(made.question.replace("shelf in", "shelf of Zoe in"), (), made.strategy, 1, made.provenance)
    assert isinstance(screen(item, more, SETTINGS), Rejection)


def test_whole_words_are_renamed_in_one_pass() -> None:
    assert renamed("Ann met Anna and Bob.", {"Ann": "Bob", "Bob": "Ann"}) == "Bob met Anna and Ann."
    assert renamed("$5 for Ann", {"$": "\u20ac"}) == "\u20ac5 for Ann"
    assert renamed("text", {}) == "text"
