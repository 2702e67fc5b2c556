"""What becomes of each character, as arrays that compiled code reads: the table of `proctor.text.overlap_words`."""

from __future__ import annotations

import sys
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.text.overlap_words import overlap_form

_CODES: Final = sys.maxunicode + 1
#: Past the last letter in use (CJK extension H ends at 0x323AF) no character has a form but itself or a space, except
#: tags and variation selectors, which the last two planes' ranges below hold.
_RANGES: Final = ((0, 0x32400), (0xE0000, 0xE0200))
_SPACE: Final = 0x20


class Letters(NamedTuple):
    """Forms of characters, by code point."""

    starts: NDArray[np.int32]
    """(0x110001,) where each character's form begins in `forms`; it ends where the next one begins."""
    forms: NDArray[np.uint32]
    """Code points; 32 stands for the space between words."""


@cache
def letters() -> Letters:
    """The table, made once a process (a third of a second)."""
    lengths = np.ones(_CODES, dtype=np.int32)
    pieces: list[NDArray[np.uint32]] = []
    end = 0
    for first, last in _RANGES:
        if end < first:
            # Unassigned, or for private use: no letters.
            pieces.append(np.full(first - end, _SPACE, dtype=np.uint32))
        codes: list[int] = []
        for code in range(first, last):
            # Half a surrogate pair cannot stand in UTF-8; a replacement character is what is seen of it.
            form = " " if 0xD800 <= code < 0xE000 else overlap_form(chr(code))
            lengths[code] = len(form)
            codes += map(ord, form)
        pieces.append(np.array(codes, dtype=np.uint32))
        end = last
    pieces.append(np.full(_CODES - end, _SPACE, dtype=np.uint32))
    starts = np.zeros(_CODES + 1, dtype=np.int32)
    np.cumsum(lengths, out=starts[1:])
    return Letters(starts, np.concatenate(pieces))
