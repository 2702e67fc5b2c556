"""Numbers of a question that could be others: where they stand, how they are written, what they may become."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Final, NamedTuple

from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.english import Fixed
from proctor.perturbation.strategies.number_words import NUMBERS, WORDS
from proctor.text.numerals import numerals

_DIGITS: Final = re.compile(
    r"(?<![\w.,/:#-])(?P<number>\d{1,3}(?:,\d{3})+|\d+)(?P<decimals>\.\d{1,2})?(?P<percent> ?(?:%|percent\b))?"
    r"(?![\w/:]|[.,]\d|-\d| ?(?:x|by|/|\+|\*|=) ?\d| \d|-?(?:st|nd|rd|th)\b)"
)
_SPELT: Final = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(NUMBERS, key=len, reverse=True))})(?![\w-])")
#: Words before a number that tie it to something said elsewhere, to its article, or make a label of it.
_TIED_BEFORE: Final = re.compile(
    r"(?:\b(?:the|these|those|all|other|others|remaining|last|first|next|previous|both|every|his|her|their|its|my|your|our"
    r"|a|an|another|and a|no\.?|page|chapter|room|grade|level|number|bus|route|step|day|week|month|year|question|class"
    r"|size|type|version|age|aged|hundred|thousand|million|january|february|march|april|may|june|july|august|september"
    r"|october|november|december|until|at)|#|'s|\u2019s)\s+$",
    re.IGNORECASE,
)
#: Words behind a number that make it a time, a part, a scale or a count of something fixed.
_TIED_BEHIND: Final = re.compile(
    r"\s*-?\s*(?:am\b|pm\b|a\.m|p\.m|o'clock|dozens?\b|hundreds?\b|thousands?\b|millions?\b|billions?\b|thirds?\b|fourths?\b"
    r"|fifths?\b|sixths?\b|eighths?\b|tenths?\b|halves\b|quarters?\b|and a\b|in every\b|out of\b|degrees?\b"
    r"|weeks? (?:in|per|a) |seasons?\b|semesters?\b|sides?\b|sided\b|wheel|legs?\b|corners?\b)",
    re.IGNORECASE,
)
#: Behind a number, what bounds it.
_CAPS: Final = (
    (re.compile(r"-?\s*days? (?:a|per|each|every|in a|out of the) week", re.I), 6),
    (re.compile(r"-?\s*hours? (?:a|per|each|every|in a) (?:day|night)|-?\s*hours? daily", re.I), 12),
    (re.compile(r"-?\s*minutes? (?:a|per|each|every|in an) hour", re.I), 55),
    (re.compile(r"-?\s*months? (?:a|per|each|every|in a|of the) year", re.I), 11),
    (re.compile(r"-?\s*days? (?:a|per|each|every|in a|of the) month", re.I), 28),
)
_CENTS: Final = re.compile(r"\s?(?:cents?\b|\u00a2)")
_MONEY: Final = ("$", "\u20ac", "\u00a3")
#: Without a comma or a sign of money before them.
_YEAR: Final = range(1600, 2100)
#: Round numbers stay round.
_GRAINS: Final = (1000, 500, 100, 50, 10, 5)
_BEFORE: Final = 24


class Site(NamedTuple):
    """A number of the question."""

    start: int
    end: int
    value: Fraction
    """As it is written: 20 for 20% and for 20 cents."""
    decimals: int
    percent: bool
    hundredths: bool
    """Whether it is also read as its hundredth: percentages and cents."""
    spelt: bool
    grouped: bool
    cap: int | None

    @property
    def readings(self) -> tuple[Fraction, ...]:
        """The values under which a solution may use it."""
        return (self.value, self.value / 100) if self.hundredths else (self.value,)

    @property
    def meant(self) -> Fraction:
        """The value that `text.numerals` reads."""
        return self.value / 100 if self.hundredths else self.value

    def written(self, value: Fraction) -> str:
        """Another value in this number's notation."""
        if self.spelt:
            return WORDS[int(value)]
        plain = Decimal(value.numerator) / Decimal(value.denominator)
        return f"{plain:,.{self.decimals}f}" if self.grouped else f"{plain:.{self.decimals}f}"

    def drawn(self, draws: Draws) -> Fraction:
        """A value of the same kind, uniform from 3/5 to 7/5 of this one in steps of the same grain; never 1.

        Symmetrical, because larger numbers alone make a problem harder (arXiv 2605.28700 on GSM-Symbolic). A
        percentage stays on its side of 100; a count that a calendar bounds (days a week) stays within it.
        """
        unit = Fraction(1, 10**self.decimals)
        steps = self.value / unit
        grain = unit * next((one for one in _GRAINS if steps % one == 0 and steps >= 2 * one), 1)
        here = int(self.value / grain)
        wiggle = max(1, 2 * here // 5)
        low, high = here - wiggle, here + wiggle
        bounds = [self.cap, max(WORDS) if self.spelt else None, 99 if self.percent and self.value < 100 else None]
        high = min([high, *(int(bound / grain) for bound in bounds if bound is not None)])
        low = max(low, int(100 / grain) + 1 if self.percent and self.value > 100 else 1, int(1 / grain) + 1)
        return grain * (low + draws.below(high - low + 1)) if high >= low else self.value


def sites(question: str) -> list[Site]:
    """The numbers of a question that nothing ties to another word, in reading order.

    Left out: numbers behind an article or a determiner, clock times, dates, fractions, ordinals, labels, 0 and 1.
    """
    fixed = Fixed(question)
    found = [site for site in _candidates(question) if not fixed.touches(site.start, site.end)]
    unread = Counter(Fraction(value) for value in numerals(question).elements())
    kept = []
    for site in sorted(found):
        if unread[site.meant]:
            # What the reader of numerals takes otherwise ("two dozen") is not this number alone.
            unread[site.meant] -= 1
            kept.append(site)
    return kept


def _candidates(question: str) -> Iterator[Site]:
    for match in _DIGITS.finditer(question):
        start, end = match.span()
        value = Fraction(match["number"].replace(",", "") + (match["decimals"] or ""))
        year = match["number"].isdigit() and value in _YEAR and question[start - 1 : start] not in _MONEY
        if year or value <= 1 or (value == 100 and match["percent"]) or _tied(question, start, end):
            continue
        percent = match["percent"] is not None
        hundredths = percent or bool(_CENTS.match(question, end))
        stop = match.end("decimals") if match["decimals"] else match.end("number")
        decimals = len(match["decimals"] or ".") - 1
        grouped = "," in match["number"]
        yield Site(start, stop, value, decimals, percent, hundredths, False, grouped, _cap(question, end))
    for match in _SPELT.finditer(question):
        if not _tied(question, *match.span()) and not _CENTS.match(question, match.end()):
            value = Fraction(NUMBERS[match.group()])
            yield Site(*match.span(), value, 0, False, False, True, False, _cap(question, match.end()))


def _tied(question: str, start: int, end: int) -> bool:
    return bool(_TIED_BEFORE.search(question, max(0, start - _BEFORE), start) or _TIED_BEHIND.match(question, end))


def _cap(question: str, end: int) -> int | None:
    return next((cap for pattern, cap in _CAPS if pattern.match(question, end)), None)
