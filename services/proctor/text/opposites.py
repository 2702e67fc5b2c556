"""Words that mean the reverse of each other: a rewording that has the one for the other asks something else."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from proctor.text.normalise import TEXTS_KEPT, normalise, plain_words

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
#: For each word the pairs that it is in, by their number, and its side of them.
_PLACES: Final = {
    word: tuple((pair, side) for pair, sides in enumerate(OPPOSITES) for side in (0, 1) if word in sides[side])
    for word in frozenset().union(*(words for pair in OPPOSITES for words in pair))
}


def turned_round(original: str, rewording: str) -> bool:
    """Whether one text has only the one side of a pair of opposites, and the other text only the other side."""
    old, new = _one_sided(normalise(original)), _one_sided(normalise(rewording))
    return any((pair, 1 - side) in new for pair, side in old)


@lru_cache(maxsize=TEXTS_KEPT)
def _one_sided(normalised: str) -> frozenset[tuple[int, int]]:
    """The pairs of which a text has one side only, and which side."""
    held = {place for word in plain_words(normalised) for place in _PLACES.get(word, ())}
    return frozenset((pair, side) for pair, side in held if (pair, 1 - side) not in held)
