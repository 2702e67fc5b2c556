"""Answer invariants: what a rewording may not change if the same answer is to stay right.

Each check is a necessary condition that holds for nearly every faithful rewording and fails for most that change
the answer; none reads the text as a person would. Where a loss is usual in faithful rewordings (a number said
twice and then once) they admit, because the semantic distance is measured as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Final

from proctor.text.entities import keeps_entities
from proctor.text.normalise import words
from proctor.text.numerals import Numeral, prepare, scan_numerals
from proctor.text.relations import keeps_comparison, keeps_negation
from proctor.text.units import keeps_units

#: Words that say a number without being one: "a pair" for 2, "a week" for 7. A number that only one of the texts
#: holds is forgiven when the other holds such a word.
_IMPLYING: Final = {
    Decimal("0.25"): "quarter quarters",
    Decimal("0.5"): "equally evenly equal halfway midway halves halve halving",
    Decimal(2): "both pair pairs couple fortnight twin twins other second half together",
    Decimal(3): "trio triplets quarter quarterly",
    Decimal(4): "month quarter quarters quadruplets",
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
_WORD: Final = re.compile(r"[a-z]+")
#: Quotients are rounded to 15 digits, so the reciprocal of a reciprocal misses by this much at most.
_SAME: Final = Decimal("1e-9")


def broken_invariants(original: str, rewording: str) -> list[str]:
    """Names of the invariants that the rewording breaks, in a fixed order; empty when it keeps them all.

    `numerals`: a number vanished, appeared or was replaced, in any notation; a number that is merely said more or
    less often is not broken, nor is 1 ("an hour" for "1 hour") unless it replaces another.
    `units`: a number, or what is asked for, changed its unit or currency.
    `negation`: one of the texts denies something and the other does not.
    `comparison`: a bound (at least, at most) came or went, or more became less.
    `entity`: a name inside a sentence of the original is missing, or the rewording names one that is not in it.
    `content`: the rewording of a longer text has so few words that conditions must be missing.
    """
    return [name for name, keeps in CHECKS.items() if not keeps(original, rewording)]


def keeps_numerals(original: str, rewording: str) -> bool:
    """Whether both texts hold the same numbers, some of them perhaps more often."""
    old, new = prepare(original), prepare(rewording)
    old_found, new_found = scan_numerals(old), scan_numerals(new)
    if _missing(old_found, new_found, new) or _missing(new_found, old_found, old):
        return False
    old_counts, new_counts = _cardinals(old_found), _cardinals(new_found)
    # Said less often or more often is repetition; one less and another more is a replacement.
    replaced = bool(old_counts - new_counts) and bool(new_counts - old_counts)
    return not (replaced and old_counts.total() == new_counts.total())


def keeps_content(original: str, rewording: str) -> bool:
    """False when most of a longer text is gone: a question alone, without the story that it asks about."""
    length = len(words(original))
    return length < _LONG_WORDS or len(words(rewording)) >= _KEPT_SHARE * length


def _cardinals(found: Iterable[Numeral]) -> Counter[Decimal]:
    return Counter(numeral.value for numeral in found if not numeral.ordinal and numeral.value != 1)


def _missing(these: Sequence[Numeral], others: Sequence[Numeral], other_text: str) -> bool:
    """Whether one text has a number that the other neither holds nor implies."""
    here, there = {numeral.value for numeral in these}, {numeral.value for numeral in others}
    # "A third of them" may be read as an ordinal: 3 stands for 1/3 too.
    there |= {1 / numeral.value for numeral in others if numeral.ordinal and numeral.value}
    other_ordinals = {numeral.value for numeral in others if numeral.ordinal}
    cues = set(_WORD.findall(other_text))
    for value, ordinal in {(numeral.value, numeral.ordinal) for numeral in these}:
        if value == 1 or value in there or any(abs(value - each) < _SAME for each in there):
            continue
        if ordinal and not other_ordinals - here:
            # "The third child" may become "the last"; it may not become "the fifth".
            continue
        if not _IMPLIED.get(value, frozenset()) & cues:
            return True
    return False


CHECKS: Final[dict[str, Callable[[str, str], bool]]] = {
    "numerals": keeps_numerals,
    "units": keeps_units,
    "negation": keeps_negation,
    "comparison": keeps_comparison,
    "entity": keeps_entities,
    "content": keeps_content,
}
