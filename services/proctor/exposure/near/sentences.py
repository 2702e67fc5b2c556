"""A document as sentences, since a copy of an item begins and ends with one, whatever it is embedded in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from proctor.text.overlap_words import overlap_form

#: The byte between two columns of a document, as it is decoded (`surrogateescape`).
COLUMN_END: Final = "\udcff"
_SPACES: Final = COLUMN_END + "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
#: Marks at a sentence's end with the space after them, an empty line, a column's end.
_END: Final = re.compile(r"[.?!][\"')\]*\u201d\u2019]{0,3}\s+|[\u3002\uff1f\uff01]|\n[ \t\r]*\n\s*|\udcff")
#: A shorter one is a part of the next ("Mr.", "No."), unless nothing follows;
_LEAST_CHARACTERS: Final = 25
#: a longer one is cut at a line's end or a space: a list, a table, a text without marks.
_MOST_CHARACTERS: Final = 400


class Sentence(NamedTuple):
    """Characters of a document."""

    start: int
    end: int


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text, in order. Each begins and ends with something that is seen."""
    found: list[Sentence] = []
    begin = 0
    for place in _ends(text):
        is_column = text[place - 1 : place] == COLUMN_END
        if place - begin < _LEAST_CHARACTERS and place < len(text) and not is_column:
            continue
        found += _cut(text, begin, place)
        begin = place
    return found


def _ends(text: str) -> Iterator[int]:
    for mark in _END.finditer(text):
        yield mark.end()
    yield len(text)


def _cut(text: str, begin: int, end: int) -> Iterator[Sentence]:
    while end - begin > _MOST_CHARACTERS:
        limit = begin + _MOST_CHARACTERS
        at = max(
            text.rfind("\n", begin + 1, limit),
            text.rfind(" ", begin + 1, limit) if "\n" not in text[begin:limit] else -1,
        )
        at = at if at > begin else limit
        yield from _trimmed(text, begin, at)
        begin = at
    yield from _trimmed(text, begin, end)


def _trimmed(text: str, begin: int, end: int) -> Iterator[Sentence]:
    piece = text[begin:end].rstrip(_SPACES)
    inner = piece.lstrip(_SPACES)
    if inner:
        yield Sentence(begin + len(piece) - len(inner), begin + len(piece))


def runs(found: Sequence[Sentence], least: int, most: int) -> Iterator[tuple[int, int]]:
    """Which sentences, from the first to the last, stand together in so many characters."""
    for first in range(len(found)):
        for last in range(first, len(found)):
            length = found[last].end - found[first].start
            if length > most:
                break
            if length >= least:
                yield first, last


class _Forms(dict[int, str]):
    def __missing__(self, code: int) -> str:
        form = self[code] = overlap_form(chr(code)) if not 0xD800 <= code < 0xE000 else " "
        return form


@cache
def _forms() -> _Forms:
    return _Forms()


def form_of(text: str) -> str:
    """The words of a text in the form in which a corpus is compared (`words-1`), a space between them."""
    return " ".join(text.translate(_forms()).split())
