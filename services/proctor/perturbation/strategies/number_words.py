"""Small whole numbers in the other notation: 3 for three, three for 3."""

from __future__ import annotations

import re
from typing import Final

from proctor.domain.item import Item
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.english import Fixed, matching_case, sentences
from proctor.perturbation.strategies.rule import Edit, Maker, Reworded, RuleStrategy, edited
from proctor.text.numerals import numerals

_SMALL_LIST: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_SMALL: Final = _SMALL_LIST.split()
_TENS_LIST: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS: Final = _TENS_LIST.split()
#: "One" is a pronoun too often ("the red one"), and 0 reads as a digit in "0 points".
WORDS: Final = {
    number: _SMALL[number] if number < 20 else "-".join([_TENS[number // 10 - 2], *_SMALL[number % 10 or 20 :][:1]])
    for number in range(2, 100)
}
NUMBERS: Final = {word: number for number, word in WORDS.items()}
#: A number that is part of a sum, a price, a time, a date, a fraction, a list mark or a code stays in its notation.
_DIGITS: Final = re.compile(r"(?<![^\s(])([2-9]|[1-9]\d)(?=(?:[.,;?!)]{0,3}(?:\s|$)|-[a-z]))")
_SPELT: Final = re.compile(
    rf"(?<![\w-])(?:(?:{'|'.join(_TENS)})(?:-(?:{'|'.join(_SMALL[1:10])}))?|{'|'.join(_SMALL[2:])})(?![\w-])"
)
#: Before a number these make it a label.
_LABELS: Final = re.compile(
    r"(?:\b(?:page|chapter|room|grade|level|number|no\.?|bus|route|step|day|week|month|year|question|item|unit|section"
    r"|figure|class|lane|line|gate|track|aisle|part|problem|exercise|table|version|type|size|option|answer|january"
    r"|february|march|april|may|june|july|august|september|october|november|december)|[-+*/=<>\u00d7\u00f7\u2212#&^]|\d)\s+$",
    re.IGNORECASE,
)
#: After a number these belong to it: fractions, scales, abbreviated units, clock times, sums.
_FOLLOWERS: Final = re.compile(
    r"\s+(?:[-+*/=<>\u00d7\u00f7\u2212%&^]|\d|(?:thirds?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|half"
    r"|halves|quarters?|dozens?|hundreds?|thousands?|millions?|billions?|percent|per cent|cents?|and an?|mod|times as"
    r"|out of|in every|kg|g|mg|km|m|cm|mm|ml|l|lbs?|oz|ft|in|yds?|mi|mph|kph|hrs?|mins?|secs?|am|pm|a\.m|p\.m|o'clock|x"
    r"|degrees?|january|february|march|april|may|june|july|august|september|october|november|december)\b)",
    re.IGNORECASE,
)
_SCALE_BEFORE: Final = re.compile(r"\b(?:hundred|thousand|million|billion)(?:\s+and)?\s+$", re.IGNORECASE)
_NEARBY: Final = 16


class NumberWords(RuleStrategy):
    """Between one and all of the question's small numbers (2 to 99) change their notation.

    Keeps the multiset of `text.numerals` exactly, which is stricter than the gate: a draw that would not is dropped.
    """

    name = "number_words"
    nothing = ("no_numbers", "the question has no small whole number that can stand in the other notation")

    def maker(self, question: str, item: Item) -> Maker | None:
        """Some of the numbers in the other notation, each with a chance of a half, at least one."""
        places = _places(question)

        def make(draws: Draws) -> Reworded | None:
            chosen = [place for place in places if draws.chance(0.5)] or [draws.one_of(places)]
            reworded = edited(question, chosen)
            same = numerals(reworded) == numerals(question)
            return Reworded(reworded, {"changed": len(chosen)}) if same else None

        return make if places else None


def _places(question: str) -> list[Edit]:
    fixed = Fixed.of(question)
    starts = {sentence.start for sentence in sentences(question)}
    places = []
    for match in _DIGITS.finditer(question):
        if _free(question, match.start(), match.end(1)) and not fixed.touches(*match.span(1)):
            word = WORDS[int(match[1])]
            places.append(Edit(*match.span(1), matching_case(word, "A") if match.start() in starts else word))
    for match in _SPELT.finditer(question):
        if _free(question, *match.span()) and not fixed.touches(*match.span()):
            places.append(Edit(*match.span(), str(NUMBERS[match.group()])))
    return places


def _free(text: str, start: int, end: int) -> bool:
    if text[end : end + 1] in (".", ")") and text[start - 1 : start] in ("", "\n"):
        return False  # the mark of a list
    before = text[max(0, start - _NEARBY) : start]
    return not (_LABELS.search(before) or _SCALE_BEFORE.search(before) or _FOLLOWERS.match(text, end))
