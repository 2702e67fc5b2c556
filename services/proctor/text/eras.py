"""Decades and centuries in their usual names: "the 80s" for "the 1980s", "the 1800s" for "the nineteenth century"."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from proctor.text.normalise import TEXTS_KEPT
from proctor.text.numerals import Numeral, scan_numerals

_PLURAL: Final = re.compile(r"'?s\b")
_CENTURY: Final = re.compile(r"[\s-]+(?:century|centuries)\b")
#: Of "the nineteenth and twentieth centuries" every ordinal belongs to the word.
_LISTED: Final = re.compile(r"[\s,-]+(?:(?:and|or|to|through) )?(?:the )?$")
_FIRST_YEAR: Final = 1000
_LAST_YEAR: Final = 2100
_CENTURY_YEARS: Final = 100
_DECADE_YEARS: Final = 10
_MOST_DIGITS: Final = 4


class Era(NamedTuple):
    """A decade or a century, and the number that it is called by."""

    years: int
    """How many it lasts: 10 or 100."""
    begins: int
    """Its first year; of a decade without its century the year of any century, 0 to 90."""
    said: Decimal


def same_eras(prepared: str, other_prepared: str) -> set[Decimal]:
    """Numbers of a prepared text that name an era which the other text names too, in whatever way."""
    there = _eras(other_prepared)
    return {era.said for era in _eras(prepared) if any(_is_same(era, other) for other in there)}


def _is_same(one: Era, other: Era) -> bool:
    if one.years != other.years:
        return False
    short = one.years == _DECADE_YEARS and min(one.begins, other.begins) < _CENTURY_YEARS
    return (one.begins - other.begins) % _CENTURY_YEARS == 0 if short else one.begins == other.begins


@lru_cache(maxsize=TEXTS_KEPT)
def _eras(prepared: str) -> tuple[Era, ...]:
    found: list[Era] = []
    after: Numeral | None = None
    for numeral in reversed(scan_numerals(prepared)):
        era = _era(prepared, numeral, after)
        if era is not None:
            found.append(era)
        after = numeral if era is not None and numeral.ordinal else None
    return tuple(found)


def _era(prepared: str, numeral: Numeral, century_after: Numeral | None) -> Era | None:
    value = numeral.value
    if not value.is_finite() or value.adjusted() > _MOST_DIGITS:
        # No year, and too large to be divided by ten.
        return None
    if numeral.ordinal:
        between = "" if century_after is None else prepared[numeral.end : century_after.start]
        named = _CENTURY.match(prepared, numeral.end) or (between and _LISTED.fullmatch(between))
        return Era(_CENTURY_YEARS, _CENTURY_YEARS * (int(value) - 1), value) if named else None
    if value % _DECADE_YEARS or not _PLURAL.match(prepared, numeral.end):
        return None
    year = int(value)
    if _FIRST_YEAR <= year < _LAST_YEAR and year % _CENTURY_YEARS == 0:
        return Era(_CENTURY_YEARS, year, value)
    if year < _CENTURY_YEARS or _FIRST_YEAR <= year < _LAST_YEAR:
        return Era(_DECADE_YEARS, year, value)
    return None
