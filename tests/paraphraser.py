"""A model that rewords, as a table of what it says: faithful, or refusing, echoing, answering, failing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

PARAPHRASER = "replayed-gpt-4"
REFUSAL = "I'm sorry, but I can't help with that request."


class Said(NamedTuple):
    """What the model says to one prompt; another status than 200 is a failure with the text as its message."""

    text: str
    finish_reason: str = "stop"
    status: int = 200


Paraphraser = Callable[[str], Said]


def recorded_rewordings(data: Path) -> dict[str, str]:
    """GSM8K's test questions, each with GPT-4's recorded rewording."""

    def rows(name: str) -> list[dict[str, str]]:
        return [json.loads(line) for line in (data / "gsm8k" / name).read_text("utf-8").splitlines()]

    pairs = zip(rows("test.jsonl"), rows("rephrased.jsonl"), strict=True)
    return {original["question"]: reworded["rephrased"] for original, reworded in pairs}


def replaying(rewordings: Mapping[str, str | Said]) -> Paraphraser:
    """Says the recorded rewording of the question that stands in the prompt; the longest, where several do."""
    questions = sorted(rewordings, key=len, reverse=True)

    def say(prompt: str) -> Said:
        question = next((question for question in questions if question in prompt), None)
        if question is None:
            return Said("no recorded rewording for this prompt", status=404)
        said = rewordings[question]
        return said if isinstance(said, Said) else Said(said)

    return say
