"""What a multiple-choice question asks, apart from how it points at its options."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from proctor.text.normalise import TEXTS_KEPT, normalise

#: Words that stand for the options: "which of these", "which one of the following statements".
_POINTING: Final = re.compile(
    r"\b(?:one )?(?:of|from|among) (?:these|those|the (?:following|below|above|options|choices|answers|alternatives))"
    r"(?: (?:options|choices|answers|alternatives|statements|sentences|items))?\b"
)
_ENDING: Final = " .:;?!_-\u2013\u2014\u2026"


@lru_cache(maxsize=TEXTS_KEPT)
def asked(question: str) -> str:
    """The normalised question without the marks at its end: "A cell is:" and "a cell is ___" are the same text."""
    plain = normalise(question)
    return plain.rstrip(_ENDING) or plain


@lru_cache(maxsize=TEXTS_KEPT)
def asked_of_options(question: str) -> str:
    """`asked`, however the options are pointed at: two items for which it is equal differ in their options alone.

    "Which of these is a mammal?" and "Which of the following is a mammal?" ask the same of the same options.
    """
    return " ".join(_POINTING.sub(" of these ", asked(question)).split())
