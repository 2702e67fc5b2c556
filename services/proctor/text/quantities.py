"""Amounts with their unit, so that 90 minutes, an hour and a half, and 1 hour and 30 minutes are the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from proctor.text.normalise import TEXTS_KEPT
from proctor.text.numerals import scan_numerals
from proctor.text.units import unit_of

#: Units that convert exactly, by dimension, each with its size in the dimension's smallest. Months and days do not
#: convert, nor do kilobytes, whose size is disputed.
_SIZES: Final[dict[str, dict[str, int]]] = {
    "time": {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800},
    "calendar": {"month": 1, "year": 12, "decade": 120, "century": 1200},
    "metric length": {"millimeter": 1, "centimeter": 10, "meter": 1000, "kilometer": 1_000_000},
    "length": {"inch": 1, "foot": 12, "yard": 36, "mile": 63_360},
    "metric weight": {"milligram": 1, "gram": 1000, "kilogram": 1_000_000},
    "weight": {"ounce": 1, "pound": 16},
    "metric volume": {"milliliter": 1, "liter": 1000},
    "volume": {"teaspoon": 1, "tablespoon": 3, "cup": 48, "pint": 96, "quart": 192, "gallon": 768},
}
_SIZE_OF: Final = {name: (kind, Decimal(size)) for kind, sizes in _SIZES.items() for name, size in sizes.items()}
_UNIT_AFTER: Final = re.compile(r"[\s-]{0,2}(?:(?:of )?(?:an?|the) )?([a-z]+)(\s+and\s+a\s+half\b)?")
_ONE_UNIT: Final = re.compile(r"\b(?:an?|each|every|per) ([a-z]+)(\s+and\s+a\s+half\b)?")
_HALF_OF: Final = re.compile(r"(hour|minute)$")
_JOINED: Final = re.compile(r"\s*(?:,|,?\s*and|\+)?\s*")
_CLOCK: Final = re.compile(r"(?<![\d:.$])(\d{1,2})(?::(\d\d))?(?:\s*([ap])\.?m\b)?(?![\d:])")
_HALF: Final = Decimal("0.5")


class Quantity(NamedTuple):
    """An amount in the smallest unit of its dimension, the numbers that it was said with, and where it stands."""

    kind: str
    amount: Decimal
    said_with: frozenset[Decimal]
    start: int
    end: int


@lru_cache(maxsize=TEXTS_KEPT)
def quantities(prepared: str) -> tuple[Quantity, ...]:
    """The amounts of a prepared text in units that convert: single ones, compound ones as one, and times of day."""
    single = sorted((*_with_numbers(prepared), *_with_articles(prepared)), key=lambda each: each.start)
    return (*single, *_compound(single, prepared), *_times_of_day(prepared))


def _with_numbers(prepared: str) -> Iterator[Quantity]:
    for numeral in scan_numerals(prepared):
        # The reader of numbers takes "half an hour" whole, as 30.
        whole = _HALF_OF.search(prepared, numeral.start, numeral.end)
        if whole is not None:
            size = _SIZE_OF[whole[1]][1] / 2
            yield Quantity("time", size, frozenset([numeral.value]), numeral.start, numeral.end)
            continue
        match = _UNIT_AFTER.match(prepared, numeral.end)
        if match is not None:
            yield from _quantity(numeral.value, frozenset([numeral.value]), match, numeral.start)


def _with_articles(prepared: str) -> Iterator[Quantity]:
    for match in _ONE_UNIT.finditer(prepared):
        yield from _quantity(Decimal(1), frozenset(), match, match.start())


def _quantity(value: Decimal, said_with: frozenset[Decimal], match: re.Match[str], start: int) -> Iterator[Quantity]:
    unit = unit_of(match[1])
    if unit is not None and unit.name in _SIZE_OF:
        kind, size = _SIZE_OF[unit.name]
        if match[2]:
            value, said_with = value + _HALF, said_with | {_HALF}
        yield Quantity(kind, value * size, said_with, start, match.end())


def _compound(single: list[Quantity], prepared: str) -> Iterator[Quantity]:
    for first, second in pairwise(single):
        adjacent = _JOINED.fullmatch(prepared, first.end, second.start) if first.end <= second.start else None
        if adjacent is not None and first.kind == second.kind and second.amount < first.amount:
            amount = first.amount + second.amount
            yield Quantity(first.kind, amount, first.said_with | second.said_with, first.start, second.end)


def _times_of_day(prepared: str) -> Iterator[Quantity]:
    """In minutes after midnight; a time that may be either half of the day's is given as both."""
    for match in _CLOCK.finditer(prepared):
        hour, minutes, half = int(match[1]), match[2], match[3]
        if hour > 24 or (minutes is None and half is None):
            continue
        said_with = frozenset(Decimal(part) for part in (match[1], minutes) if part is not None)
        hours = {hour % 12 + (12 if half == "p" else 0)} if half else {hour, hour + 12} if hour < 12 else {hour}
        for each in sorted(hours):
            yield Quantity("time of day", Decimal(60 * each + int(minutes or 0)), said_with, match.start(), match.end())
