"""Of what a share is taken: "40 % of the remaining films" is not "the remaining 40 % of the films"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final, Literal

from proctor.text.normalise import TEXTS_KEPT, plain_words
from proctor.text.numerals import prepare, scan_numerals

Base = Literal["rest", "is_rest", "first", "other"]
"""A share of what is left; what is left, which is that share; a share of what there was first; any other number."""

_OF: Final = r"\s*(?:percent|%)?\s*of (?:the |his |her |its |their |these |those )?"
_OF_REST: Final = re.compile(_OF + r"(?:remaining|remainder|rest|leftovers?|what(?: is|'s| was)? (?:left|remaining))\b")
_OF_FIRST: Final = re.compile(_OF + r"(?:original|initial|starting)\b")
_IS_REST: Final = re.compile(r"\b(?:remaining|leftover)\s+$")
#: One of these is in every text that takes a share of the rest or of what was first.
_CUES: Final = frozenset(
    ("remaining", "remainder", "rest", "leftover", "leftovers", "left", "original", "initial", "starting")
)
#: Ways to speak of what there was first, of which any excuses that a text does not say so right after the share.
_FIRST: Final = re.compile(r"\b(?:original|initial|starting|start|previous|first|former|base|beginn?ing)\w*\b")
#: Characters around a number in which its base is said; they bound the work on hostile texts.
_REACH_CHARACTERS: Final = 60


def keeps_shares(original: str, rewording: str) -> bool:
    """False when a share of the rest became the rest itself, or a share of the first amount one of another.

    "20 % of the original price every year" is no compounding, which "20 % every year" may be.
    """
    old, new = prepare(original), prepare(rewording)
    if _CUES.isdisjoint(plain_words(old)) and _CUES.isdisjoint(plain_words(new)):
        return True
    old_bases, new_bases = _bases(old), _bases(new)
    for value in old_bases.keys() & new_bases.keys():
        if {old_bases[value], new_bases[value]} == {frozenset(("rest",)), frozenset(("is_rest",))}:
            return False
    return not (_forgets_first(old_bases, new_bases, new) or _forgets_first(new_bases, old_bases, old))


def _forgets_first(these: Mapping[Decimal, frozenset[Base]], others: Mapping[Decimal, object], text: str) -> bool:
    """Whether a share of the first amount stands in a text that has the number and says nothing of what was first."""
    shares = {value for value, bases in these.items() if "first" in bases}
    return not shares.isdisjoint(others.keys()) and _FIRST.search(text) is None


@lru_cache(maxsize=TEXTS_KEPT)
def _bases(prepared: str) -> Mapping[Decimal, frozenset[Base]]:
    numerals = scan_numerals(prepared)
    if plain_words(prepared).isdisjoint(_CUES):
        return {numeral.value: frozenset(("other",)) for numeral in numerals}
    found: dict[Decimal, set[Base]] = {}
    for numeral in numerals:
        found.setdefault(numeral.value, set()).add(_base(prepared, numeral.start, numeral.end))
    return {value: frozenset(bases) for value, bases in found.items()}


def _base(prepared: str, start: int, end: int) -> Base:
    after = prepared[end : end + _REACH_CHARACTERS]
    if _OF_REST.match(after):
        return "rest"
    if _OF_FIRST.match(after):
        return "first"
    return "is_rest" if _IS_REST.search(prepared[max(0, start - _REACH_CHARACTERS) : start]) else "other"
