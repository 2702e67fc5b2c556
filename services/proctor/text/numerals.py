"""Numbers in running text, whatever their notation: 1,000 and one thousand, 50% and half, a dozen and 12."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Context, Decimal
from functools import lru_cache
from typing import NamedTuple, TypeVar

from proctor.text.normalise import TEXTS_KEPT, normalise
from proctor.text.number_words import (
    ARTICLES,
    CARDINALS,
    DENOMINATORS,
    DOWN_TO,
    HALVES,
    HUNDREDTHS,
    MULTIPLES,
    MULTIPLIERS,
    ORDINALS,
    PERCENT,
    POINTS,
    SCALES,
)

_CONTEXT = Context(prec=15)
#: Digits of a number; longer runs are no amounts, and their products leave the range of decimal arithmetic.
_MAX_DIGITS = 1_000
#: "Trillion trillion trillion …" grows no further from here.
_MAX_SCALED = 10**60
#: A fraction glued to the number before it by NFKC (2\u00bd becomes 21/2) has to be parted first.
_VULGAR = re.compile(r"(?=[\u00bc-\u00be\u2150-\u215e])")
_TOKEN = re.compile(
    r"(?P<number>(?<![^\W_])(?<![^\W\d_]-)-?(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+))"
    r"|(?P<suffix>(?<=\d)(?:st|nd|rd|th|k)\b)|(?P<word>[^\W\d_]+)|(?P<mark>[%/:\u00a2])|(?P<gap>[-\u2010-\u2015]+)|\S"
)

#: Between these no number goes on, so clauses are read apart.
_CLAUSE_END = re.compile(r"(?<=[.,;?!])\s+")
#: Rewordings of one text share most of its clauses.
_CLAUSES_KEPT = 4096
#: A longer clause is no clause, and not worth the memory.
_LONG_CLAUSE = 400
#: The words that a number can begin with.
_OPENING = frozenset((*CARDINALS, *ORDINALS, *MULTIPLES, *HALVES, *ARTICLES, "dozen"))
#: One of these, or a digit, is in every number; so the many clauses without one are not read token by token.
_TELLING = (_OPENING - ARTICLES) | SCALES.keys() | {"quarter"}
_DIGIT = re.compile(r"\d")
_LETTERS = re.compile(r"[^\W\d_]+")


_Number = TypeVar("_Number", int, Decimal)


class Numeral(NamedTuple):
    """A number and the span of the prepared text in which it stands. An ordinal says which, not how many."""

    value: Decimal
    start: int
    end: int
    ordinal: bool = False


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


def numerals(text: str) -> Counter[Decimal]:
    """The multiset of numbers in a text.

    Digits (1,000, 3.50, .5, -4, 5k, $2), fractions (1/2, 2 1/2, \u00bd, two thirds, a quarter of), percentages as
    their hundredth (50% is 0.5, as half is), cardinal words (twenty-five, one hundred and five, a dozen), ordinals
    from the third on (3rd, third) and multiples (twice is 2, triple is 3). "First" and "second" are not counted:
    they are adverbs and seconds too often. Indefinite plurals (dozens, hundreds) are not numbers.
    """
    return Counter(numeral.value for numeral in scan_numerals(prepare(text)))


@lru_cache(maxsize=TEXTS_KEPT)
def prepare(text: str) -> str:
    """The form of the text that `scan_numerals` reads, and into which its spans point."""
    parted = normalise(_VULGAR.sub(" ", text)).replace("per cent", "percent")
    return parted.replace("\u2044", "/").replace("\u2212", "-")


@lru_cache(maxsize=TEXTS_KEPT)
def scan_numerals(prepared: str) -> tuple[Numeral, ...]:
    """The numbers of a prepared text in reading order."""
    found: list[Numeral] = []
    start = 0
    for end, following in _clause_spans(prepared):
        clause = prepared[start:end]
        of_clause = _of_short_clause(clause) if len(clause) <= _LONG_CLAUSE else _of_clause(clause)
        for value, first, last, ordinal in of_clause:
            found.append(Numeral(value, start + first, start + last, ordinal))
        start = following
    return tuple(found)


def _clause_spans(prepared: str) -> Iterator[tuple[int, int]]:
    """Where each clause ends and the next begins."""
    for match in _CLAUSE_END.finditer(prepared):
        yield match.span()
    yield len(prepared), len(prepared)


def _of_clause(clause: str) -> tuple[Numeral, ...]:
    if not _DIGIT.search(clause) and _TELLING.isdisjoint(_LETTERS.findall(clause)):
        return ()
    solid = [
        _Token(_kind_of(match), match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(clause)
        if match.lastgroup != "gap"
    ]
    return tuple(_Reader(solid).read())


_of_short_clause = lru_cache(maxsize=_CLAUSES_KEPT)(_of_clause)


def _kind_of(match: re.Match[str]) -> str:
    kind = match.lastgroup or "other"
    return "other" if kind == "number" and match.end() - match.start() > _MAX_DIGITS else kind


def _scaled(value: _Number, by: int) -> _Number:
    return value if abs(value) >= _MAX_SCALED else value * by


class _Reader:
    """Left-to-right reader of tokens; every method either consumes tokens and returns a value, or neither."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._is_ordinal = False

    def _text(self, ahead: int = 0) -> str:
        index = self._at + ahead
        return self._tokens[index].text if 0 <= index < len(self._tokens) else ""

    def _kind(self, ahead: int = 0) -> str:
        index = self._at + ahead
        return self._tokens[index].kind if index < len(self._tokens) else ""

    def _touches(self, ahead: int) -> bool:
        """Whether the token `ahead` follows the one before it without a gap."""
        index = self._at + ahead
        return 0 < index < len(self._tokens) and self._tokens[index].start == self._tokens[index - 1].end

    def read(self) -> Iterator[Numeral]:
        while self._at < len(self._tokens):
            first = self._at
            token = self._tokens[first]
            if token.kind != "number" and token.text not in _OPENING:
                self._at += 1
                continue
            self._is_ordinal = False
            value = self._numeral()
            if value is None:
                self._at = first + 1
            else:
                yield Numeral(value, token.start, self._tokens[self._at - 1].end, self._is_ordinal)

    def _numeral(self) -> Decimal | None:
        value = self._multiple()
        if value is None:
            value = self._quantity()
        return value

    def _multiple(self) -> Decimal | None:
        word = self._text()
        if word in MULTIPLES:
            self._at += 1
            return Decimal(MULTIPLES[word])
        if word in HALVES:
            self._at += 1
            if self._text() in ARTICLES and self._text(1) == "dozen":
                self._at += 2
                return Decimal(6)
            unit = 1 if self._text() in ARTICLES else 0
            if self._text(unit) in ("hour", "minute"):
                self._at += unit + 1
                return Decimal(30)
            return Decimal("0.5")
        return None

    def _quantity(self) -> Decimal | None:
        """A number with what follows it: a fraction's denominator, a half, a dozen, a percent sign."""
        article, in_dollars = self._text() in ARTICLES, self._text(-1) == "$"
        value = self._digits() if self._kind() == "number" else self._cardinal()
        if value is None:
            if article and self._denominator_is_fraction(1):
                self._at += 2
                return _divide(Decimal(1), Decimal(_denominator(self._text(-1)) or 1))
            return self._ordinal()
        if self._text() == "and" and self._text(1) in ARTICLES and _denominator(self._text(2)):
            value += _divide(Decimal(1), Decimal(_denominator(self._text(2)) or 1))
            self._at += 3
        elif self._text() == "and" and self._text(1) == "one" and self._text(2) == "half":
            value += Decimal("0.5")
            self._at += 3
        elif (parts := _denominator(self._text())) and self._counts_parts(value, parts):
            value = _divide(value, Decimal(parts))
            self._at += 1
        if (ahead := self._multiplier_ahead(value)) is not None:
            value *= MULTIPLIERS[self._text(ahead)]
            self._at += ahead + 1
        elif self._text() == "times" and self._text(1) in DOWN_TO and value > 1:
            value = _divide(Decimal(1), value)
            self._at += 2
        elif (every := self._out_of()) is not None:
            value = _divide(value, every)
        while self._text() in SCALES:
            value = _scaled(value, SCALES[self._text()])
            self._at += 1
        if self._text() in HUNDREDTHS and not (in_dollars and self._text() not in PERCENT):
            value = _divide(value, Decimal(100))
            self._at += 1
        elif self._text() == "percentage" and self._text(1) in POINTS:
            value = _divide(value, Decimal(100))
            self._at += 2
        return value

    def _counts_parts(self, value: Decimal, parts: int) -> bool:
        """Whether the number before a denominator counts parts.

        "Two thirds" is a fraction; in "96 fourth graders" the ordinal belongs to what follows, and 32 quarters are
        coins.
        """
        return value == 1 or (self._text().endswith("s") and value < parts)

    def _multiplier_ahead(self, value: Decimal) -> int | None:
        """How far ahead a dozen multiplies the number: "4 dozen", "1/2 a dozen", "1/2 of a dozen"."""
        ahead = 0
        if value < 1:
            ahead += self._text() == "of"
            ahead += self._text(ahead) in ARTICLES
        return ahead if self._text(ahead) in MULTIPLIERS else None

    def _out_of(self) -> Decimal | None:
        """The whole of "one out of every five" and "3 in every 4"; "3 out of 4" are two numbers."""
        start = self._at
        opening = next((n for n in (2, 3) if self._text(n - 1) == "every"), 0)
        if opening and (self._text() == "in" or (self._text(), self._text(1)) == ("out", "of")):
            self._at += opening
            whole = self._digits() if self._kind() == "number" else self._cardinal()
            if whole:
                return whole
        self._at = start
        return None

    def _denominator_is_fraction(self, ahead: int) -> bool:
        """Whether an ordinal after an article means a part ("a third of") and not a place ("a third friend")."""
        word = self._text(ahead)
        if word == "quarter":
            return True
        return word in ORDINALS and self._text(ahead + 1) in ("of", "as", "the", "that", "more", "less", "fewer")

    def _digits(self) -> Decimal | None:
        value = Decimal(self._text().replace(",", ""))
        self._at += 1
        if self._kind() == "suffix":
            suffix = self._text()
            self._at += 1
            if suffix == "k":
                return value * 1000
            self._is_ordinal = True
            return value
        if self._text() == ":" and self._touches(0) and self._text(1) == "00" and self._touches(1):
            self._at += 2
            return value
        if self._slash(0):
            return self._over(value)
        if self._kind() == "number" and self._slash(1):
            whole, top = value, Decimal(self._text().replace(",", ""))
            self._at += 1
            return whole + self._over(top)
        return value

    def _slash(self, ahead: int) -> bool:
        bottom = self._text(ahead + 1)
        return self._text(ahead) == "/" and bottom.isdecimal() and int(bottom[:30]) > 0 and self._touches(ahead + 1)

    def _over(self, top: Decimal) -> Decimal:
        bottom = Decimal(self._text(1))
        self._at += 2
        return _divide(top, bottom)

    def _cardinal(self) -> Decimal | None:
        start = self._at
        if self._text() == "dozen":
            return Decimal(1)
        if self._text() in ARTICLES and self._text(1) in SCALES:
            self._at += 1
            total, current = 0, 1
        elif self._text() in CARDINALS:
            total, current = 0, self._below_hundred()
        else:
            return None
        while True:
            word = self._text()
            if word == "hundred":
                current = _scaled(current, 100)
                self._at += 1
            elif word in SCALES:
                total, current = total + _scaled(current, SCALES[word]), 0
                self._at += 1
            elif word == "and" and self._text(1) in CARDINALS and self._text(-1) in SCALES:
                self._at += 1
                current += self._below_hundred()
            elif word in CARDINALS and self._text(-1) in SCALES:
                current += self._below_hundred()
            else:
                break
        return Decimal(total + current) if self._at > start else None

    def _below_hundred(self) -> int:
        value = CARDINALS[self._text()]
        self._at += 1
        if value >= 20 and 0 < CARDINALS.get(self._text(), 0) < 10:
            value += CARDINALS[self._text()]
            self._at += 1
        return value

    def _ordinal(self) -> Decimal | None:
        value = ORDINALS.get(self._text())
        if value is None:
            return None
        self._at += 1
        self._is_ordinal = True
        return Decimal(value)


def _denominator(word: str) -> int | None:
    """What a fraction is divided by; plurals too. "Second" is a unit of time."""
    return DENOMINATORS.get(word) or DENOMINATORS.get(word.removesuffix("s"))


def _divide(top: Decimal, bottom: Decimal) -> Decimal:
    return _CONTEXT.divide(top, bottom)
