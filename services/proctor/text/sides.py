"""Who stands on which side of a relation: "Ann is half as old as Bo" and "Bo is twice as old as Ann" agree."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from proctor.text.normalise import canonical_text

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
        crossed = ((self.before, other.after), (self.after, other.before))
        known = [(one, another) for one, another in crossed if one is not None and another is not None]
        return bool(known) and all(one == another for one, another in known)


def shared_names(original: str, rewording: str) -> frozenset[str]:
    """Words, case-folded, that both texts write with a capital and neither writes small."""
    capital: list[set[str]] = []
    small: set[str] = set()
    for text in (original, rewording):
        tokens = _TOKEN.findall(canonical_text(text))
        capital.append({token.casefold() for token in tokens if token[0].isupper()})
        small |= {token.casefold() for token in tokens if token[0].islower()}
    return frozenset((capital[0] & capital[1]) - small)


def sides(prepared: str, start: int, end: int, names: frozenset[str]) -> Sides:
    """The sides of a span of a prepared text."""
    before = _SENTENCE_END.split(prepared[max(0, start - _REACH_CHARACTERS) : start])[-1]
    after = _SENTENCE_END.split(prepared[end : end + _REACH_CHARACTERS], maxsplit=1)[0]
    left = [token for token in _TOKEN.findall(before) if token in names]
    right = [token for token in _TOKEN.findall(after) if token in names]
    return Sides(left[-1] if left else None, right[0] if right else None)
