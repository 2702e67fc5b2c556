"""Negations and comparisons: the small words that turn an answer round."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from proctor.text.normalise import TEXTS_KEPT, normalise, plain_words
from proctor.text.numerals import prepare, scan_numerals
from proctor.text.opposites import turned_round
from proctor.text.sides import Crossed, Sides, shared_names, sides

_NEGATION: Final = re.compile(r"\b(?:not|\w+n't|cannot|never|no|none|nobody|nothing|neither|nor|without)\b")
#: One of these, or n't, is in every negation.
_NEGATION_WORDS: Final = frozenset(
    ["not", "cannot", "never", "no", "none", "nobody", "nothing", "neither", "nor", "without"]
)
#: Ways to deny without a negation. They excuse a negation that went or came; alone they prove nothing.
#: What is denied here is a state of mind, and no fact that an answer stands on.
_IDIOM: Final = re.compile(
    r"\b(?:(?:can't|can not|cannot|couldn't|could not) (?:wait|decide|help|believe|choose)"
    r"|(?:is|are|was|were|am|isn't|aren't|wasn't|weren't|'s|'re|'m)(?: not)? (?:sure|certain)"
    r"|(?:do|does|did)(?:n't| not) (?:know|mind|care))\b"
)
_DENIAL: Final = re.compile(
    r"\b(?:un(?!it|til|der|cle|i)\w{3,}"
    r"|in(?:complete|capable|operable|sufficient|active|edible|valid|visib|accura|appropriat|consisten|correct|direct"
    r"|dependen|effective|equalit|finite|frequen|separab|divisib|soluble|stab|voluntar)\w*"
    r"|ir(?:re|ra|ro)[a-z]{4,}|im(?:possib|perfect|mobil|matur|moral|proper|pure|practical|probab)\w*"
    r"|il(?:legal|legitimate|logical|literate)\w*|low|rarely|seldom|hardly|scarcely|barely"
    r"|non\w{3,}|fore?go(?:es|ne)?|less"
    r"|dis(?:like|agree|allow|continu|qualif|regard|prove|appear|satisf|connect|believ|approv|obey)\w*|except\w*|exclud\w*|lack\w*|fail\w*|refus\w*|declin\w*|deni\w*|deny"
    r"|avoid\w*|absen\w*|miss(?:ed|es|ing)?|devoid|minus|skip\w*|prevent\w*|remaining|remains?|left|leftover|rest"
    r"|only|just|zero|at most|maximum|up to|out of|free|other than|apart from|aside from|besides|rather than|instead"
    r"|different|beyond|exceed\w*|expired?|malfunction\w*|lose|lost|broken?|limit\w*|waste\w*|last)\b"
)
_MORE: Final = "more greater larger bigger longer taller older faster quicker higher heavier additional"
_LESS: Final = "less fewer smaller shorter younger slower lower lighter"
_UP: Final = frozenset(_MORE.split())
_DOWN: Final = frozenset(_LESS.split())
_LOWER_BOUND: Final = re.compile(
    r"\b(?:at least|at the least|at a minimum|minimum|no less than|no fewer than|not less than|not fewer than"
    r"|(?:not|\w+n't|never|cannot)\b[^.;:?!]{0,30}\b(?:less|fewer) than"
    r"|or more|or higher|or greater|or above|or older|or over|least)\b"
)
_UPPER_BOUND: Final = re.compile(
    r"\b(?:at most|at the most|at a maximum|maximum|max|no more than|no greater than|not more than|not exceed\w*"
    r"|(?:not|\w+n't|never|cannot)\b[^.;:?!]{0,30}\bmore than"
    r"|or less|or fewer|or lower|or below|or younger|or under|up to|limit\w*|most|capacity)\b"
)
_STRICT_LOWER: Final = re.compile(r"\b(?:at least|no less than|no fewer than|not less than) \S*\d")
_STRICT_UPPER: Final = re.compile(r"\b(?:at most|no more than|not more than|no greater than) \S*\d")
#: One of these is in every strict bound.
_BOUND_WORDS: Final = frozenset(("least", "most", "less", "fewer", "more", "greater"))
_WORD: Final = re.compile(r"[a-z]+")
_CLAUSE_END: Final = re.compile(r"[.;:?!]")
#: Words after a number within which "more" or "less" belongs to it: "7 centimeters shorter", "5 years of age older".
_REACH: Final = 4


def keeps_negation(original: str, rewording: str) -> bool:
    """False when one text denies something and the other has neither a negation nor another way to deny."""
    old, new = normalise(original), normalise(rewording)
    if _negates(old) == _negates(new):
        return True
    return bool(_DENIAL.search(_without_idioms(new if _negates(old) else old)))


@lru_cache(maxsize=TEXTS_KEPT)
def _negates(normalised: str) -> bool:
    if plain_words(normalised).isdisjoint(_NEGATION_WORDS) and "n't" not in normalised:
        return False
    return bool(_NEGATION.search(normalised)) and bool(_NEGATION.search(_without_idioms(normalised)))


def _without_idioms(normalised: str) -> str:
    return _IDIOM.sub(" ", normalised)


def keeps_comparison(original: str, rewording: str) -> bool:
    """False when a bound on a number came or went or turned round, when more became less, or largest smallest.

    More may become less where the names change sides: "Ann has 5 more than Bo", "Bo has 5 fewer than Ann".
    """
    old, new = prepare(original), prepare(rewording)
    if _bounds_differ(old, new) or _bounds_differ(new, old) or turned_round(original, rewording):
        return False
    return not _direction_turned(old, new) or _said_the_other_way_round(old, new, shared_names(original, rewording))


def _bounds_differ(these: str, others: str) -> bool:
    lower, upper = _strict_bounds(these)
    return (lower and not _LOWER_BOUND.search(others)) or (upper and not _UPPER_BOUND.search(others))


@lru_cache(maxsize=TEXTS_KEPT)
def _strict_bounds(prepared: str) -> tuple[bool, bool]:
    """Whether the text bounds a number from below, and from above."""
    if plain_words(prepared).isdisjoint(_BOUND_WORDS):
        return False, False
    return bool(_STRICT_LOWER.search(prepared)), bool(_STRICT_UPPER.search(prepared))


class Relation(NamedTuple):
    """That something is by a number more, or less, than something else."""

    value: Decimal
    direction: str
    """up or down."""


def keeps_relations(original: str, rewording: str) -> bool:
    """False when the texts do not hold the same relations equally often, each with its number and its direction.

    "40 more" may not become "40", nor "3 more than" come in. The names may change sides: "Ann has 5 more than Bo", "Bo
    has 5 fewer than Ann". Much stricter than `keeps_comparison`: faithful rewordings say "an extra 5" and
    "exceeds by 5" in more ways than are read here.
    """
    old, new = prepare(original), prepare(rewording)
    here, there = relations(old), relations(new)
    if here == there:
        return True
    turned = Counter(value for value, _ in here.elements()) == Counter(value for value, _ in there.elements())
    return turned and _said_the_other_way_round(old, new, shared_names(original, rewording))


@lru_cache(maxsize=TEXTS_KEPT)
def relations(prepared: str) -> Counter[Relation]:
    """How often a prepared text says each relation."""
    return Counter(_directed(prepared))


def _direction_turned(old: str, new: str) -> bool:
    old_all, new_all = _directions(old), _directions(new)
    if len(old_all) == 1 and len(new_all) == 1 and old_all != new_all:
        return True
    if not old_all or not new_all:
        return False
    old_by_number, new_by_number = _directions_of_numbers(old), _directions_of_numbers(new)
    return any(not old_by_number[value] & new_by_number[value] for value in old_by_number.keys() & new_by_number.keys())


def _said_the_other_way_round(old: str, new: str, names: frozenset[str]) -> bool:
    """Whether every "more" that became "less", or the reverse, has a name on its other side."""
    for words, opposite in ((_UP, _DOWN), (_DOWN, _UP)):
        there = Crossed(_sides_of(new, opposite, names))
        if there and not all(map(there.any_turned, _sides_of(old, words, names))):
            return False
    return True


def _sides_of(prepared: str, words: frozenset[str], names: frozenset[str]) -> set[Sides]:
    return {
        sides(prepared, match.start(), match.end(), names)
        for match in _WORD.finditer(prepared)
        if match.group() in words
    }


@lru_cache(maxsize=TEXTS_KEPT)
def _directions(text: str) -> set[str]:
    found = plain_words(text)
    return {name for name, words in (("up", _UP), ("down", _DOWN)) if not found.isdisjoint(words)}


@lru_cache(maxsize=TEXTS_KEPT)
def _directions_of_numbers(prepared: str) -> Mapping[Decimal, set[str]]:
    """For each number, whether it says how much more or how much less; numbers that say neither are left out."""
    found: dict[Decimal, set[str]] = {}
    for value, direction in _directed(prepared):
        found.setdefault(value, set()).add(direction)
    return found


def _directed(prepared: str) -> Iterator[Relation]:
    numerals = scan_numerals(prepared)
    for index, numeral in enumerate(numerals):
        stop = numerals[index + 1].start if index + 1 < len(numerals) else len(prepared)
        clause = _CLAUSE_END.split(prepared[numeral.end : stop], maxsplit=1)[0]
        for word in _WORD.findall(clause)[:_REACH]:
            direction = "up" if word in _UP else "down" if word in _DOWN else None
            if direction:
                yield Relation(numeral.value, direction)
                break
