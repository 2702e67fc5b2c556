"""Answer invariants: changed problems are told from reworded ones."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.text.invariants import broken_invariants
from tests.support import shared_data

FAITHFUL = [
    ("He buys a house for $80,000.", "A house is bought by him for 80,000 dollars."),
    ("It takes 1 hour to eat 12 eggs.", "Eating a dozen eggs takes an hour."),
    ("She sold twice as many on Monday.", "On Monday she sold double that number."),
    ("5 did not grow.", "5 failed to grow."),
    ("He runs 60 meters each sprint, 3 times a week.", "Three times a week he runs a 60-meter sprint."),
    ("You must be at least 18.", "The minimum age is 18."),
    ("How tall is Mr. Smith's Dad in Europe?", "What is the height of Mr. Smith's father in Europe?"),
    ("There are 27 unicorns in the Scottish Highlands.", "The Highlands of Scotland hold 27 unicorns."),
    ("He waits 30 minutes until 4 PM on Monday.", "On Monday he waits for half an hour, until 4 in the afternoon."),
    ("Two thirds of Jana's 27 puppies are Pomeranians.", "Of Jana's 27 pups two-thirds are of the Pomeranian breed."),
]
CHANGED = [
    ("He has 16 eggs.", "He has 18 eggs.", "numerals"),
    ("3 red, 4 blue and 4 green balls.", "3 red, 3 blue and 4 green balls.", "numerals"),
    ("The third child is tall.", "The fifth child is tall.", "numerals"),
    ("He waits 20 minutes.", "He waits 20 hours.", "units"),
    ("It costs $5.", "It costs 5 euros.", "units"),
    ("How many hours does it take?", "How many minutes does it take?", "units"),
    ("5 seeds did not grow.", "5 seeds grew.", "negation"),
    ("Tom has 5 more apples than Ann.", "Tom has 5 fewer apples than Ann.", "comparison"),
    ("You need at least 5 points.", "You need 5 points.", "comparison"),
    ("You need at least 5 points.", "You need at most 5 points.", "comparison"),
    ("What is the capital of France?", "What is the capital of Spain?", "entity"),
    ("How many games does Steve have?", "How many games does Bob have?", "entity"),
    (
        "John has a glass of water with breakfast, lunch and dinner, and has one before he goes to bed every weekday. "
        "How many glasses of water does he drink?",
        "How many glasses does John drink?",
        "content",
    ),
]


@pytest.mark.parametrize(("original", "rewording"), FAITHFUL)
def test_a_faithful_rewording_breaks_nothing(original: str, rewording: str) -> None:
    assert broken_invariants(original, rewording) == []


@pytest.mark.parametrize(("original", "rewording", "name"), CHANGED)
def test_a_changed_problem_breaks_the_invariant_that_it_changed(original: str, rewording: str, name: str) -> None:
    assert name in broken_invariants(original, rewording)


@given(st.text(max_size=300))
def test_a_text_breaks_nothing_against_itself(text: str) -> None:
    assert broken_invariants(text, text) == []


def test_nearly_all_rephrasings_of_gsm8k_keep_every_invariant() -> None:
    lines = (shared_data() / "gsm8k" / "rephrased.jsonl").read_text().splitlines()
    pairs = [(row["original"], row["rephrased"]) for row in map(json.loads, lines) if row["rephrased"].strip()]
    kept = sum(not broken_invariants(original, rephrased) for original, rephrased in pairs)
    assert kept / len(pairs) > 0.94


def test_a_rephrasing_of_another_gsm8k_problem_is_nearly_always_turned_away() -> None:
    lines = (shared_data() / "gsm8k" / "rephrased.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["rephrased"].strip()]
    shifted = zip(rows, rows[1:] + rows[:1], strict=True)
    passed = sum(not broken_invariants(row["original"], other["rephrased"]) for row, other in shifted)
    assert passed / len(rows) < 0.01
