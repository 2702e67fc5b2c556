"""Constraints that answers are held to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.trial import Arm, Completion, Outcome, Trial
from proctor.grading import EXTRACTORS, grade, resolve_extractor
from proctor.grading.constraints import KINDS, checked, is_constraints, parse_constraints, written_constraints


def target(*constraints: dict[str, Any]) -> str:
    return json.dumps({"proctor_constraints": constraints})


_TOLD_APART: list[tuple[dict[str, Any], str, str]] = [
    ({"kind": "words", "at_least": 3, "at_most": 3}, "It's well-known here.", "One two three four"),
    ({"kind": "sentences", "at_most": 2}, "Is it 3.5? Yes.", "One. Two! Three"),
    ({"kind": "sentences", "at_least": 2}, 'He said "no." Then he left', "no end at all"),
    ({"kind": "bullets", "at_least": 2, "at_most": 2}, "List:\n- a\n* b", "- a\n-b\n1. c"),
    ({"kind": "paragraphs", "at_least": 2}, "one\n \n\ntwo", "one\ntwo"),
    ({"kind": "include_words", "words": ["river", "Sun"]}, "The SUN over the river.", "sunny rivers"),
    ({"kind": "exclude_words", "words": ["very"]}, "every day", "Very good"),
    ({"kind": "exclude_characters", "characters": [","]}, "a b", "a, b"),
    ({"kind": "lower_case"}, "all small, 3.", "Not"),
    ({"kind": "upper_case"}, "ALL LARGE 3.", "Not"),
    ({"kind": "json_object"}, '```json\n{"a": [1]}\n```', "[1]"),
    ({"kind": "json_object", "keys": ["a", "b"]}, '{"b": 1, "a": 2}', '{"a": 1}'),
    ({"kind": "starts_with", "text": "Well"}, "\n Well, yes", "Oh well"),
    ({"kind": "ends_with", "text": "The end."}, "So. The end.\n", "The end"),
]


@pytest.mark.parametrize(("constraint", "kept", "broken"), _TOLD_APART)
def test_each_kind_tells_what_keeps_it_from_what_does_not(constraint: dict[str, Any], kept: str, broken: str) -> None:
    constraints = parse_constraints(target(constraint))
    assert checked(kept, constraints) == (True,)
    assert checked(broken, constraints) == (False,)


def test_every_kind_is_tried_here() -> None:
    assert {constraint["kind"] for constraint, _, _ in _TOLD_APART} == set(KINDS)


def test_an_answer_that_breaks_one_of_them_is_wrong_and_an_empty_one_invalid() -> None:
    trial = Trial(arm=Arm.CANONICAL, item_id="i", prompt="?")
    both = target({"kind": "lower_case"}, {"kind": "words", "at_most": 2})

    def outcome(text: str) -> Outcome:
        return grade(trial, Completion(trial_id=trial.trial_id, text=text), both, EXTRACTORS["constraints"]).outcome

    assert outcome("two words") is Outcome.CORRECT
    assert outcome("Two words") is Outcome.INCORRECT
    assert outcome("no more than three") is Outcome.INCORRECT
    assert outcome("  ") is Outcome.INVALID


def test_constraints_survive_being_written() -> None:
    constraints = parse_constraints(target({"kind": "words", "at_most": 2}, {"kind": "lower_case"}))
    written = written_constraints(constraints)
    assert is_constraints(written)
    assert parse_constraints(written) == constraints


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("18", "no constraints"),
        (target(), "no constraints"),
        (target(*[{"kind": "lower_case"}] * 21), "1 to 20"),
        (target({"kind": "polite"}), "kind 'polite'; there are: words"),
        (target({"kind": ["words"]}), "there are: words"),
        (target({"kind": "words"}), "needs at_least"),
        (target({"kind": "words", "at_least": True}), "whole numbers"),
        (target({"kind": "words", "at_least": 5, "at_most": 4}), "at_least above at_most"),
        (target({"kind": "lower_case", "x": 1}), "takes nothing"),
        (target({"kind": "ends_with", "text": " x"}), "no space at its ends"),
        (target({"kind": "include_words", "words": ["two words"]}), "single words"),
        (target({"kind": "include_words", "words": ["a", "a"]}), "none twice"),
        (target({"kind": "json_object", "keys": []}), "list of 1 to"),
        ("[" * 60_000, "no constraints"),
        (target({"kind": "ends_with", "text": "x" * 100_000}), "no constraints"),
    ],
)
def test_what_is_no_constraints_is_said(said: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_constraints(said)


@pytest.mark.parametrize(
    "text", ["." * 200_000, "\n" * 200_000, "- " * 100_000, "a-" * 100_000, "a\n \n" * 50_000, "```json\n" * 20_000]
)
@pytest.mark.timeout(10)
def test_hostile_answers_are_held_to_all_of_them_in_little_time(text: str) -> None:
    every: list[dict[str, Any]] = [
        {"kind": kind, "at_most": 3} for kind in ("words", "sentences", "bullets", "paragraphs")
    ]
    words: list[dict[str, Any]] = [
        {"kind": "include_words", "words": ["a"]},
        {"kind": "json_object"},
        {"kind": "lower_case"},
    ]
    checked(text, parse_constraints(target(*every, *words)))


def test_the_extractor_of_constraints_is_told_from_the_items() -> None:
    items = [
        Item(item_id="a", question="?", target=written_constraints(parse_constraints(target({"kind": "lower_case"}))))
    ]
    assert resolve_extractor("auto", items).name == "constraints"
    with pytest.raises(BadInputError, match=r"'numeric'.*is not a number"):
        resolve_extractor("numeric", items)
    broken = Item(item_id="b", question="?", target='{"proctor_constraints":[{"kind":"polite"}]}')
    with pytest.raises(BadInputError, match="item 'b' cannot be used: constraint 1 has the kind 'polite'"):
        resolve_extractor("auto", [broken])
