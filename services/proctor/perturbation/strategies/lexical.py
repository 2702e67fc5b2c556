"""Words replaced by WordNet synonyms of the same part of speech and sense."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

from proctor.domain.canonical import bytes_digest
from proctor.domain.item import Item
from proctor.perturbation.strategies.contexts import CONTEXTS, Place
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.english import Fixed, matching_case, sentences
from proctor.perturbation.strategies.rule import Edit, Maker, Reworded, RuleStrategy, edited
from proctor.text.normalise import words

_TABLE: Final = "synonyms.tsv"
_ARTICLE: Final = re.compile(r"\b([Aa]n?)([ \t]+)$")
_VOWEL_SOUND: Final = re.compile(r"(?!eu|uni|use|usu|one)[aeiou]|hour|honest|heir", re.IGNORECASE)
_DEFAULT_SHARE: Final = 0.6


class Synonym(NamedTuple):
    """A row of the table."""

    form: str
    replacement: str
    synset: str
    contexts: tuple[str, ...]


class Table(NamedTuple):
    """The synonyms by form, the pattern that finds words which may be forms, and the digest of the file."""

    by_form: Mapping[str, tuple[Synonym, ...]]
    pattern: re.Pattern[str]
    digest: str


@cache
def table() -> Table:
    """The packaged table, read once."""
    data = resources.files(__package__).joinpath(_TABLE).read_bytes()
    by_form: dict[str, tuple[Synonym, ...]] = {}
    for line in data.decode().splitlines():
        if line and not line.startswith("#"):
            form, replacement, synset, contexts = line.split("\t")
            row = Synonym(form, replacement, synset, () if contexts == "-" else tuple(contexts.split(",")))
            by_form[form] = (*by_form.get(form, ()), row)
    # Any word beside the forms of several words: to look a word up is quicker than to try hundreds of alternatives.
    several = sorted((form for form in by_form if not form.isalpha()), key=len, reverse=True)
    forms = "|".join([*several, "[a-z]+"])
    return Table(
        by_form, re.compile(rf"(?<![\w'\u2019-])(?:{forms})(?![\w'\u2019-])", re.IGNORECASE), bytes_digest(data)
    )


class Lexical(RuleStrategy):
    """Between one and all of the words that have a safe synonym are replaced, everywhere in the question alike.

    Only pairs of one WordNet synset whose sense is plain from the inflection or the neighbouring words, in lower case
    or at the start of a sentence. A word stays where its synonym stands in the question already (two shops would
    become one), where an option or the target has either of them, and inside quotes, code and formulas.

    Args:
        share: the chance of each replaceable word to be replaced, 0 to 1; at least one is.
    """

    name = "lexical"
    nothing = ("no_synonym", "the question has no word with a synonym that is sure to mean the same")

    def __init__(self, share: float = _DEFAULT_SHARE) -> None:
        self._share = share
        self._table = table()

    def data_digest(self, item: Item) -> str:
        """The rule's version, its share and the digest of the table."""
        return f"{super().data_digest(item)} {self._share!r} {self._table.digest}"

    def maker(self, question: str, item: Item) -> Maker | None:
        """Some of the replaceable words replaced."""
        found = self._replaceable(question, item)
        synsets = list(found)

        def make(draws: Draws) -> Reworded:
            chosen = [synset for synset in synsets if draws.chance(self._share)] or [draws.one_of(synsets)]
            edits = [edit for synset in chosen for edit in found[synset]]
            replaced = sorted({f"{question[edit.start : edit.end]} > {edit.text}" for edit in edits})
            return Reworded(edited(question, edits), {"replaced": replaced})

        return make if found else None

    def _replaceable(self, question: str, item: Item) -> dict[str, list[Edit]]:
        fixed = Fixed.of(question)
        starts: set[int] | None = None
        present = frozenset(words(question))
        held = frozenset(word for text in (*item.choices, item.target) for word in words(text))
        found: dict[str, list[Edit]] = {}
        refused: set[str] = set()
        for match in self._table.pattern.finditer(question):
            word = match.group()
            rows = self._table.by_form.get(word.lower())
            if rows is None:
                continue
            if not word.islower():
                starts = {sentence.start for sentence in sentences(question)} if starts is None else starts
                if match.start() not in starts or not word[1:].islower():
                    refused.update(row.synset for row in rows)
                    continue
            place = Place.of(question, *match.span())
            row = next((row for row in rows if all(CONTEXTS[name](place) for name in row.contexts)), None)
            taken = row is not None and (
                not held.isdisjoint((word.lower(), row.replacement)) or row.replacement in present
            )
            if row is None or taken or fixed.touches(*match.span()):
                # One of its mentions would stay: a noun that is called two names may be read as two things.
                refused.update(row.synset for row in rows if row.synset.endswith("n"))
                continue
            found.setdefault(row.synset, []).append(_edit(question, match, row.replacement))
        return {synset: edits for synset, edits in found.items() if synset not in refused}


def _edit(question: str, match: re.Match[str], replacement: str) -> Edit:
    """The replacement, with the article before it where that changes."""
    new = matching_case(replacement, match.group())
    article = _ARTICLE.search(question, max(0, match.start() - 8), match.start())
    if article is None:
        return Edit(*match.span(), new)
    letter = article[1][0]
    an = letter + "n" if _VOWEL_SOUND.match(replacement) else letter
    return Edit(article.start(1), match.end(), f"{an}{article[2]}{new}")
