"""Where an item's words stand in a document: compared word by word, not by keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from proctor.exposure.kernel import BARRIER
from proctor.text.overlap_words import OverlapWord, overlap_words

#: Of one part of an item, the longest ones.
MAX_SPANS: Final = 20
#: Of the document around what was found.
_AROUND_CHARACTERS: Final = 80
_AROUND_BYTES: Final = 4 * _AROUND_CHARACTERS
#: A word that joins what must not be joined: between two columns of a document.
_BREAK: Final = OverlapWord("\0", 0, 0)


class Match(NamedTuple):
    """Words that a part of an item and a document have in common, one after the other."""

    words: int
    start: int
    """Characters of the item's part, up to `end`."""
    end: int
    document_start: int
    """Bytes of the document, up to `document_end`."""
    document_end: int
    document_text: str
    before: str
    """What the document says right before, and"""
    after: str
    """after."""


def matches(text: str, window: bytes, n: int) -> tuple[Match, ...]:
    """The longest runs of at least n words that a text shares with a window of a document.

    Args:
        text: of an item's part.
        window: UTF-8 of a document, in which the byte 0xFF stands between columns.
        n: words.

    Returns:
        Runs that do not lie within each other, by where they begin in the text.
    """
    mine, theirs = overlap_words(text), _words(window)
    places: dict[tuple[str, ...], list[int]] = {}
    forms = [word.form for word in theirs]
    for place in range(len(forms) - n + 1):
        places.setdefault(tuple(forms[place : place + n]), []).append(place)
    own = [word.form for word in mine]
    found: list[Match] = []
    reached = 0
    for begin in range(len(own) - n + 1):
        here = places.get(tuple(own[begin : begin + n]), ())
        runs = [(_run(own, forms, begin, place), -place) for place in here]
        if not runs:
            continue
        length, place = max(runs)
        # A run that ends where one before it does is part of that one.
        if begin + length <= reached:
            continue
        reached = begin + length
        first, last = theirs[-place], theirs[-place + length - 1]
        found.append(
            Match(
                words=length,
                start=mine[begin].start,
                end=mine[begin + length - 1].end,
                document_start=first.start,
                document_end=last.end,
                document_text=_shown(window[first.start : last.end]),
                before=_shown(window[max(0, first.start - _AROUND_BYTES) : first.start])[-_AROUND_CHARACTERS:],
                after=_shown(window[last.end : last.end + _AROUND_BYTES])[:_AROUND_CHARACTERS],
            )
        )
    longest = sorted(found, key=lambda match: -match.words)[:MAX_SPANS]
    return tuple(sorted(longest, key=lambda match: match.start))


def _shown(data: bytes) -> str:
    return data.replace(bytes([BARRIER]), b"\n").decode("utf-8", "ignore")


def _run(own: Sequence[str], theirs: Sequence[str], begin: int, place: int) -> int:
    length = 0
    while begin + length < len(own) and place + length < len(theirs) and own[begin + length] == theirs[place + length]:
        length += 1
    return length


def _words(window: bytes) -> list[OverlapWord]:
    """The words of a document's bytes, with their bytes."""
    found: list[OverlapWord] = []
    at = 0
    for column in window.split(bytes([BARRIER])):
        # What is no UTF-8 is a space, byte for byte, as it is for the compiled scan.
        text = column.decode("utf-8", "surrogateescape")
        if found:
            found.append(_BREAK)
        ends = [at]
        for character in text:
            ends.append(ends[-1] + len(character.encode("utf-8", "surrogateescape")))
        found += [OverlapWord(word.form, ends[word.start], ends[word.end]) for word in overlap_words(text)]
        at = ends[-1] + 1
    return found
