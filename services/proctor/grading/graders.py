"""Grading one completion against its item's target."""

from __future__ import annotations

from typing import NamedTuple

from proctor.domain.trial import Completion, Grade, Outcome, Trial
from proctor.grading.extractors import Extractor


class Reading(NamedTuple):
    """What an answer is worth, and the answer that was read in it; None where none was."""

    outcome: Outcome
    extracted: str | None


def read_answer(trial: Trial, text: str, target: str, extractor: Extractor) -> Reading:
    """Judge what a model answered to a trial: the one rule by which an answer is right, wrong or invalid.

    A label is read against the options as this trial showed them, in their order and under their labels, and the
    option's text is what is compared with the target. An empty or unparsable answer is invalid: not right, and counted
    by itself.
    """
    extracted = extractor.extract(text, trial.choices, trial.labels)
    if extracted is None:
        return Reading(Outcome.INVALID, None)
    if extractor.judge is not None:
        return Reading(extractor.judge(extracted, target), extracted)
    return Reading(Outcome.CORRECT if extractor.agrees(extracted, target) else Outcome.INCORRECT, extracted)


def grade(trial: Trial, completion: Completion, target: str, extractor: Extractor) -> Grade:
    """Grade a completion by `read_answer`.

    Raises:
        ValueError: for a completion of another trial, and for an error row, which is a missing answer and not a
            wrong one.
    """
    trial_id = trial.trial_id
    if completion.trial_id != trial_id:
        raise ValueError(f"completion of trial {completion.trial_id!r} cannot be graded as trial {trial_id!r}")
    if completion.error is not None:
        raise ValueError(f"trial {trial_id!r} is an error row ({completion.error[:80]!r}) and has no grade")
    outcome, extracted = read_answer(trial, completion.text, target, extractor)
    return Grade(trial_id=trial_id, outcome=outcome, extracted=extracted, extractor=extractor.name)
