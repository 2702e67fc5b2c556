"""Text as it is compared: one Unicode form, one kind of white space, one case, and words."""

from __future__ import annotations

import re
import unicodedata

_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"'})
#: Scripts without spaces between words (kana, Han) give one token a character: a whole sentence as one token would
#: make every rewording look entirely new.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}_]+(?:'[^\W{_UNSPACED}_]+)*")


def canonical_text(text: str) -> str:
    """NFKC with straight quotes and single spaces, ends stripped; case is kept."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(_QUOTES).split())


def normalise(text: str) -> str:
    """`canonical_text`, case-folded: two texts that a reader would call the same compare equal."""
    return canonical_text(text).casefold()


def words(text: str) -> tuple[str, ...]:
    """The words of a text, normalised, without punctuation; "farmers'" and "don't" keep inner apostrophes only."""
    return tuple(_WORD.findall(normalise(text)))


def has_lone_surrogate(text: str) -> bool:
    """Whether the text holds half a surrogate pair, which no UTF-8 file and no tokenizer can take."""
    return any("\ud800" <= character <= "\udfff" for character in text)
