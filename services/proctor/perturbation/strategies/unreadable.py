"""Texts that no strategy works on: too long, or not text."""

from __future__ import annotations

from proctor.domain.item import Item
from proctor.perturbation.admission.gate import MAX_QUESTION_CHARACTERS, NOT_TEXT, TOO_LONG
from proctor.text.normalise import has_lone_surrogate


def unreadable(item: Item) -> tuple[str, str] | None:
    """Why an item's question cannot be reworded, a reason code and a sentence; None where it can."""
    return unreadable_text(item.question)


def unreadable_text(question: str) -> tuple[str, str] | None:
    """The same of a wording."""
    if len(question) > MAX_QUESTION_CHARACTERS:
        return TOO_LONG, f"the question has more than {MAX_QUESTION_CHARACTERS} characters"
    if has_lone_surrogate(question):
        return NOT_TEXT, "the question is not valid Unicode"
    return None
