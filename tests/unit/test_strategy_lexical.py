"""Synonyms: the right sense, the right form, and what is left alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.perturbation.strategies.contexts import CONTEXTS
from proctor.perturbation.strategies.guarded import carries_an_invariant
from proctor.perturbation.strategies.lexical import Lexical, table
from tests.unit.strategy_checks import candidates, questions

ALL = Lexical(share=1.0)


@pytest.mark.parametrize(
    ("question", "reworded"),
    [
        ("She bought pens at the store.", "She purchased pens at the shop."),
        ("Calculate the sum.", "Compute the sum."),
        ("He drives a car to work.", "He drives an automobile to work."),
        ("They saw an automobile there.", "They saw a car there."),
        ("The game starts at noon.", "The game begins at noon."),
        ("She needs 3 eggs.", "She requires 3 eggs."),
        ("How many does he have altogether?", "How many does he have in all?"),
        ("He traveled 60 miles.", "He went 60 miles."),
    ],
)
def test_a_word_gives_way_to_its_synonym_in_the_same_form(question: str, reworded: str) -> None:
    assert {one.question for one in candidates(ALL, question)} == {reworded}


@pytest.mark.parametrize(
    "question",
    [
        "She needs to leave.",  # another verb frame
        "He has traveled 60 miles.",  # the participle of go is gone
        "The race has started with a bang.",
        "The car wash is open.",  # a compound
        "At the start they run.",
        "She said 'I bought it' and \"we bought it\".",  # quoted
        "Call `bought` with x.",  # code
        "Is the store or the shop cheaper?",  # both words, perhaps two things
        "Store Bought is a band.",
        "How often does it rain?",
        "The big dog bit the small dog.",  # sizes that tell them apart
        "They divided it by the other.",
    ],
)
def test_a_word_stays_where_its_sense_is_in_doubt(question: str) -> None:
    assert candidates(ALL, question) == []


def test_every_mention_of_a_noun_changes_or_none() -> None:
    assert candidates(ALL, "A movie is long. The movie theater is big for movies.") == []
    (one,) = candidates(ALL, "A movie is long. The movies are old.")
    assert one.question == "A film is long. The films are old."


def test_words_of_options_and_target_stay() -> None:
    assert candidates(ALL, "Where was it bought?", choices=("bought", "sold"), target="sold") == []
    assert candidates(ALL, "Where was it bought?", target="It was purchased.") == []


def test_a_share_of_the_words_changes_and_at_least_one() -> None:
    question = "She bought a car, repaired it quickly and began to calculate."
    assert len(questions(Lexical(), question, seeds=20)) > 8
    rare = questions(Lexical(share=0.0), question, seeds=20)
    assert all(len(set(question.split()) - set(one.split())) <= 2 for one in rare)


def test_the_provenance_says_what_was_replaced() -> None:
    (one,) = candidates(ALL, "She bought pens.")
    assert one.provenance == {"lexical": {"replaced": ["bought > purchased"]}}


def test_every_row_of_the_table_is_of_one_synset_and_replaces_no_guarded_word() -> None:
    rows = [row for rows in table().by_form.values() for row in rows]
    assert len(rows) > 200
    assert len({(row.form, row.replacement, row.contexts) for row in rows}) == len(rows)
    for row in rows:
        assert re.fullmatch(r"\d{8}-[nvar]", row.synset)
        assert set(row.contexts) <= CONTEXTS.keys()
        assert row.form != row.replacement
        guarded = {word for word in f"{row.form} {row.replacement}".split() if carries_an_invariant(word)}
        # "In all" for "altogether" and "a sum of money" say no other number; "divided" is for sharing alone.
        assert guarded <= {"all", "altogether", "sum", "divided"}, row


_PIECES = st.sampled_from(
    [*table().by_form, "amount", "of", "money", "other", " ", " ", " ", "-", "'", "\u2019", "_", "2", ".", "\u00e9"]
)


@given(st.lists(st.tuples(_PIECES, st.booleans()), max_size=12))
def test_the_words_looked_up_are_those_that_an_alternation_of_all_forms_finds(pieces: list[tuple[str, bool]]) -> None:
    forms = "|".join(sorted(table().by_form, key=len, reverse=True))
    every_form = re.compile(rf"(?<![\w'\u2019-])(?:{forms})(?![\w'\u2019-])", re.IGNORECASE)
    text = "".join(piece.upper() if upper else piece for piece, upper in pieces)
    looked_up = [match for match in table().pattern.finditer(text) if match.group().lower() in table().by_form]
    assert [match.span() for match in looked_up] == [match.span() for match in every_form.finditer(text)]


def test_letters_that_only_case_folding_takes_for_those_of_a_form_are_none() -> None:
    assert candidates(ALL, "He bought 3 \u017ftores.") != []
    assert candidates(ALL, "The \u017ftore is big.") == []
