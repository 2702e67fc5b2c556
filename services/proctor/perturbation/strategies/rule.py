"""What strategies that reword by rule share: seeded alternatives of the question, and why there are none."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, NamedTuple

from proctor.domain.item import Item
from proctor.perturbation.candidate import Draft, Rewrite
from proctor.perturbation.strategies.base import EVERYTHING, Strategy
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.unreadable import unreadable

#: A text with few places to change soon repeats itself; this many repetitions in a row end the search.
_REPEATS: Final = 6


class Reworded(NamedTuple):
    """A question changed by a rule, and what is worth knowing of the change: plain JSON for the provenance."""

    question: str
    facts: Mapping[str, Any]


Maker = Callable[[Draws], Reworded | None]
"""One way to change a question for each state of the draws; None for a draw that comes to nothing."""


class Edit(NamedTuple):
    """A replacement of question[start:end]."""

    start: int
    end: int
    text: str


class RuleStrategy(Strategy):
    """A strategy whose alternatives are seeded draws of one rule over the question; options are left alone.

    The rule is applied to the draft as the strategies before it left it, with the draws of the alternative's number,
    so strategies chain in any order.
    """

    version: ClassVar[int] = 1
    preserves: ClassVar[frozenset[str]] = EVERYTHING
    nothing: ClassVar[tuple[str, str]]
    """The reason code and the sentence for an item in which the rule finds nothing to do."""

    @abstractmethod
    def maker(self, question: str, item: Item) -> Maker | None:
        """What the rule can do with a question, read once for all draws; None where it has no place in it.

        Args:
            question: the wording to change, which earlier strategies of a chain may have changed already.
            item: the item, for what must stay as it is (options, target).
        """

    def data_digest(self, item: Item) -> str:
        """The rule's version, which is raised with any change to what it makes."""
        return f"{self.name}/{self.version}"

    def rewrites(self, item: Item, *, seed: int, limit: int) -> Sequence[Rewrite]:
        """At most `limit` alternatives that give different wordings of the item's own question."""
        make = None if unreadable(item) else self.maker(item.question, item)
        if make is None:
            return []
        key = item.content_hash
        seen = {item.question}
        rewrites: list[Rewrite] = []
        repeats = number = 0
        while len(rewrites) < limit and repeats < _REPEATS:
            draw = (self.name, seed, key, number)
            made = make(Draws(*draw))
            number += 1
            if made is None or made.question in seen:
                repeats += 1
                continue
            repeats = 0
            seen.add(made.question)
            rewrites.append(self._ask(item, draw, made))
        return rewrites

    def nothing_for(self, item: Item) -> tuple[str, str]:
        """Why the rule has no alternative."""
        return unreadable(item) or self.nothing

    def _ask(self, item: Item, draw: tuple[Any, ...], known: Reworded) -> Rewrite:
        def apply(draft: Draft) -> Draft:
            made: Reworded | None = known
            if draft.question != item.question:
                make = self.maker(draft.question, item)
                made = make(Draws(*draw)) if make else None
            if made is None:
                return draft
            return replace(draft, question=made.question).noting(self.name, **made.facts)

        return apply


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with replacements that do not overlap."""
    parts, at = [], 0
    for edit in sorted(edits):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])
