"""English words that say numbers, and what they are worth."""

from __future__ import annotations

from typing import Final

_UNITS: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
CARDINALS: Final = {word: value for value, word in enumerate(_UNITS.split())} | {
    spelling: 10 * (tens + 2)
    for tens, word in enumerate(_TENS.split())
    # "Ten twenties" are notes of 20, and "her twenties" are her 20s.
    for spelling in (word, f"{word.removesuffix('y')}ies")
}
SCALES: Final = {"hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_FROM_THIRD: Final = (
    "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
    "seventeenth eighteenth nineteenth twentieth"
)
ORDINALS: Final = {word: value + 3 for value, word in enumerate(_FROM_THIRD.split())} | {
    "thirtieth": 30,
    "fortieth": 40,
    "fiftieth": 50,
    "hundredth": 100,
    "thousandth": 1000,
}
DENOMINATORS: Final = ORDINALS | {"quarter": 4, "half": 2}
MULTIPLES: Final = {
    **dict.fromkeys(("twice", "double", "doubles", "doubled", "doubling"), 2),
    **dict.fromkeys(("thrice", "triple", "triples", "tripled", "tripling", "treble"), 3),
    **dict.fromkeys(("quadruple", "quadruples", "quadrupled", "quadrupling"), 4),
    **dict.fromkeys(("quintuple", "quintuples", "quintupled"), 5),
    **{f"{word}fold": value for word, value in CARDINALS.items()},
}
HALVES: Final = {"half", "halved", "halving"}
ARTICLES: Final = {"a", "an"}
PERCENT: Final = {"%", "percent", "pct"}
POINTS: Final = {"point", "points"}
#: "Three times fewer" is a third.
DOWN_TO: Final = {"fewer", "less", "smaller", "lower", "lighter", "shorter", "slower", "younger", "cheaper"}
HUNDREDTHS: Final = PERCENT | {"cent", "cents", "\u00a2"}
MULTIPLIERS: Final = {"dozen": 12, "decades": 10}
