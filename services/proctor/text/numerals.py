"""Numbers in running text, whatever their notation: 1,000 and one thousand, 50% and half, a dozen and 12."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Context, Decimal
from functools import lru_cache
from typing import NamedTuple

from proctor.text.normalise import normalise

_CONTEXT = Context(prec=15)
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_CARDINALS = {word: value for value, word in enumerate(_UNITS.split())} | {
    word: 10 * (tens + 2) for tens, word in enumerate(_TENS.split())
}
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_FROM_THIRD = (
    "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
    "seventeenth eighteenth nineteenth twentieth"
)
_ORDINALS = {word: value + 3 for value, word in enumerate(_FROM_THIRD.split())} | {
    "thirtieth": 30,
    "fortieth": 40,
    "fiftieth": 50,
    "hundredth": 100,
    "thousandth": 1000,
}
_DENOMINATORS = _ORDINALS | {"quarter": 4, "half": 2}
_MULTIPLES = {
    **dict.fromkeys(("twice", "double", "doubles", "doubled", "doubling"), 2),
    **dict.fromkeys(("thrice", "triple", "triples", "tripled", "tripling", "treble"), 3),
    **dict.fromkeys(("quadruple", "quadruples", "quadrupled", "quadrupling"), 4),
    **dict.fromkeys(("quintuple", "quintuples", "quintupled"), 5),
    **{f"{word}fold": value for word, value in _CARDINALS.items()},
}
_HALVES = {"half", "halved", "halving"}
_ARTICLES = {"a", "an"}
_PERCENT = {"%", "percent", "pct"}
_HUNDREDTHS = _PERCENT | {"cent", "cents", "\u00a2"}
_MULTIPLIERS = {"dozen": 12, "decades": 10}
#: A fraction glued to the number before it by NFKC (2\u00bd becomes 21/2) has to be parted first.
_VULGAR = re.compile(r"(?=[\u00bc-\u00be\u2150-\u215e])")
_TOKEN = re.compile(
    r"(?P<number>(?<![^\W_])(?<![^\W\d_]-)-?(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+))"
    r"|(?P<suffix>(?<=\d)(?:st|nd|rd|th|k)\b)|(?P<word>[^\W\d_]+)|(?P<mark>[%/:\u00a2])|(?P<gap>[-\u2010-\u2015\s]+)|."
)


#: What any number must contain, so that the many texts without one are not read token by token.
_ANY = re.compile(
    r"\d|\b(?:" + "|".join([*_CARDINALS, *_ORDINALS, *_SCALES, *_MULTIPLES, *_HALVES, "dozen", "quarter"]) + r")"
)


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


@lru_cache(maxsize=4096)
def prepare(text: str) -> str:
    """The form of the text that `scan_numerals` reads, and into which its spans point."""
    parted = normalise(_VULGAR.sub(" ", text)).replace("per cent", "percent")
    return parted.replace("\u2044", "/").replace("\u2212", "-")


@lru_cache(maxsize=4096)
def scan_numerals(prepared: str) -> tuple[Numeral, ...]:
    """The numbers of a prepared text in reading order. Cached: several invariants read the same two texts."""
    if not _ANY.search(prepared):
        return ()
    tokens = [
        _Token(match.lastgroup or "other", match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(prepared)
    ]
    solid = [token for token in tokens if token.kind != "gap"]
    return tuple(_Reader(solid).read())


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
            self._is_ordinal = False
            value = self._numeral()
            if value is None:
                self._at = first + 1
            else:
                yield Numeral(value, self._tokens[first].start, self._tokens[self._at - 1].end, self._is_ordinal)

    def _numeral(self) -> Decimal | None:
        value = self._multiple()
        if value is None:
            value = self._quantity()
        return value

    def _multiple(self) -> Decimal | None:
        word = self._text()
        if word in _MULTIPLES:
            self._at += 1
            return Decimal(_MULTIPLES[word])
        if word in _HALVES:
            self._at += 1
            if self._text() in _ARTICLES and self._text(1) == "dozen":
                self._at += 2
                return Decimal(6)
            unit = 1 if self._text() in _ARTICLES else 0
            if self._text(unit) in ("hour", "minute"):
                self._at += unit + 1
                return Decimal(30)
            return Decimal("0.5")
        return None

    def _quantity(self) -> Decimal | None:
        """A number with what follows it: a fraction's denominator, a half, a dozen, a percent sign."""
        article, in_dollars = self._text() in _ARTICLES, self._text(-1) == "$"
        value = self._digits() if self._kind() == "number" else self._cardinal()
        if value is None:
            if article and self._denominator_is_fraction(1):
                self._at += 2
                return _divide(Decimal(1), Decimal(_denominator(self._text(-1)) or 1))
            return self._ordinal()
        if self._text() == "and" and self._text(1) in _ARTICLES and _denominator(self._text(2)):
            value += _divide(Decimal(1), Decimal(_denominator(self._text(2)) or 1))
            self._at += 3
        elif self._text() == "and" and self._text(1) == "one" and self._text(2) == "half":
            value += Decimal("0.5")
            self._at += 3
        elif (parts := _denominator(self._text())) and (value == 1 or self._text().endswith("s")):
            # "Two thirds" is a fraction; in "96 fourth graders" the ordinal belongs to what follows.
            value = _divide(value, Decimal(parts))
            self._at += 1
        if self._text() in _MULTIPLIERS:
            value *= _MULTIPLIERS[self._text()]
            self._at += 1
        elif (every := self._out_of()) is not None:
            value = _divide(value, every)
        while self._text() in _SCALES:
            value *= _SCALES[self._text()]
            self._at += 1
        if self._text() in _HUNDREDTHS and not (in_dollars and self._text() not in _PERCENT):
            value = _divide(value, Decimal(100))
            self._at += 1
        return value

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
        return word in _ORDINALS and self._text(ahead + 1) in ("of", "as", "the", "that", "more", "less", "fewer")

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
        if self._text() in _ARTICLES and self._text(1) in _SCALES:
            self._at += 1
            total, current = 0, 1
        elif self._text() in _CARDINALS:
            total, current = 0, self._below_hundred()
        else:
            return None
        while True:
            word = self._text()
            if word == "hundred":
                current *= 100
                self._at += 1
            elif word in _SCALES:
                total, current = total + current * _SCALES[word], 0
                self._at += 1
            elif word == "and" and self._text(1) in _CARDINALS and self._text(-1) in _SCALES:
                self._at += 1
                current += self._below_hundred()
            elif word in _CARDINALS and self._text(-1) in _SCALES:
                current += self._below_hundred()
            else:
                break
        return Decimal(total + current) if self._at > start else None

    def _below_hundred(self) -> int:
        value = _CARDINALS[self._text()]
        self._at += 1
        if value >= 20 and 0 < _CARDINALS.get(self._text(), 0) < 10:
            value += _CARDINALS[self._text()]
            self._at += 1
        return value

    def _ordinal(self) -> Decimal | None:
        value = _ORDINALS.get(self._text())
        if value is None:
            return None
        self._at += 1
        self._is_ordinal = True
        return Decimal(value)


def _denominator(word: str) -> int | None:
    """What a fraction is divided by; plurals too. "Second" is a unit of time."""
    return _DENOMINATORS.get(word) or _DENOMINATORS.get(word.removesuffix("s"))


def _divide(top: Decimal, bottom: Decimal) -> Decimal:
    return _CONTEXT.divide(top, bottom)
