"""Where a worked answer states its answer: `#### 18`, `\\boxed{18}`, "the answer is 18", or its concluding sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from fractions import Fraction
from itertools import islice
from typing import Final, NamedTuple

from proctor.grading.numbers import boxed, first_number
from proctor.grading.triage.notations import numeral_in, readings

#: Of each notation: a text that repeats "the answer is" more often is not worth reading to its end.
MAX_STATEMENTS: Final = 1000
_MARKER = re.compile(r"####[ \t:*]{0,8}(?:\n[ \t]{0,8}(?=\d))?(?P<raw>(?:(?!####)[^\n]){0,200})")
#: "#### 1. Break down the project" and "#### Step 2" are headings.
_HEADING = re.compile(r"\d{1,3}[.)]\s{1,4}[A-Za-z]|[^\d\\]{0,40}[A-Za-z][^\d\\]{0,40}\d")
_CUE = re.compile(r"\banswer(?:\s{1,4}is|\s{0,4}[:=])[\s:=*]{0,8}(?=(?P<raw>[^\n]{1,200}))", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_SENTENCE = re.compile(r"[^\n.!?]+(?:[.!?](?!\s|$)[^\n.!?]*)*")
_CONCLUDES = re.compile(
    r"[\s*_>-]{0,8}(?:(?:therefore|thus|hence|so|consequently|in\s+conclusion|finally|overall|in\s+total|"
    r"as\s+a\s+result|this\s+means)\b)",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
_BOLD = re.compile(r"\*\*([^*\n]{1,80})\*\*")
#: What announces that something is taken back.
RETRACTION: Final = re.compile(
    r"\b(?:wait|actually|correction|mistaken?|incorrect(?:ly)?|error|apologi[sz]e|oops|on\s+second\s+thought"
    r"|(?:let\s+me|let['’]s|let\s+us)\s+(?:correct|double)|re-?(?:calculat|evaluat|consider|check|examin|comput|do\b)\w{0,8})",
    re.IGNORECASE,
)


class Notation(StrEnum):
    """How an answer is marked as the answer."""

    MARKER = "####"
    BOXED = "\\boxed"
    CUE = "answer is"
    CONCLUSION = "concluding sentence"


class Statement(NamedTuple):
    """An answer as it is stated. `raw` is the text in which the numeral stands; `value` None where it is no number."""

    notation: Notation
    start: int
    end: int
    raw: str
    value: Fraction | None


def explicit_statements(text: str, *, numeric: bool) -> list[Statement]:
    """Every answer marked as one (`####`, `\\boxed`, "answer is"), in reading order; text in plain notation.

    With `numeric` only those that give a number, in digits or in words.
    """
    found = [*_markers(text), *_boxes(text), *_cues(text)]
    if numeric:
        found = [statement for statement in found if readings(statement.raw)]
    return sorted(found, key=lambda statement: (statement.start, statement.end))


def stated_answer(text: str, explicit: Sequence[Statement]) -> Statement | None:
    """The answer that a text gives: the last of its explicit statements, or else its concluding sentence.

    After a `####` that is not taken back, what follows is another problem: models that do not stop go on to write one.
    """
    if not explicit:
        return conclusion(text)
    marker = next((one for one in explicit if one.notation is Notation.MARKER), None)
    if marker is None or RETRACTION.search(text, marker.end, explicit[-1].start):
        return explicit[-1]
    return marker


def conclusion(text: str) -> Statement | None:
    """The answer of the last sentence that concludes ("Therefore …", "So …") and holds a number.

    What it sets in bold, or else its one number; None where it holds several, for then it does not say which.
    """
    last: tuple[int, str] | None = None
    for match in _SENTENCE.finditer(text):
        if _CONCLUDES.match(match[0]) and _DIGIT.search(match[0]):
            last = match.start(), match[0]
    if last is None:
        return None
    start, sentence = last
    bold = [match for match in _BOLD.finditer(sentence) if _DIGIT.search(match[1])]
    if len(bold) == 1:
        raw, begin, end = bold[0][1], bold[0].start(1), bold[0].end(1)
    else:
        raw, begin, end = sentence, 0, len(sentence)
    numerals = list(numeral_in(raw))
    if len({numeral[0] for numeral in numerals}) != 1:
        return None
    return Statement(Notation.CONCLUSION, start + begin, start + end, numerals[-1][0], first_number(numerals[-1][0]))


def _markers(text: str) -> Iterator[Statement]:
    for match in islice(_MARKER.finditer(text), MAX_STATEMENTS):
        raw = match["raw"]
        if raw.strip() and not _HEADING.match(raw):
            yield Statement(Notation.MARKER, match.start(), match.end(), raw, first_number(raw))


def _boxes(text: str) -> Iterator[Statement]:
    end = 0
    for content in islice(boxed(text), MAX_STATEMENTS):
        start = text.index(f"\\boxed{{{content}}}", end)
        end = start + len(content) + len("\\boxed{}")
        yield Statement(Notation.BOXED, start, end, content, first_number(content))


def _cues(text: str) -> Iterator[Statement]:
    for match in islice(_CUE.finditer(text), MAX_STATEMENTS):
        sentence = _SENTENCE_END.split(match["raw"], maxsplit=1)[0]
        raw = sentence.rpartition("=")[2]
        if raw.strip():
            yield Statement(Notation.CUE, match.start(), match.start("raw") + len(sentence), raw, first_number(raw))
