"""What a trial's words and its answer say, worked out anew: nothing of Proctor is imported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

#: In place of an answer: the model was asked and gave none, for good. Such a trial is an error row, and is not graded.
FAILED = "\0"
_NUMBER = re.compile(r"-?\d+")


class Asked(NamedTuple):
    """A trial as items and variants know it."""

    arm: str
    item: str
    words: str | None
    """In which it is asked; None for the item's own."""
    replicate: int


def asked(trial: Mapping[str, Any]) -> Asked:
    """The trial as items and variants know it."""
    question = trial["prompt"].removeprefix("Question: ").rsplit("\nAnswer:", 1)[0]
    words = None if trial["variant_id"] is None else " ".join(question.split())
    return Asked(trial["arm"], trial["item_id"], words, trial["replicate"])


def is_right(text: str, target: str) -> bool:
    """Whether an answer says the target: by its last number."""
    numbers = _NUMBER.findall(text)
    return bool(numbers) and int(numbers[-1]) == int(target)


def outcome(completion: Mapping[str, Any], target: str) -> str | None:
    """The grade of a completion: None for one that is none."""
    if completion["error"] is not None:
        return None
    if not _NUMBER.search(completion["text"]):
        return "invalid"
    return "correct" if is_right(completion["text"], target) else "incorrect"
