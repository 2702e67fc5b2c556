"""Names in running text, told by their capitals, and whether a rewording keeps them."""

from __future__ import annotations

import re
from typing import Final

from proctor.text.normalise import canonical_text

_TOKEN: Final = re.compile(r"[^\W_]+(?:['.&-][^\W_]+)*")
_BEFORE_SENTENCE: Final = re.compile(r"(?:^|[.!?:;]['\")\]]*\s*|[\"(]\s*)$")
#: Capitalised words that a faithful rewording replaces: titles and kinship (Dad: father), forms of address.
_TITLES: Final = (
    "i dad mom mum father mother grandma grandpa grandmother grandfather uncle aunt mr mrs ms miss dr sir mister "
    "doctor professor coach teacher fireman firefighter"
)
_CALENDAR: Final = (
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december"
)
_TITLE_WORDS: Final = frozenset(_TITLES.split())
_CALENDAR_WORDS: Final = frozenset(_CALENDAR.split())
#: Two words with this many letters in common at the start are one name in two forms: Scottish and Scotland.
_STEM_LETTERS: Final = 4


def keeps_entities(original: str, rewording: str) -> bool:
    """False when a name of the original is missing from the rewording, or the rewording brings one of its own.

    A name is a capitalised word inside a sentence that nowhere in the text is written small: at the start of a
    sentence nothing tells a name from any word. Days and months count only when one replaces another, and
    abbreviations (TV, 4 PM) not at all, because rewordings write them out.
    """
    old_names, new_names = _names(original), _names(rewording)
    old_words, new_words = _words(original), _words(rewording)
    lost = {name for name in old_names if not _held(name, new_words)}
    gained = {name for name in new_names if not _held(name, old_words)}
    if lost - _CALENDAR_WORDS or gained - _CALENDAR_WORDS:
        return False
    return not (lost and gained)


def _held(name: str, others: frozenset[str]) -> bool:
    if name in others:
        return True
    stem = name[:_STEM_LETTERS]
    return len(name) >= _STEM_LETTERS and any(word.startswith(stem) for word in others)


def _words(text: str) -> frozenset[str]:
    return frozenset(_key(token) for token in _TOKEN.findall(canonical_text(text)))


def _key(token: str) -> str:
    folded = token.casefold().removesuffix("'s")
    return folded.removesuffix("s") if len(folded) > 3 else folded


def _names(text: str) -> frozenset[str]:
    plain = canonical_text(text)
    capital, small = set(), set()
    for match in _TOKEN.finditer(plain):
        token = match.group()
        if token[0].islower():
            small.add(_key(token))
        elif token[0].isupper() and not _BEFORE_SENTENCE.search(plain, 0, match.start()):
            bare = token.removesuffix("'s").removesuffix("s")
            if not bare.isupper() and not any(character.isdigit() for character in bare):
                capital.add(_key(token))
    return frozenset(capital - small - _TITLE_WORDS)
