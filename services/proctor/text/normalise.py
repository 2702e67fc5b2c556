"""Text as it is compared: one Unicode form, one kind of white space, one case, and words."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

#: The gate reads an original once for all of its rewordings, and each of its checks reads the same two texts: what is
#: read of a text is kept for this many texts.
TEXTS_KEPT: Final = 512
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"'})
#: Scripts without spaces between words (kana, Han) give one token a character: a whole sentence as one token would
#: make every rewording look entirely new.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff"
_LETTERS = re.compile(r"[a-z]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}_]+(?:'[^\W{_UNSPACED}_]+)*")


@lru_cache(maxsize=TEXTS_KEPT)
def canonical_text(text: str) -> str:
    """NFKC with straight quotes and single spaces, ends stripped; case is kept."""
    if text.isascii():
        return " ".join(text.split())
    return " ".join(unicodedata.normalize("NFKC", text).translate(_QUOTES).split())


@lru_cache(maxsize=TEXTS_KEPT)
def normalise(text: str) -> str:
    """`canonical_text`, case-folded: two texts that a reader would call the same compare equal."""
    return canonical_text(text).casefold()


@lru_cache(maxsize=TEXTS_KEPT)
def words(text: str) -> tuple[str, ...]:
    """The words of a text, normalised, without punctuation; "farmers'" and "don't" keep inner apostrophes only."""
    return tuple(_WORD.findall(normalise(text)))


@lru_cache(maxsize=TEXTS_KEPT)
def plain_words(normalised: str) -> frozenset[str]:
    """The runs of the letters a to z, each once: what tells at little cost that an English phrase is not in a text."""
    return frozenset(_LETTERS.findall(normalised))


def has_lone_surrogate(text: str) -> bool:
    """Whether the text holds half a surrogate pair, which no UTF-8 file and no tokenizer can take."""
    return not text.isascii() and _SURROGATE.search(text) is not None
