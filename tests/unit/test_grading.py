"""Grading a completion against its item's target."""

from __future__ import annotations

import pytest

from proctor.domain.trial import Arm, Completion, Grade, Outcome, Trial
from proctor.grading import EXTRACTORS, grade


def _graded(text: str, target: str, name: str, choices: tuple[str, ...] = ()) -> Grade:
    trial = Trial(arm=Arm.CANONICAL, item_id="i", prompt="?", choices=choices)
    return grade(trial, Completion(trial_id=trial.trial_id, text=text), target, EXTRACTORS[name])


def test_a_letter_is_read_in_the_order_that_the_trial_showed() -> None:
    assert _graded("A", "Oslo", "choice_letter", ("Rome", "Oslo")).outcome is Outcome.INCORRECT
    assert _graded("A", "Oslo", "choice_letter", ("Oslo", "Rome")) == Grade(
        trial_id=Trial(arm=Arm.CANONICAL, item_id="i", prompt="?").trial_id,
        outcome=Outcome.CORRECT,
        extracted="Oslo",
        extractor="choice_letter",
    )


@pytest.mark.parametrize(
    ("text", "target", "name", "outcome"),
    [
        ("it is 18.00", "18", "numeric", Outcome.CORRECT),
        ("#### 1,800", "worked\n#### 1800", "numeric", Outcome.CORRECT),
        ("0.5", "1/2", "numeric", Outcome.CORRECT),
        ("19", "18", "numeric", Outcome.INCORRECT),
        ("I do not know", "18", "numeric", Outcome.INVALID),
        (" Blue. ", "blue", "exact", Outcome.CORRECT),
        ("ＢＬＵＥ", "blue", "exact", Outcome.CORRECT),
        ("green", "blue", "exact", Outcome.INCORRECT),
        ("", "blue", "exact", Outcome.INVALID),
    ],
)
def test_right_wrong_and_unreadable_answers_are_told_apart(text: str, target: str, name: str, outcome: Outcome) -> None:
    found = _graded(text, target, name)
    assert (found.outcome, found.extractor) == (outcome, name)
    assert (found.extracted is None) == (outcome is Outcome.INVALID)


def test_an_error_row_is_not_graded() -> None:
    trial = Trial(arm=Arm.CANONICAL, item_id="i", prompt="?")
    with pytest.raises(ValueError, match="error row"):
        grade(trial, Completion(trial_id=trial.trial_id, error="timed out"), "18", EXTRACTORS["numeric"])


def test_a_completion_of_another_trial_is_not_graded() -> None:
    trial = Trial(arm=Arm.CANONICAL, item_id="i", prompt="?")
    with pytest.raises(ValueError, match="'other'"):
        grade(trial, Completion(trial_id="other", text="18"), "18", EXTRACTORS["numeric"])
