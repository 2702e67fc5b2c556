"""The contexts in which a form of the synonym table has the sense that the table means."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from proctor.perturbation.strategies.english import DETERMINERS, FUNCTION_WORDS
from proctor.text.normalise import TEXTS_KEPT

_BEFORE: Final = re.compile(r"([\w$'\u2019]+)[ \t]+$")
_AFTER: Final = re.compile(r"[ \t]+([\w$'\u2019]+)")
_END: Final = re.compile(r"\s*(?:[.?!,;:]|\Z)")
_REACH: Final = 24

_NUMBER_WORDS_LIST: Final = "two three four five six seven eight nine ten eleven twelve twenty half several many"
_NUMBER_WORDS: Final = frozenset(_NUMBER_WORDS_LIST.split())
_MODALS_LIST: Final = "to will would can could should must may might did does do"
_MODALS: Final = frozenset(_MODALS_LIST.split())
_SHARED_LIST: Final = "equally evenly among between into"
_SHARED: Final = frozenset(_SHARED_LIST.split())
_ONSETS_LIST: Final = "with to at in on by"
_ONSETS: Final = frozenset(_ONSETS_LIST.split())
_NOUN_BEFORE_LIST: Final = (
    "new old used red blue local grocery toy candy clothing hardware convenience department first"
)
_NOUN_BEFORE: Final = frozenset(_NOUN_BEFORE_LIST.split())
_ANSWERS_LIST: Final = "answer answers change number order size"
_ANSWERS: Final = frozenset(_ANSWERS_LIST.split())
#: What makes a form in -ed a participle, whose synonym may have another one (has started, had travelled, was begun).
_PERFECT: Final = re.compile(
    r"(?:\b(?:has|have|had|having|is|are|was|were|be|been|being|gets?|got)|'ve|'d|\u2019ve|\u2019d)(?:\s+[a-z]+){0,2}\s+$"
)
_SIZES: Final = re.compile(r"\b(?:big|large|huge|small|medium|tiny|little)\b", re.IGNORECASE)


class Place(NamedTuple):
    """An occurrence and its neighbours, in lower case; empty at a border of the text or beside punctuation."""

    text: str
    start: int
    end: int
    before: str
    after: str

    @classmethod
    def of(cls, text: str, start: int, end: int) -> Place:
        """The place of text[start:end]."""
        before = _BEFORE.search(text, max(0, start - _REACH), start)
        after = _AFTER.match(text, end)
        return cls(text, start, end, before[1].lower() if before else "", after[1].lower() if after else "")


def _quantity(word: str) -> bool:
    return word[:1].isdigit() or word[:1] == "$" or word in _NUMBER_WORDS


def _noun(place: Place) -> bool:
    before = place.before
    return before in DETERMINERS or before in _NOUN_BEFORE or _quantity(before) or before.endswith(("'s", "\u2019s"))


def _head(place: Place) -> bool:
    """Not the first part of a compound (car wash, movie ticket)."""
    return bool(_END.match(place.text, place.end)) or place.after in FUNCTION_WORDS


def _object(place: Place) -> bool:
    """A verb before its object."""
    return place.after in DETERMINERS or _quantity(place.after)


def _onset(place: Place) -> bool:
    """A verb of beginning, and not "the start" or "start the car"."""
    verb = place.before in _MODALS or place.text[place.start : place.end].lower() != "start"
    return verb and (place.after in _ONSETS or (place.after.endswith("ing") and len(place.after) > 4))


@lru_cache(maxsize=TEXTS_KEPT)
def _sizes(text: str) -> int:
    return len(_SIZES.findall(text))


def _size(place: Place) -> bool:
    """The text's only word for size, so that it tells nothing apart, and an attribute: a big dog."""
    return _sizes(place.text) == 1 and place.before in ("a", "the", "one", "two", "three") and not _head(place)


CONTEXTS: Final[dict[str, Callable[[Place], bool]]] = {
    "noun": _noun,
    "head": _head,
    "object": _object,
    "onset": _onset,
    "size": _size,
    "the": lambda place: place.before == "the",
    "of": lambda place: place.after == "of",
    "to": lambda place: place.after == "to",
    "not_to": lambda place: place.after != "to",
    "past": lambda place: not _PERFECT.search(place.text, max(0, place.start - _REACH), place.start),
    "not_how": lambda place: place.before != "how",
    "sharing": lambda place: place.after in _SHARED,
    "distance": lambda place: _quantity(place.after) or place.after in ("at", "to", "for"),
    "answer": lambda place: place.after in _ANSWERS,
    "gerund": lambda place: place.after.endswith("ing") and len(place.after) > 4,
    "noun_follows": lambda place: place.after.isalpha() and place.after not in FUNCTION_WORDS,
    "end": lambda place: bool(_END.match(place.text, place.end)),
}
