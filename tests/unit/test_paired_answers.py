"""The paired layout, and which items stay out of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.item import Item
from proctor.domain.suite import ScoringSection
from proctor.domain.trial import Arm, Outcome
from proctor.evidence.answers import Answer, Exclusion, PairedAnswers, guess_chance, pair_answers

RIGHT, WRONG, INVALID = Outcome.CORRECT, Outcome.INCORRECT, Outcome.INVALID


def test_answers_are_paired_by_item_in_any_order() -> None:
    rows = [
        Answer(Arm.PERTURBED, "b", RIGHT),
        Answer(Arm.CANONICAL, "a", RIGHT),
        Answer(Arm.PERTURBED, "a", INVALID),
        Answer(Arm.CANONICAL, "b", WRONG),
        Answer(Arm.PERTURBED, "a", RIGHT),
        Answer(Arm.PERTURBED, "b", None),
    ]
    for order in (rows, rows[::-1]):
        paired = pair_answers(order)
        assert paired.item_ids == ("a", "b")
        assert paired.canonical.tolist() == [True, False]
        assert paired.right.tolist() == [1, 1]
        assert paired.total.tolist() == [2, 1]  # the error row is missing, not wrong; the unreadable one is wrong
        assert paired.excluded == ()


def test_items_that_cannot_be_paired_are_listed_with_the_reason() -> None:
    rows = [
        Answer(Arm.CANONICAL, "failed", None),
        Answer(Arm.PERTURBED, "failed", RIGHT),
        Answer(Arm.CANONICAL, "starved", RIGHT),
        Answer(Arm.CANONICAL, "broken", RIGHT),
        Answer(Arm.PERTURBED, "broken", None),
        Answer(Arm.PERTURBED, "headless", RIGHT),
    ]
    paired = pair_answers(rows, item_ids=["never-asked"])
    assert paired.n == 0
    assert paired.excluded == (
        Exclusion("broken", "every reworded answer is an error row"),
        Exclusion("failed", "the canonical answer is an error row"),
        Exclusion("headless", "no canonical answer"),
        Exclusion("never-asked", "no canonical answer"),
        Exclusion("starved", "no admitted variant"),
    )


def test_two_canonical_answers_of_one_item_are_refused() -> None:
    with pytest.raises(ValueError, match="'a' has two canonical"):
        pair_answers([Answer(Arm.CANONICAL, "a", RIGHT), Answer(Arm.CANONICAL, "a", None)])


@pytest.mark.parametrize(
    ("ids", "canonical", "right", "total"),
    [
        (["a"], [True, False], [1], [1]),
        (["a", "a"], [1, 1], [1, 1], [1, 1]),
        (["a"], [1], [0], [0]),
        (["a"], [1], [2], [1]),
    ],
)
def test_a_layout_that_cannot_be_is_refused(
    ids: list[str], canonical: list[bool], right: list[int], total: list[int]
) -> None:
    with pytest.raises(ValueError, match=r"shape|repeat|total >= 1"):
        PairedAnswers.of(ids, canonical, right, total)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(1, 60)), max_size=40))
def test_patterns_hold_every_item_whatever_the_number_of_variants(rows: list[tuple[bool, int, int]]) -> None:
    paired = PairedAnswers.of(
        [str(i) for i in range(len(rows))],
        [c for c, _, _ in rows],
        [min(r, t) for _, r, t in rows],
        [t for *_, t in rows],
    )
    patterns = paired.patterns
    assert patterns.counts.sum() == paired.n
    for name in ("canonical", "right", "total"):
        assert np.array_equal(getattr(patterns, name)[patterns.inverse], getattr(paired, name))


def test_the_chance_of_a_guess_is_the_suites_or_one_in_the_options() -> None:
    choice = Item(item_id="a", question="?", target="x", choices=("x", "y", "z", "w"))
    free = Item(item_id="b", question="?", target="x")
    assert guess_chance(ScoringSection(), [choice]) == 0.25
    assert guess_chance(ScoringSection(), [choice, free]) is None
    assert guess_chance(ScoringSection(), []) is None
    assert guess_chance(ScoringSection(guess_chance=0.1), [free]) == 0.1
