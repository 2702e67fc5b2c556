"""People, places and the currency of a made-up story get other names, the same ones throughout."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import ClassVar, Final, NamedTuple

from proctor.domain.canonical import bytes_digest
from proctor.domain.item import Item
from proctor.perturbation.admission.renaming import CURRENCIES, RENAMED, STRATEGY, renamed
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.english import Fixed, sentences
from proctor.perturbation.strategies.rule import Maker, Reworded, RuleStrategy
from proctor.text.normalise import words
from proctor.text.numerals import numerals

_NAMES: Final = "first_names.tsv"
#: Big cities of one country whose names are nothing else, none of which takes "an".
_PLACES_LIST: Final = "Chicago Boston Seattle Denver Philadelphia Detroit Memphis Milwaukee Nashville Pittsburgh"
_PLACES: Final = tuple(_PLACES_LIST.split())
_CAPITAL: Final = re.compile(r"(?<![\w'\u2019-])[A-Z][a-z]+(?![\w-])")
_WORD_BEFORE: Final = re.compile(r"([\w'\u2019]+\.?),?[ \t]+$")
_NAME_AFTER: Final = re.compile(r"[ \t]+(?:[A-Z](?:\w|\.)|(?:of|the|from|de|van|von)[ \t]+[A-Z])")
#: A capitalised word before a first name that is no part of it.
_BESIDE_LIST: Final = "uncle aunt cousin mr. mrs. ms. mr mrs ms grandma grandpa baby little coach"
_BESIDE: Final = frozenset(_BESIDE_LIST.split())
#: A year makes it a matter of fact, where Napoleon is Napoleon.
_YEAR: Final = re.compile(r"(?<![\d,.$\u20ac])(?:1\d{3}|20\d\d)(?![\d,.]\d|\d)")
_ABOUT_LETTERS: Final = re.compile(
    r"\b(?:letters?|alphabet\w*|initials?|spell\w*|syllables?|rhym\w*|anagrams?)\b", re.I
)
_MIN_NUMBERS: Final = 2
_PRONOUNS: Final = {
    "f": re.compile(r"\b(?:she|her|hers|herself)\b", re.IGNORECASE),
    "m": re.compile(r"\b(?:he|his|him|himself)\b", re.IGNORECASE),
}
_DOLLAR_SIGN: Final = re.compile(r"\$(?!\d)")
_OTHER_MONEY: Final = re.compile(
    r"[\u20ac\u00a3\u00a5\u20b9]|\b(?:euros?|eur|usd|US|u\.s|american|canadian|australian|bucks?|quarters?|dimes?|nickels?"
    r"|penn(?:y|ies)|dollar (?:store|bill|coin|menu|tree)s?|exchange|currenc(?:y|ies))\b|-dollar\b",
    re.IGNORECASE,
)


class FirstNames(NamedTuple):
    """Gender by name, the names to put in by gender, and the digest of the file."""

    gender: Mapping[str, str]
    given: Mapping[str, tuple[str, ...]]
    digest: str


@cache
def first_names() -> FirstNames:
    """The packaged names, read once."""
    data = resources.files(__package__).joinpath(_NAMES).read_bytes()
    rows = [line.split("\t") for line in data.decode().splitlines() if not line.startswith("#")]
    gender = {name: mark[0] for name, mark in rows}
    given = {sex: tuple(name for name, mark in rows if mark == f"{sex}+") for sex in ("f", "m")}
    return FirstNames(gender, given, bytes_digest(data))


class EntityRename(RuleStrategy):
    """Every name that is known to be free is replaced by one of its kind; a person's by one of the same gender.

    Only in stories with at least two numbers and without a year, because names in questions of fact cannot change.
    A first name beside another capitalised word (Marie Curie), in the options or in the target stays. Dollars become
    euros, where the text has no other money. The provenance holds the map, which the gate undoes before it compares
    names and units.
    """

    name: ClassVar[str] = STRATEGY
    nothing = ("no_names", "the question is no made-up story with names, places or dollars that could be others")

    def __init__(self) -> None:
        self._known = first_names()

    def data_digest(self, item: Item) -> str:
        """The rule's version and the digest of the names."""
        return f"{super().data_digest(item)} {self._known.digest}"

    def maker(self, question: str, item: Item) -> Maker | None:
        """New names for all that are free; the currency with a chance of a half, or always if it is alone."""
        if _YEAR.search(question) or _ABOUT_LETTERS.search(question) or numerals(question).total() < _MIN_NUMBERS:
            return None
        texts = (question, *item.choices, item.target)
        present = frozenset(word.removesuffix("'s") for text in texts for word in words(text))
        held = frozenset(word.removesuffix("'s") for text in texts[1:] for word in words(text))
        free = {name: kind for name, kind in self._free(question).items() if name.casefold() not in held}
        dollars = _dollars(question, texts[1:])
        pools = {
            kind: [one for one in pool if one.casefold() not in present]
            for kind, pool in (("place", _PLACES), *self._known.given.items())
        }

        def make(draws: Draws) -> Reworded:
            chosen: dict[str, str] = {}
            left = {kind: list(names) for kind, names in pools.items()}
            for name, kind in free.items():
                if left[kind]:
                    chosen[name] = left[kind].pop(draws.below(len(left[kind])))
            if dollars and (draws.chance(0.5) or not chosen):
                chosen |= dollars
            return Reworded(renamed(question, chosen), {RENAMED: chosen})

        return make if free or dollars else None

    def _free(self, question: str) -> dict[str, str]:
        """Names that may be replaced, with their kind, in the order of their first mention."""
        fixed = Fixed.of(question)
        starts = {sentence.start for sentence in sentences(question)}
        found: dict[str, str] = {}
        bound: set[str] = set()
        for name, kind, start, end in self._mentions(question):
            found.setdefault(name, kind)
            if fixed.touches(start, end) or _part_of_longer(question, start, end, starts):
                bound.add(name)
        free = {name: kind for name, kind in found.items() if name not in bound}
        return {name: kind for name, kind in free.items() if not _other_gender(question, kind, free)}

    def _mentions(self, question: str) -> Iterator[tuple[str, str, int, int]]:
        for match in _CAPITAL.finditer(question):
            name = match.group()
            kind = "place" if name in _PLACES else self._known.gender.get(name)
            if kind is not None:
                yield name, kind, *match.span()


def _other_gender(question: str, kind: str, free: Mapping[str, str]) -> bool:
    """Whether the story's one person is a woman by her pronouns and a man by the table, or the reverse: Alex."""
    if kind == "place" or sum(one != "place" for one in free.values()) != 1:
        return False
    other = "m" if kind == "f" else "f"
    return bool(_PRONOUNS[other].search(question)) and not _PRONOUNS[kind].search(question)


def _part_of_longer(question: str, start: int, end: int, starts: set[int]) -> bool:
    """Whether a mention stands beside another capitalised word, or ends in an apostrophe alone (James')."""
    if question[end : end + 1] in ("'", "\u2019"):
        if question[end + 1 : end + 2] != "s":
            return True
    elif _NAME_AFTER.match(question, end):
        return True
    before = _WORD_BEFORE.search(question, max(0, start - 24), start)
    if before is None or not before[1][0].isupper() or before.group().rstrip().endswith(","):
        return False
    return before.start() not in starts and before[1].lower() not in _BESIDE


def _dollars(question: str, others: tuple[str, ...]) -> dict[str, str]:
    """The currency's renaming, where the question's only money is dollars and nothing outside it names them."""
    if _DOLLAR_SIGN.search(question) or _OTHER_MONEY.search(question) or Fixed.of(question):
        return {}
    if any("$" in text or "dollar" in text.lower() for text in others):
        return {}
    return {old: new for old, new in CURRENCIES.items() if renamed(question, {old: new}) != question}
