"""Units and currencies, and whether two texts use the same ones for the same numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from proctor.text.normalise import TEXTS_KEPT, plain_words
from proctor.text.numerals import prepare, scan_numerals

#: Kinds of quantity; units parted by '|', spellings by spaces, the first of which names the unit. Cents are read as
#: parts of a dollar by `numerals`, so both are one unit here.
_KINDS: Final = {
    "time": "second seconds sec secs|minute minutes min mins|hour hours hr hrs hourly|day days daily|week weeks weekly"
    "|month months monthly|year years yearly annual annually yr yrs|decade decades|century centuries",
    "length": "millimeter millimeters millimetre millimetres mm|centimeter centimeters centimetre centimetres cm"
    "|kilometer kilometers kilometre kilometres km kms kph kmh|meter meters metre metres|inch inches|foot feet ft"
    "|yard yards yd yds|mile miles mph mi",
    "weight": "milligram milligrams mg|kilogram kilograms kg kgs kilo kilos|gram grams|ounce ounces oz"
    "|pound pounds lb lbs \u00a3 gbp|ton tons tonne tonnes",
    "volume": "milliliter milliliters millilitre millilitres ml|liter liters litre litres|gallon gallons gal"
    "|quart quarts|pint pints|cup cups|tablespoon tablespoons tbsp|teaspoon teaspoons tsp",
    "temperature": "celsius centigrade \u00b0c|fahrenheit \u00b0f|kelvin",
    "currency": "dollar dollars usd buck bucks $ cent cents|euro euros eur \u20ac|yen jpy \u00a5"
    "|rupee rupees inr \u20b9|yuan rmb cny|franc francs chf|peso pesos|ruble rubles|krw",
    "data": "byte bytes|bit bits|kilobyte kilobytes kb|megabyte megabytes mb|gigabyte gigabytes gb"
    "|terabyte terabytes tb",
}


class Unit(NamedTuple):
    """A unit and the kind of quantity that it measures."""

    kind: str
    name: str


_UNITS: Final[dict[str, Unit]] = {
    spelling: Unit(kind, spellings.split()[0])
    for kind, units in _KINDS.items()
    for spellings in units.split("|")
    for spelling in spellings.split()
}
_AFTER_NUMBER: Final = re.compile(r"[\s-]{0,2}(?:degrees? )?(\u00b0[cf]\b|[a-z]+|[$\u20ac\u00a3\u00a5\u20b9])")
_RATE: Final = re.compile(
    r"(?:\b(?:per|each|every) |/)([a-z]+)|\b(hourly|daily|weekly|monthly|yearly|annual|annually)\b"
)
#: One of these, or a stroke, is in every rate.
_RATE_WORDS: Final = frozenset(
    ["per", "each", "every", "hourly", "daily", "weekly", "monthly", "yearly", "annual", "annually"]
)
#: An article may say a rate ("an hour") and may not ("in an hour"), so it proves none and excuses one.
_MAYBE_RATE: Final = re.compile(r"\ban? ([a-z]+)")
_ASKED: Final = re.compile(r"\b(?:how many|number of|in|amount of) (?:total |more |whole )?([a-z]+)")


def unit_of(word: str) -> Unit | None:
    """The unit that a case-folded word or sign spells; None where it spells none."""
    return _UNITS.get(word)


def keeps_units(original: str, rewording: str) -> bool:
    """False when a number that both texts hold stands with other units, or another unit is asked for or counted by."""
    old, new = prepare(original), prepare(rewording)
    old_units, new_units = _units_of_numbers(old), _units_of_numbers(new)
    for value in old_units.keys() & new_units.keys():
        if not old_units[value] & new_units[value]:
            return False
    if _rates_differ(old, new) or _rates_differ(new, old):
        return False
    asked_old, asked_new = asked_units(old), asked_units(new)
    kinds = {unit.kind for unit in asked_old} & {unit.kind for unit in asked_new}
    return all(any(unit.kind == kind for unit in asked_old & asked_new) for kind in kinds)


@lru_cache(maxsize=TEXTS_KEPT)
def _units_of_numbers(prepared: str) -> Mapping[Decimal, set[Unit]]:
    """Units that stand right before or after each number; numbers without one are left out."""
    found: dict[Decimal, set[Unit]] = {}
    for numeral in scan_numerals(prepared):
        before = _UNITS.get(prepared[numeral.start - 1 : numeral.start])
        after = _AFTER_NUMBER.match(prepared, numeral.end)
        units = {unit for unit in (before, _UNITS.get(after[1]) if after else None) if unit is not None}
        if units:
            found.setdefault(numeral.value, set()).update(units)
    return found


def _rates_differ(these: str, others: str) -> bool:
    """Whether one text counts per hour and the other per day, and neither names the other's unit as one."""
    here, there = _rates(these), _rates(others)
    if here == there:
        return False
    kinds = {unit.kind for unit in here} & {unit.kind for unit in there}
    return bool(kinds) and not here & (there | _units_of(_MAYBE_RATE, others))


@lru_cache(maxsize=TEXTS_KEPT)
def _rates(prepared: str) -> frozenset[Unit]:
    if "/" not in prepared and plain_words(prepared).isdisjoint(_RATE_WORDS):
        return frozenset()
    return frozenset(_units_of(_RATE, prepared))


def _units_of(pattern: re.Pattern[str], prepared: str) -> set[Unit]:
    words = (word for match in pattern.finditer(prepared) for word in match.groups() if word is not None)
    return {_UNITS[word] for word in words if word in _UNITS}


@lru_cache(maxsize=TEXTS_KEPT)
def asked_units(prepared: str) -> frozenset[Unit]:
    """Units in which a prepared text asks for a number: "how many minutes", "in dollars"."""
    return frozenset(_UNITS[word] for word in _ASKED.findall(prepared) if word in _UNITS)
