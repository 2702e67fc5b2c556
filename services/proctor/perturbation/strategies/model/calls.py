"""What one candidate asks the rewording model, and how its making stops where there is no answer, or none of use.

A strategy asks as if the model were here. Where the answer has not come yet, the candidate's making stops, the prompt
travels to the model as a trial, and the candidate is made again from its beginning once the answer is there: the same
item and settings always ask the same, under the same identifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from proctor.domain.trial import PARAPHRASE_STAGE, Arm, Completion, Trial
from proctor.perturbation.candidate import Draft

Answers = Mapping[str, Completion]
"""What the model has said so far, by the identifier of the trial that asked it."""


class UnansweredError(Exception):
    """The model must be asked this first."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial.trial_id)
        self.trial = trial


class NoRewordingError(Exception):
    """What the model said is no rewording: a reason code and a sentence."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Calls:
    """The calls of one candidate in the order in which its strategies make them.

    Args:
        item_id: the item that is reworded.
        candidate: the candidate's number, from 0.
        answers: what the model has said so far.
    """

    def __init__(self, item_id: str, candidate: int, answers: Answers) -> None:
        self._item_id = item_id
        self._candidate = candidate
        self._answers = answers
        self._made = 0

    def ask(self, prompt: str) -> Completion:
        """What the model said to a prompt.

        Raises:
            UnansweredError: when it has not been asked yet.
        """
        trial = _trial(self._item_id, self._candidate, self._made, prompt)
        self._made += 1
        completion = self._answers.get(trial.trial_id)
        if completion is None:
            raise UnansweredError(trial)
        return completion


def was_asked_about(item_id: str, answers: Answers) -> bool:
    """Whether the answers hold one to the first call of the item's first candidate, with which everything begins."""
    return _trial(item_id, 0, 0, "").trial_id in answers


def _trial(item_id: str, candidate: int, call: int, prompt: str) -> Trial:
    return Trial(
        stage=PARAPHRASE_STAGE,
        arm=Arm.PERTURBED,
        item_id=item_id,
        replicate=candidate,
        router_index=call,
        prompt=prompt,
    )


@dataclass(frozen=True)
class ModelRewrite:
    """One alternative of a strategy that asks: the draft as the model's answers reword it."""

    reword: Callable[[Draft, Calls], Draft]
    """Raises UnansweredError and NoRewordingError."""
