"""Words on which an answer may hang: no rule misspells or replaces them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from proctor.text.numerals import numerals

_UNITS: Final = (
    "second seconds minute minutes hour hours hourly day days daily everyday week weeks weekly weekend weekday "
    "fortnight month months monthly year years yearly annual annually decade decades century centuries noon "
    "midnight quarterly millimeter millimeters millimetre millimetres centimeter centimeters centimetre "
    "centimetres kilometer kilometers kilometre kilometres meter meters metre metres inch inches foot feet yard "
    "yards mile miles milligram milligrams kilogram kilograms kilo kilos gram grams ounce ounces pound pounds ton "
    "tons tonne tonnes milliliter milliliters millilitre millilitres liter liters litre litres gallon gallons "
    "quart quarts pint pints cup cups tablespoon tablespoons teaspoon teaspoons celsius centigrade fahrenheit "
    "kelvin degree degrees dollar dollars buck bucks cent cents euro euros yen rupee rupees yuan franc francs "
    "peso pesos ruble rubles byte bytes bit bits kilobyte kilobytes megabyte megabytes gigabyte gigabytes "
    "terabyte terabytes percent penny pennies nickel nickels dime dimes"
)
_IMPLIED: Final = (
    "quarter quarters half halves halve halved halving halfway midway equal equally even evenly both pair pairs "
    "couple twin twins other others together trio triplet triplets quadruplets octuplets dozen dozens hundreds "
    "thousands millions single once first last each every all none zero"
)
_COMPARISON: Final = (
    "more most less least fewer fewest greater greatest larger largest bigger biggest longer longest taller "
    "tallest older oldest faster fastest quicker quickest higher highest additional smaller smallest shorter "
    "shortest younger youngest slower slowest lower lowest heavier heaviest lighter lightest minimum maximum "
    "limit limits limited capacity above below over under than same different between within up down extra exceed "
    "exceeds exceeded increase increases increased increasing decrease decreases decreased decreasing total "
    "altogether average"
)
_DENIAL: Final = (
    "not never cannot nobody nothing neither nor without except excluding excluded exclude excludes only just "
    "unless instead besides remaining remain remains remained remainder left leftover rest free different beyond "
    "expired broken lose loses lost missing miss misses missed absent lack lacks lacked fail fails failed refuse "
    "refuses refused decline declined avoid avoids avoided skip skips skipped prevent prevents prevented devoid "
    "minus waste wastes wasted incomplete insufficient inactive invalid inedible"
)
_ORDER: Final = (
    "plus times divided multiplied added subtracted sum difference product ratio square squared cube cubed before "
    "after until during since earlier later next previous today yesterday tomorrow true false"
)
_GUARDED: Final = frozenset(" ".join((_UNITS, _IMPLIED, _COMPARISON, _DENIAL, _ORDER)).split())
_DENYING: Final = re.compile(
    r"n't$|^un(?!it|til|der|cle|i)\w{3,}$|^(?:dis(?:like|agree|allow|continu|qualif)|except|exclud)\w*$"
)


@lru_cache(maxsize=8192)
def carries_an_invariant(word: str) -> bool:
    """Whether a word in lower case says a number, a unit, a comparison, a bound, a denial or an order in time."""
    return word in _GUARDED or bool(_DENYING.search(word)) or bool(numerals(word.removesuffix("s")))
