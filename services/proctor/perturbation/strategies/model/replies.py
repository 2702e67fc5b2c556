"""What a rewording model replied: a wording, or the reason why there is none. Pure, and safe with any text."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from proctor.domain.trial import Completion
from proctor.perturbation.admission.gate import EMPTY, MAX_QUESTION_CHARACTERS, TOO_LONG
from proctor.perturbation.strategies.model.wrapping import unwrapped
from proctor.text.normalise import normalise, words

REFUSED: Final = "refused"
TRUNCATED: Final = "truncated"
MODEL_FAILED: Final = "model_failed"
ANSWERED: Final = "answered"
REPEATED: Final = "repeated"

_SHOWN_CHARACTERS: Final = 200
_REFUSAL: Final = re.compile(
    r"(?:(?:i am|i'm) (?:very |so |really )?sorry|sorry,|(?:my )?apologies|i apologi[sz]e|unfortunately,? i\b|"
    r"as an? (?:ai|language model|large language model|assistant)\b|"
    r"i (?:cannot|can't|can not|could not|couldn't|will not|won't|must decline|am unable|am not able|do not feel|"
    r"don't feel)\b|i'm (?:unable|not able)\b|(?:this|the) (?:request|question|text) (?:violates|cannot be)\b)"
)
#: A rewording shares more than this of the question's longer words and numbers, even where it begins like a refusal.
_LEAST_SHARED: Final = 0.3
_LONGER: Final = 4
_BEGINNING: Final = r"(?:^|[?.!)]\s)\W{0,4}"
#: What says that an answer or its working follows; each counts only where the question does not say it too.
_ANSWER_MARKERS: Final = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        r"####",
        r"\\boxed\b",
        r"<<[^<>\n]{1,80}>>",
        r"\b(?:the|final|correct|right) answer is\b(?! (?:not|the|asked)\b)",
        _BEGINNING + r"(?:the )?(?:final |correct |right )?answer\W{0,3}[:=]",
        _BEGINNING + r"(?:solution|reasoning|step 1)\W{0,3}:",
        r"\blet(?:'|\u2019)?s (?:solve|calculate|compute|work|think)\b",
        r"\d ?[-+*/x\u00d7\u00f7\u2212] ?[$\u20ac\u00a3]?\d[\d.,]{0,30} ?= ?[$\u20ac\u00a3]?\d",
    )
)
#: Options that a rewording may well name in passing.
_EVERYDAY: Final = frozenset({"yes", "no", "true", "false", "none", "all", "both", "neither", "either", "the", "it"})


class NoWording(NamedTuple):
    """Why a reply holds no wording: a reason code and a sentence."""

    reason: str
    detail: str


def read_reply(
    completion: Completion,
    shown: str,
    tag: str,
    *,
    question: str | None = None,
    target: str = "",
    choices: tuple[str, ...] = (),
) -> str | NoWording:
    """The wording that a model replied with.

    Whether it asks the same is for the gate to say; this finds the text and turns away what is none.

    Args:
        completion: what came back.
        shown: the text that the model was to reword.
        tag: the name of the tags around it in the prompt.
        question: what the wording is compared with, where that is not the text shown: a translation's original.
        target: the right answer, which a wording must not tell.
        choices: the options that a wording may name if it names others too.
    """
    if completion.error is not None:
        return NoWording(MODEL_FAILED, f"the model gave no reply: {completion.error[:_SHOWN_CHARACTERS]}")
    if completion.finish_reason == "error":
        return NoWording(MODEL_FAILED, "the model broke off with an error")
    if completion.finish_reason == "length":
        return NoWording(TRUNCATED, "the reply was cut off at the most tokens that the model may generate")
    if len(completion.text) > MAX_QUESTION_CHARACTERS:
        return NoWording(TOO_LONG, f"the reply has more than {MAX_QUESTION_CHARACTERS} characters")
    wording = unwrapped(completion.text, shown, tag)
    question = shown if question is None else question
    if not wording:
        return NoWording(EMPTY, "the reply holds no wording")
    if _refuses(wording, question):
        return NoWording(REFUSED, f"the model would not reword it: {wording[:_SHOWN_CHARACTERS]!r}")
    told = _marker(wording, question) or _told(wording, question, target, choices)
    if told is not None:
        return NoWording(ANSWERED, f"the reply gives an answer away: {told[:_SHOWN_CHARACTERS]!r}")
    return wording


def _refuses(wording: str, question: str) -> bool:
    """Whether a text begins like a refusal and has little of the question in it. Polite questions have more."""
    if not _REFUSAL.match(normalise(wording)):
        return False
    asked = _longer(question)
    return len(asked & _longer(wording)) <= _LEAST_SHARED * len(asked)


def _longer(text: str) -> frozenset[str]:
    return frozenset(word for word in words(text) if len(word) >= _LONGER or word[0].isdigit())


def _marker(wording: str, question: str) -> str | None:
    """What in the wording says that an answer follows."""
    for marker in _ANSWER_MARKERS:
        match = marker.search(wording)
        if match is not None and marker.search(question) is None:
            return match[0].strip(" \n?.!)")
    return None


def _told(wording: str, question: str, target: str, choices: tuple[str, ...]) -> str | None:
    """The target, where the wording has it, the question has not, and no other option came with it."""
    said, asked = words(wording), words(question)
    if not _new(target, said, asked):
        return None
    others = (choice for choice in choices if choice != target)
    return None if any(_new(choice, said, asked) for choice in others) else target


def _new(answer: str, said: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    sought = words(answer)
    if not sought or (len(sought) == 1 and (sought[0] in _EVERYDAY or (len(sought[0]) == 1 and sought[0].isalpha()))):
        return False
    return _holds(said, sought) and not _holds(asked, sought)


def _holds(text: tuple[str, ...], sought: tuple[str, ...]) -> bool:
    # As one text, in which a search takes linear time: no word has a space in it.
    return f" {' '.join(sought)} " in f" {' '.join(text)} "
