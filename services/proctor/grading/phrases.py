"""Answers that stand behind a phrase, as the field's harnesses look for them."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from proctor.grading.numbers import first_number, plain_notation

#: What is read of an answer: its end, where answers stand.
_MAX_READ: Final = 100_000
_ANSWER: Final = re.compile(
    r"\banswer(?:\s{1,4}(?:is|was)\b\s{0,4}:?|\s{0,4}[:=])[ \t*_]{0,8}",
    re.IGNORECASE,
)
_MAX_PHRASE: Final = 400
#: An answer that repeats the phrase more often than this is not worth reading to its start.
_MAX_CUES: Final = 20
#: A full stop that is not a decimal point's and not within an abbreviation such as "U.S.".
_SENTENCE_END: Final = re.compile(r"(?<!\b[A-Za-z])[.!?](?=\s|$)")
_HASH: Final = re.compile(r"####[ \t]{0,8}(-?[0-9.,]{1,60})")
#: lm-evaluation-harness' `flexible-extract` of gsm8k, with bounds.
_FLEXIBLE: Final = re.compile(r"-?[$0-9.,]{2,60}|-?[0-9]+")
#: The article's, in its order, over the lower-cased text, with bounds on what `\S+` may take.
_ARTICLE: Final = (
    re.compile(r"(?:the answer is|answer:)\s*(\S{1,400})"),
    re.compile(r"(?:therefore|so|thus)[,:]?\s*(\S{1,400})"),
    re.compile(r"(\d{1,400})\s*$"),
)


def after_answer(text: str) -> str | None:
    """What the last "answer is …" or "answer: …" says, to the end of its sentence; an answer of one line, whole."""
    text = text[-_MAX_READ:].strip()
    for match in reversed(list(_ANSWER.finditer(text))[-_MAX_CUES:] if "answer" in text.casefold() else ()):
        line = text[match.end() : match.end() + _MAX_PHRASE].partition("\n")[0]
        if found := _SENTENCE_END.split(line, maxsplit=1)[0].strip():
            return found
    return text if text and "\n" not in text else None


def as_the_article(text: str) -> str | None:
    """What the article's `extract_answer` reads.

    Its patterns are kept as they are: they take "ld" out of "sold" for an answer behind "so", the first "the answer is"
    and not the last, and one word of an answer of several.
    """
    text = text[:_MAX_READ]
    lowered = text.lower()
    for pattern in _ARTICLE:
        if match := pattern.search(lowered):
            return match[1]
    return text.split()[-1] if text.split() else None


def behind_hashes(text: str) -> Fraction | None:
    """The number behind the first `####`, and no other: lm-evaluation-harness' `strict-match` of gsm8k."""
    match = _HASH.search(text[:_MAX_READ])
    return None if match is None else _number(match[1])


def flexible_number(text: str) -> Fraction | None:
    """The last run of digits, whatever stands around it: lm-evaluation-harness' `flexible-extract` of gsm8k."""
    found = None
    for match in _FLEXIBLE.finditer(text[-_MAX_READ:]):
        found = match[0]
    return None if found is None else _number(found)


def _number(written: str) -> Fraction | None:
    negative = written.startswith("-")
    value = first_number(plain_notation(written.strip("-$.,").replace("$", "").replace(",", "")))
    return None if value is None else -value if negative else value
