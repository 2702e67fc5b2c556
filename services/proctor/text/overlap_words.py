"""Text as it is compared with a training corpus: words that survive re-wrapping, re-casing, accents and markup signs.

The form is named, because counts made under another one are not comparable: see `NORMALISATION`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final, NamedTuple

#: Name and version of the form. A change that gives any text other words needs another version.
NORMALISATION: Final = "words-1"
#: Scripts without spaces between words (kana, Han): each character is a word, or a sentence would be one.
_UNSPACED: Final = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF))
#: Marks that stand on a letter, and characters that are not seen (zero-width spaces and joiners, soft hyphens).
_DROPPED: Final = frozenset(("Mn", "Me", "Cf"))
_CODE_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_LINK: Final = re.compile(r"!?\[([^\]\[]*)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)")
_TEX_COMMAND: Final = re.compile(r"\\(?:begin|end)\{[a-z*]+\}|\\[a-zA-Z]+")
_HTML_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")


class OverlapWord(NamedTuple):
    """A word in its form, and where it stands in the text as it was given: characters from `start` up to `end`."""

    form: str
    start: int
    end: int


@cache
def overlap_form(character: str) -> str:
    """What becomes of one character, whatever stands beside it: nothing, or characters of words and spaces.

    Compatibility decomposition (NFKD) and case folding until neither changes anything, without combining marks and
    zero-width characters. NFKC and NFKD of a text have the same form, since the marks are left out. Digits are kept.
    What is no letter, mark or number is a space.
    """
    while (folded := unicodedata.normalize("NFKD", character).casefold()) != character:
        character = folded
    kept = (one for one in character if unicodedata.category(one) not in _DROPPED)
    return "".join(_spaced(one) for one in kept)


def _spaced(character: str) -> str:
    if unicodedata.category(character)[0] not in "LNM":
        return " "
    return f" {character} " if _is_unspaced(ord(character)) else character


def _is_unspaced(code: int) -> bool:
    return any(first <= code <= last for first, last in _UNSPACED)


def overlap_words(text: str) -> list[OverlapWord]:
    """The words of a text in their form, in order. This is the definition; the scan of a corpus is compiled."""
    found: list[OverlapWord] = []
    form, start, end = "", 0, 0
    for place, character in enumerate(text):
        # What is left out, a mark on the last letter, belongs to the word that it is in.
        end = place + 1 if form and not overlap_form(character) else end
        for one in overlap_form(character):
            if one == " ":
                if form:
                    found.append(OverlapWord(form, start, end))
                form = ""
            else:
                start = start if form else place
                form, end = form + one, place + 1
    if form:
        found.append(OverlapWord(form, start, end))
    return found


def without_markup(text: str) -> str:
    """The text without Markdown's code fences and link targets, TeX's commands and HTML's tags: what a reader sees."""
    text = _CODE_FENCE.sub(" ", text)
    text = _LINK.sub(r"\1", text)
    return _TEX_COMMAND.sub(" ", _HTML_TAG.sub(" ", text))
