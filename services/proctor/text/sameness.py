"""Whether two items ask the same, however they are written down."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.domain.canonical import json_digest
from proctor.text.normalise import normalise


def question_digest(question: str, choices: Sequence[str]) -> str:
    """Digest of what an item asks: `sha256:` and 64 hex digits.

    It is the same in whatever case, spacing, Unicode form and order of the options, and whatever the item is called
    and is held to be right: who passes a benchmark off as another can change those without changing what it gives
    away.
    """
    return json_digest({"choices": sorted(map(normalise, choices)), "question": normalise(question)})
