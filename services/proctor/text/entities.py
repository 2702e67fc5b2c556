"""Names in running text, told by their capitals, and whether a rewording keeps them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from proctor.text.normalise import TEXTS_KEPT, canonical_text
from proctor.text.surface import levenshtein
from proctor.text.units import unit_of

_TOKEN: Final = re.compile(r"[^\W_]+(?:['.&-][^\W_]+)*")
#: A token that does not begin with a small letter of the alphabet; few do not, so few are looked at.
_NOT_SMALL: Final = re.compile(r"(?=[^\W\d_a-z])(?<![^\W_])(?<![^\W_]['.&-])[^\W_]+(?:['.&-][^\W_]+)*")
_BEFORE_SENTENCE: Final = re.compile(r"(?:^|[.!?:;|]['\")\]]*\s*|[\"(]\s*)$")
#: More than a sentence's end takes; the search is held to it, so that a long text is not read once for every name.
_BREAK_CHARACTERS: Final = 8
#: Capitalised words that a faithful rewording replaces: titles and kinship (Dad: father), forms of address.
_TITLES: Final = (
    "i dad mom mum father mother grandma grandpa grandmother grandfather uncle aunt mr mrs ms miss dr sir mister "
    "doctor professor coach teacher fireman firefighter"
)
_CALENDAR: Final = (
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december"
)
#: Countries whose people are not called by the same first letters ("the French capital", "the capital of France"), and
#: those that go by several names (Britain, the UK).
_COUNTRIES: Final = (
    "france french, spain spanish, netherland dutch, holland dutch, wale welsh, ireland irish, poland polish, "
    "denmark danish, finland finnish, switzerland swis, philippine filipino, turkey turk, cypru cypriot, "
    "greenland greenlandic, britain uk, british uk, britain kingdom, british kingdom, britain united, british united, "
    "america us, american us, america usa, american usa, america state, american state, america united, "
    "american united, soviet ussr"
)
_TITLE_WORDS: Final = frozenset(_TITLES.split())
_DEMONYM_PAIRS: Final = [tuple(pair.split()) for pair in _COUNTRIES.split(", ")]
_DEMONYMS: Final = {
    name: frozenset(other for pair in _DEMONYM_PAIRS if name in pair for other in pair)
    for name in {name for pair in _DEMONYM_PAIRS for name in pair}
}
_CALENDAR_WORDS: Final = frozenset(_CALENDAR.split())
#: Two words with this many letters in common at the start are one name in two forms: Scottish and Scotland.
_STEM_LETTERS: Final = 4
#: Names this long that differ by one letter, of which a text uses both, are one name and a slip of the keyboard.
_SLIP_LETTERS: Final = 5
#: No name has more letters; what has them is not searched for names, nor compared letter by letter.
_NAME_LETTERS: Final = 64
#: More names than this are not lost by slips of the keyboard, and need not be compared with every word.
_SLIPS: Final = 8
#: A language has not many more words in use, and benchmarks few of them.
_WORDS_KEPT: Final = 16_384
_INITIALS: Final = re.compile(r"\b(?:[A-Z]\.?){2,}")
#: With an end to each word, because it is begun anew at every capital in a word.
_NAME_WORD: Final = rf"[A-Z][^\W\d_]{{0,{_NAME_LETTERS}}}"
_NAME_RUN: Final = re.compile(rf"{_NAME_WORD}(?: (?:of |the |and )*{_NAME_WORD}){{1,7}}")
#: "Movie A", "Box 2": what stands before a label is a common noun, whatever its capital says.
_LABEL: Final = re.compile(r"\s+(?:[A-Z]|\d+)\b")


def keeps_entities(original: str, rewording: str) -> bool:
    """False when a name of the original is missing from the rewording, or the rewording brings one of its own.

    A name is a capitalised word inside a sentence that nowhere in the text is written small: at the start of a
    sentence nothing tells a name from any word. Days and months count only when one replaces another, and
    abbreviations (TV, 4 PM) not at all, because rewordings write them out; the name that an abbreviation of the other
    text stands for (United States, US) is not missed.
    """
    old_names, new_names = _names(original), _names(rewording)
    if old_names == new_names:
        return True
    old_words, new_words = _words(original), _words(rewording)
    lost, gained = _not_held(old_names, new_words), _not_held(new_names, old_words)
    if not lost and not gained:
        return True
    lost -= _abbreviated(original, rewording)
    gained -= _abbreviated(rewording, original)
    if len(lost) <= _SLIPS:
        lost = {name for name in lost if not _slip(name, old_words & new_words)}
    if lost - _CALENDAR_WORDS or gained - _CALENDAR_WORDS:
        return False
    return not (lost and gained)


def _not_held(names: frozenset[str], others: frozenset[str]) -> set[str]:
    """The names that the other text's words hold in no form."""
    missing = names - others
    if not missing:
        return set()
    stems = {word[:_STEM_LETTERS] for word in others if len(word) >= _STEM_LETTERS}
    return {
        name for name in missing if name[:_STEM_LETTERS] not in stems and others.isdisjoint(_DEMONYMS.get(name, ()))
    }


def _abbreviated(text: str, other: str) -> set[str]:
    """Words of names in the text whose initials the other text has as one word: United States of America, USA."""
    plain = canonical_text(text)
    short = {token.replace(".", "") for token in _INITIALS.findall(canonical_text(other))}
    # USA for United States, where the text leaves "of America" out.
    short |= {each[:-1] for each in short if len(each) > len("US")}
    found = set()
    for match in _NAME_RUN.finditer(plain):
        words = match.group().split()
        capital = [word for word in words if word[0].isupper()]
        for start in range(len(capital)):
            for stop in range(start + 2, len(capital) + 1):
                initials = "".join(word if word.isupper() else word[0] for word in capital[start:stop])
                if initials in short:
                    found |= {_key(word) for word in capital[start:stop]}
    return found


def _is_unit(key: str) -> bool:
    # The key of a word has lost its last s.
    return unit_of(key) is not None or unit_of(f"{key}s") is not None


def _slip(name: str, kept: frozenset[str]) -> bool:
    if not _SLIP_LETTERS <= len(name) <= _NAME_LETTERS:
        return False
    return any(abs(len(name) - len(word)) < 2 and levenshtein(name, word) == 1 for word in kept)


@lru_cache(maxsize=TEXTS_KEPT)
def _words(text: str) -> frozenset[str]:
    return frozenset(map(_key, _tokens(text)))


@lru_cache(maxsize=TEXTS_KEPT)
def _tokens(text: str) -> frozenset[str]:
    return frozenset(_TOKEN.findall(canonical_text(text)))


@lru_cache(maxsize=_WORDS_KEPT)
def _key(token: str) -> str:
    folded = token.casefold().removesuffix("'s")
    return folded.removesuffix("s") if len(folded) > 3 else folded


@lru_cache(maxsize=TEXTS_KEPT)
def _names(text: str) -> frozenset[str]:
    plain = canonical_text(text)
    capital = set()
    for match in _NOT_SMALL.finditer(plain):
        token, start = match.group(), match.start()
        if token[0].isupper() and not _BEFORE_SENTENCE.search(plain, max(0, start - _BREAK_CHARACTERS), start):
            bare = token.removesuffix("'s").removesuffix("s")
            labelled = _LABEL.match(plain, match.end()) is not None
            if not labelled and not bare.isupper() and not any(character.isdigit() for character in bare):
                capital.add(_key(token))
    if not capital:
        return frozenset()
    small = (_key(token) for token in _tokens(text) if token[0].islower())
    return frozenset(word for word in capital.difference(_TITLE_WORDS, small) if not _is_unit(word))
