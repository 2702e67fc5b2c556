"""Words that mean the reverse of each other: a rewording that has the one for the other asks something else."""

from __future__ import annotations

import re
from typing import Final

from proctor.text.normalise import normalise

#: Opposites; a side holds its synonyms and forms, parted by spaces. Left out are pairs that a faithful rewording
#: exchanges by turning the sentence round (buy and sell, give and get, win and lose, before and after), and first and
#: last, because the third of three is the last.
_PAIRS: Final = (
    (
        "largest biggest greatest highest tallest longest maximum maximal max most heaviest widest",
        "smallest least lowest shortest minimum minimal min fewest lightest littlest narrowest",
    ),
    ("oldest eldest", "youngest newest"),
    ("earliest", "latest"),
    ("fastest quickest swiftest", "slowest"),
    ("nearest closest", "farthest furthest"),
    ("best", "worst"),
    ("hottest warmest", "coldest coolest"),
    (
        "increase increases increased increasing rise rises rose risen rising raise raises raised "
        "grow grows grew grown",
        "decrease decreases decreased decreasing fall falls fell fallen drop drops dropped reduce reduces reduced "
        "decline declines declined shrink shrinks shrank shrunk",
    ),
    ("add adds added adding addition", "subtract subtracts subtracted subtracting subtraction"),
    ("multiply multiplies multiplied multiplication", "divide divides divided division"),
    ("succeed succeeds succeeded successor follows followed", "precede precedes preceded predecessor"),
    ("ascending", "descending"),
    ("positive", "negative"),
    ("even", "odd"),
    ("true", "false"),
    ("correct right correctly", "incorrect wrong incorrectly"),
    ("always", "never"),
    ("possible", "impossible"),
    ("legal", "illegal"),
    ("above over", "below under beneath"),
    ("inside within", "outside"),
    ("northern north", "southern south"),
    ("eastern east", "western west"),
    ("import imports imported importing", "export exports exported exporting"),
)
OPPOSITES: Final = tuple((frozenset(one.split()), frozenset(other.split())) for one, other in _PAIRS)
_WORD: Final = re.compile(r"[a-z]+")


def turned_round(original: str, rewording: str) -> bool:
    """Whether one text has only the one side of a pair of opposites, and the other text only the other side."""
    old, new = frozenset(_WORD.findall(normalise(original))), frozenset(_WORD.findall(normalise(rewording)))
    return any(
        (_only(old, one, other) and _only(new, other, one)) or (_only(old, other, one) and _only(new, one, other))
        for one, other in OPPOSITES
    )


def _only(words: frozenset[str], these: frozenset[str], those: frozenset[str]) -> bool:
    return not words.isdisjoint(these) and words.isdisjoint(those)
