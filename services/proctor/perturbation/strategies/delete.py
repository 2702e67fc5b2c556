"""Part of the useful information taken out: what a noisy router does to a question. Never a variant."""

from __future__ import annotations

from typing import ClassVar, Final

from proctor.domain.item import Item
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.english import sentences
from proctor.perturbation.strategies.rule import Edit, Maker, Reworded, RuleStrategy, edited

_DEFAULT_SHARE: Final = 0.3


class Delete(RuleStrategy):
    """A share of the sentences before the last is left out; of a single sentence, a share of the words.

    The deletion operator of arXiv 2603.21636, equation 10. It preserves nothing but the options and the right answer
    to the *original*, so no chain admits it as a variant: it is made for the noise channel's routers, which state
    what they did to the question.

    Args:
        share: share of the sentences, or words, that go, 0 to 1; at least one goes and the last sentence, which
            asks, stays.
    """

    name = "delete"
    preserves: ClassVar[frozenset[str]] = frozenset({"options", "target"})
    nothing = ("too_short", "the question is too short to take a part out of it")

    def __init__(self, share: float = _DEFAULT_SHARE) -> None:
        self._share = share

    def data_digest(self, item: Item) -> str:
        """The rule's version and its share."""
        return f"{super().data_digest(item)} {self._share!r}"

    def maker(self, question: str, item: Item) -> Maker | None:
        """The question without some of its parts."""
        parts = [Edit(start, end, "") for start, end in sentences(question)[:-1]]
        kind = "sentences"
        if not parts:
            kind, parts = "words", _words(question)[:-1]

        def make(draws: Draws) -> Reworded | None:
            gone = draws.some_of(parts, max(1, round(self._share * len(parts))))
            left = " ".join(edited(question, gone).split())
            return Reworded(left, {"deleted": len(gone), "of": len(parts), "kind": kind}) if left else None

        return make if parts else None


def _words(question: str) -> list[Edit]:
    edits, at = [], 0
    for word in question.split():
        at = question.index(word, at)
        edits.append(Edit(at, at + len(word), ""))
        at += len(word)
    return edits
