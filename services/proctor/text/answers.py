"""Whether a text gives an answer, or asks for yes or no: a rewording may do neither where the original does not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from proctor.text.normalise import TEXTS_KEPT, canonical_text, words

#: Of a line of its own, or the whole text.
_REPLY: Final = re.compile(
    r"(?:^|[?.!:)]\s)\W{0,4}(?:answer|response|reply|solution)\s?:", re.IGNORECASE | re.MULTILINE
)
_ANSWER_IS: Final = re.compile(r"(?:^|[?.!:]\s)the (?:correct )?answer is\b", re.IGNORECASE)
#: A sentence's end, and no three dots.
_FINISHED: Final = re.compile(r"(?<!\.)\.\s*$")
_SENTENCE: Final = re.compile(r"(?<=[.?!])\s+")
_AUXILIARY: Final = (
    "is|are|was|were|isn't|aren't|wasn't|weren't|do|does|did|don't|doesn't|didn't|has|have|had|hasn't|haven't|can|could"
    "|can't|couldn't|will|would|won't|wouldn't|should|shouldn't|must|may|might"
)
_YES_OR_NO: Final = re.compile(
    rf"^(?:[^?,;:]{{1,200}}, )?(?:{_AUXILIARY})\s[^?]*\?|,? (?:correct|right|true|isn't it|is it not)\?$", re.IGNORECASE
)
#: What asks for more: a choice, a thing ("if so, which"), or a courtesy ("can you name the one that …").
_OPEN: Final = re.compile(
    r"\b(?:or|what|which|who|whom|whose|where|when|why|how)\b|\b(?:can|could|would|will) you\b", re.IGNORECASE
)
#: An answer of this kind is what such a question asks for.
_VERDICTS: Final = frozenset(
    {"yes", "no", "true", "false", "correct", "incorrect", "right", "wrong", "agree", "disagree"}
)


def keeps_unanswered(original: str, rewording: str) -> bool:
    """False when the rewording gives an answer, and the original does not.

    It says that one follows ("Response: …", "The answer is 1."), or finishes what the options were to finish: "Critics
    argued that:" may become "What did critics argue?", and not "Critics argued that money decides."
    """
    if any(mark.search(rewording) and not mark.search(original) for mark in (_REPLY, _ANSWER_IS)):
        return False
    return not (original.rstrip().endswith(":") and _FINISHED.search(rewording))


def keeps_open(original: str, rewording: str, choices: Sequence[str]) -> bool:
    """False when a question with options becomes one that asks for yes or no, which none of the options says.

    Such a rewording has mostly worked one of the options into itself.
    """
    if not choices or asks_yes_or_no(original) or not asks_yes_or_no(rewording):
        return True
    return any(_is_verdict(words(choice)) for choice in choices)


def _is_verdict(option: tuple[str, ...]) -> bool:
    """ "Yes, because …" is one, and "True, false" of two statements; "false consciousness" is none."""
    return bool(option) and (option[0] in ("yes", "no") or _VERDICTS.issuperset(option))


@lru_cache(maxsize=TEXTS_KEPT)
def asks_yes_or_no(text: str) -> bool:
    """Whether the last sentence of an English text is a question that yes or no answers."""
    last = _SENTENCE.split(canonical_text(text))[-1]
    return _YES_OR_NO.search(last) is not None and _OPEN.search(last) is None
