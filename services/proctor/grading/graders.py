"""Grading one completion against its item's target."""

from __future__ import annotations

from proctor.domain.trial import Completion, Grade, Outcome, Trial
from proctor.grading.extractors import Extractor


def grade(trial: Trial, completion: Completion, target: str, extractor: Extractor) -> Grade:
    """Grade a completion.

    A label is read against the options as this trial showed them, in their order and under their labels, and the
    option's text is what is compared with the target. An empty or unparsable answer is invalid: not right, and counted
    by itself.

    Raises:
        ValueError: for a completion of another trial, and for an error row, which is a missing answer and not a
            wrong one.
    """
    trial_id = trial.trial_id
    if completion.trial_id != trial_id:
        raise ValueError(f"completion of trial {completion.trial_id!r} cannot be graded as trial {trial_id!r}")
    if completion.error is not None:
        raise ValueError(f"trial {trial_id!r} is an error row ({completion.error[:80]!r}) and has no grade")
    extracted = extractor.extract(completion.text, trial.choices, trial.labels)
    if extracted is None:
        outcome = Outcome.INVALID
    else:
        outcome = Outcome.CORRECT if extractor.agrees(extracted, target) else Outcome.INCORRECT
    return Grade(trial_id=trial_id, outcome=outcome, extracted=extracted, extractor=extractor.name)
