"""Who stands on which side of a relation: "Ann is half as old as Bo" and "Bo is twice as old as Ann" agree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from proctor.text.normalise import TEXTS_KEPT, canonical_text

_TOKEN: Final = re.compile(r"[^\W\d_]+")
#: A name further off than this is not what a relation is about; it also bounds the work on hostile texts.
_REACH_CHARACTERS: Final = 300
_SENTENCE_END: Final = re.compile(r"[.;?!]")


class Sides(NamedTuple):
    """The nearest names before and after a place in its sentence; None where there is none."""

    before: str | None
    after: str | None

    def turned(self, other: Sides) -> bool:
        """Whether the names have changed sides, as they do where a relation is said the other way round.

        One name is enough where the other is not named: "…, and Zack is twice her age".
        """
        return Crossed((other,)).any_turned(self)


class Crossed:
    """Many sides, asked whether one of them is another's turned round, each time without going through all of them."""

    def __init__(self, those: Iterable[Sides]) -> None:
        self._those = frozenset(those)
        self._befores = frozenset(each.before for each in self._those) - {None}
        self._afters = frozenset(each.after for each in self._those) - {None}

    def __bool__(self) -> bool:
        return bool(self._those)

    def any_turned(self, here: Sides) -> bool:
        """Whether one of them has the names of these sides on the other sides; see `Sides.turned`."""
        if here.before is None and here.after is None:
            return False
        if here.after is None:
            return here.before in self._afters
        if here.before is None:
            return here.after in self._befores
        turned = Sides(here.after, here.before)
        return not self._those.isdisjoint((turned, turned._replace(before=None), turned._replace(after=None)))


def shared_names(original: str, rewording: str) -> frozenset[str]:
    """Words, case-folded, that both texts write with a capital and neither writes small."""
    (old_capital, old_small), (new_capital, new_small) = _by_case(original), _by_case(rewording)
    return (old_capital & new_capital) - old_small - new_small


@lru_cache(maxsize=TEXTS_KEPT)
def _by_case(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words, case-folded, that a text writes with a capital, and those that it writes small."""
    tokens = set(_TOKEN.findall(canonical_text(text)))
    capital = frozenset(token.casefold() for token in tokens if token[0].isupper())
    return capital, frozenset(token.casefold() for token in tokens if token[0].islower())


def sides(prepared: str, start: int, end: int, names: frozenset[str]) -> Sides:
    """The sides of a span of a prepared text."""
    before = _SENTENCE_END.split(prepared[max(0, start - _REACH_CHARACTERS) : start])[-1]
    after = _SENTENCE_END.split(prepared[end : end + _REACH_CHARACTERS], maxsplit=1)[0]
    left = [token for token in _TOKEN.findall(before) if token in names]
    right = [token for token in _TOKEN.findall(after) if token in names]
    return Sides(left[-1] if left else None, right[0] if right else None)
