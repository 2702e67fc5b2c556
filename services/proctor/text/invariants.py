"""Answer invariants: what a rewording may not change if the same answer is to stay right.

Each check is a necessary condition that holds for nearly every faithful rewording and fails for most that change
the answer; none reads the text as a person would. Where a loss is usual in faithful rewordings (a number said
twice and then once) they admit, because the semantic distance is measured as well.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Final

from proctor.text.answers import keeps_unanswered
from proctor.text.entities import keeps_entities
from proctor.text.eras import same_eras
from proctor.text.figure_asked import keeps_asked
from proctor.text.normalise import TEXTS_KEPT, plain_words, words
from proctor.text.numerals import Numeral, prepare, scan_numerals
from proctor.text.quantities import quantities
from proctor.text.relations import keeps_comparison, keeps_negation
from proctor.text.shares import keeps_shares
from proctor.text.sides import Crossed, Sides, shared_names, sides
from proctor.text.units import keeps_units

#: Words that say a number without being one: "a pair" for 2, "a week" for 7. A number that only one of the texts
#: holds is forgiven when the other holds such a word.
_IMPLYING: Final = {
    Decimal(0): "no not none any nothing nobody never without nonzero",
    Decimal("0.01"): "penny pennies",
    Decimal("0.05"): "nickel nickels",
    Decimal("0.1"): "dime dimes",
    Decimal("0.25"): "quarter quarters",
    Decimal("0.5"): "equally evenly equal halfway midway halves halve halving",
    Decimal(2): "both pair pairs couple fortnight twin twins other second half together",
    Decimal(3): "trio triplets quarter quarterly",
    Decimal(4): "month quarter quarters quadruplets",
    Decimal(5): "nickel nickels",
    Decimal(7): "week weekly weeks daily everyday",
    Decimal(8): "octuplets",
    Decimal(10): "decade decades dime dimes",
    Decimal(12): "year yearly annual annually noon midnight",
    Decimal(24): "day days",
    Decimal(30): "month months",
    Decimal(60): "hour minute",
    Decimal(100): "century",
}
_IMPLIED: Final = {value: frozenset(implying.split()) for value, implying in _IMPLYING.items()}
#: Of 1,315 GPT-4 rephrasings of GSM8K the one that lost its story keeps 20 % of the words, the next shortest 55 %.
_KEPT_SHARE: Final = 0.4
#: Single questions may well be asked in a third of the words.
_LONG_WORDS: Final = 20
#: Quotients are rounded to 15 digits, so the reciprocal of a reciprocal misses by this much at most.
_SAME: Final = Decimal("1e-9")
#: A number has one reciprocal, said in a few ways.
_MOST_RECIPROCALS: Final = 16
_COUNTED_AT_A_GLANCE: Final = 5
#: More than "these other " has; the search is held to it, so that a long text is not read once for every number.
_DEFINITE_CHARACTERS: Final = 24
#: What may be lost with its number, because the number was counted from the text.
_THESE: Final = re.compile(r"\b(?:these|those)\s+$")
#: What may be new with its number: a rewording that sums up what the original lists.
_DEFINITE: Final = re.compile(r"\b(?:all|the|these|those)(?: of the| other)?\s+$")


def broken_invariants(original: str, rewording: str) -> list[str]:
    """Names of the invariants that the rewording breaks, in a fixed order; empty when it keeps them all.

    `numerals`: a number vanished, appeared or was replaced, in any notation; a number that is merely said more or
    less often is not broken, nor is 1 ("an hour" for "1 hour") unless it replaces another.
    `units`: a number, a rate or what is asked for changed its unit or currency.
    `negation`: one of the texts denies something and the other does not.
    `comparison`: a bound (at least, at most) came or went, more became less, or largest smallest.
    `shares`: a share of the rest became the rest, or a share of the original amount one of another.
    `asked`: a percentage is asked for and a part in the other text, or the unit of the answer is left open.
    `entity`: a name inside a sentence of the original is missing, or the rewording names one that is not in it.
    `content`: the rewording of a longer text has so few words that conditions must be missing.
    `answer`: the rewording says that an answer follows, or finishes the sentence that was to be finished.
    """
    if original == rewording:
        return []
    return [name for name, keeps in CHECKS.items() if not keeps(original, rewording)]


def keeps_numerals(original: str, rewording: str) -> bool:
    """Whether both texts hold the same numbers, some of them perhaps more often."""
    old, new = prepare(original), prepare(rewording)
    if _said(old) == _said(new):
        return True
    names = shared_names(original, rewording)
    lost, gained = _missing(old, new), _missing(new, old)
    explained_old = _converted(old, new) | _turned(lost, old, new, names) | _summed_up(old, _THESE)
    explained_new = _converted(new, old) | _turned(gained, new, old, names) | _summed_up(new, _DEFINITE)
    if lost or gained:
        explained_old |= lost & same_eras(old, new)
        explained_new |= gained & same_eras(new, old)
    if lost - explained_old or gained - explained_new:
        return False
    old_counts, new_counts = _cardinals(scan_numerals(old)), _cardinals(scan_numerals(new))
    for value in explained_old - new_counts.keys():
        del old_counts[value]
    for value in explained_new - old_counts.keys():
        del new_counts[value]
    # Said less often or more often is repetition; one less and another more is a replacement.
    replaced = bool(old_counts - new_counts) and bool(new_counts - old_counts)
    return not (replaced and old_counts.total() == new_counts.total())


def keeps_content(original: str, rewording: str) -> bool:
    """False when most of a longer text is gone: a question alone, without the story that it asks about."""
    length = len(words(original))
    return length < _LONG_WORDS or len(words(rewording)) >= _KEPT_SHARE * length


@lru_cache(maxsize=TEXTS_KEPT)
def _said(prepared: str) -> Counter[tuple[Decimal, bool]]:
    """How often each number is said; with the same in both texts there is nothing that could be lost."""
    return Counter((numeral.value, numeral.ordinal) for numeral in scan_numerals(prepared))


def _cardinals(found: Iterable[Numeral]) -> Counter[Decimal]:
    return Counter(numeral.value for numeral in found if not numeral.ordinal and numeral.value != 1)


def _missing(text: str, other_text: str) -> set[Decimal]:
    """Numbers of one prepared text that the other neither holds nor implies."""
    these, others = scan_numerals(text), scan_numerals(other_text)
    here, there = {numeral.value for numeral in these}, {numeral.value for numeral in others}
    # "A third of them" may be read as an ordinal: 3 stands for 1/3 too.
    there |= {1 / numeral.value for numeral in others if numeral.ordinal and numeral.value}
    other_ordinals = {numeral.value for numeral in others if numeral.ordinal}
    cues = plain_words(other_text)
    near = sorted(there)
    missing = set()
    for value, ordinal in {(numeral.value, numeral.ordinal) for numeral in these}:
        if value == 1 or value in there or _is_near(value, near):
            continue
        if ordinal and not other_ordinals - here:
            # "The third child" may become "the last"; it may not become "the fifth".
            continue
        if not _IMPLIED.get(value, frozenset()) & cues:
            missing.add(value)
    return missing


def _is_near(value: Decimal, ordered: Sequence[Decimal]) -> bool:
    """Whether one of the numbers is taken for the same; the next ones on either side are the nearest."""
    place = bisect_left(ordered, value)
    return any(abs(value - each) < _SAME for each in ordered[max(0, place - 1) : place + 1])


def _converted(text: str, other_text: str) -> set[Decimal]:
    """Numbers of a prepared text that belong to an amount which the other gives in another unit."""
    there = {(quantity.kind, quantity.amount) for quantity in quantities(other_text)}
    return {
        value
        for quantity in quantities(text)
        if (quantity.kind, quantity.amount) in there
        for value in quantity.said_with
    }


def _turned(values: set[Decimal], text: str, other_text: str, names: frozenset[str]) -> set[Decimal]:
    """Those of the numbers whose reciprocal stands in the other text with a name on the other side.

    "Ann has half as many as Bo" for "Bo has twice as many as Ann"; with the names where they were it is a change.
    """
    others = sorted({numeral.value for numeral in scan_numerals(other_text)})
    reciprocals = {value: near for value in values if (near := _reciprocals(value, others))}
    if not reciprocals:
        return set()
    here = _sides_of(frozenset(reciprocals), text, names)
    there = _sides_of(frozenset().union(*reciprocals.values()), other_text, names)
    found: set[Decimal] = set()
    for value, turned in reciprocals.items():
        crossed = Crossed(each for other in turned for each in there[other])
        if any(map(crossed.any_turned, here[value])):
            found.add(value)
    return found


def _reciprocals(value: Decimal, ordered: Sequence[Decimal]) -> list[Decimal]:
    """Those of the numbers that are 1 by the value, but no more than a text has that was not made to have them."""
    if not value:
        return []
    # A little further than the comparison that decides, for what division rounds off.
    low, high = sorted(((1 - 2 * _SAME) / value, (1 + 2 * _SAME) / value))
    near = ordered[bisect_left(ordered, low) : bisect_right(ordered, high)]
    return list(islice((other for other in near if abs(value * other - 1) < _SAME), _MOST_RECIPROCALS))


def _sides_of(values: frozenset[Decimal], text: str, names: frozenset[str]) -> dict[Decimal, set[Sides]]:
    found: dict[Decimal, set[Sides]] = {value: set() for value in values}
    for numeral in scan_numerals(text):
        if numeral.value in found:
            found[numeral.value].add(sides(text, numeral.start, numeral.end, names))
    return found


def _summed_up(text: str, after: re.Pattern[str]) -> set[Decimal]:
    """Small numbers that count what a prepared text has named: "all three", "these 3 countries"."""

    def follows(numeral: Numeral) -> bool:
        return after.search(text, max(0, numeral.start - _DEFINITE_CHARACTERS), numeral.start) is not None

    small = (numeral for numeral in scan_numerals(text) if 1 < numeral.value <= _COUNTED_AT_A_GLANCE)
    return {numeral.value for numeral in small if follows(numeral)}


CHECKS: Final[dict[str, Callable[[str, str], bool]]] = {
    "numerals": keeps_numerals,
    "units": keeps_units,
    "negation": keeps_negation,
    "comparison": keeps_comparison,
    "shares": keeps_shares,
    "asked": keeps_asked,
    "entity": keeps_entities,
    "content": keeps_content,
    "answer": keeps_unanswered,
}
