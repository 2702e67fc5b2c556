"""Slips of the keyboard in longer words that carry neither number, name, unit nor negation."""

from __future__ import annotations

import re
from typing import Final

from proctor.domain.item import Item
from proctor.perturbation.strategies.draws import Draws
from proctor.perturbation.strategies.english import Fixed
from proctor.perturbation.strategies.guarded import carries_an_invariant
from proctor.perturbation.strategies.rule import Edit, Maker, Reworded, RuleStrategy, edited
from proctor.text.normalise import words

_WORD: Final = re.compile(r"(?<![\w'\u2019-])[a-z]{5,}(?![\w'\u2019-])")
_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_DEFAULT_RATE: Final = 0.15


def _neighbours() -> dict[str, str]:
    """The letters beside, above and below each letter of a QWERTY keyboard, whose rows are set off by half a key."""
    found: dict[str, str] = {}
    for number, row in enumerate(_ROWS):
        above = _ROWS[number - 1] if number else ""
        below = _ROWS[number + 1] if number + 1 < len(_ROWS) else ""
        for column, letter in enumerate(row):
            near = row[max(0, column - 1) : column + 2] + above[column : column + 2]
            near += below[max(0, column - 1) : column + 1]
            found[letter] = near.replace(letter, "")
    return found


_NEIGHBOURS: Final = _neighbours()


class Typo(RuleStrategy):
    """One slip in a share of the words of five letters and more: two letters swapped, or a neighbouring key.

    The first and the last letter stay, by which readers know a word (Rawlinson 1976). Words of the options and the
    target are left alone. A typo can make a clean model's answer worse: it measures robustness as much as memory,
    so a suite that uses it needs control items.

    Args:
        rate: share of the words that can take a slip which get one, 0 to 1; at least one word gets one.
    """

    name = "typo"
    nothing = ("no_long_word", "the question has no word of five letters that a slip could not make another question")

    def __init__(self, rate: float = _DEFAULT_RATE) -> None:
        self._rate = rate

    def data_digest(self, item: Item) -> str:
        """The rule's version and its rate."""
        return f"{super().data_digest(item)} {self._rate!r}"

    def maker(self, question: str, item: Item) -> Maker | None:
        """Slips in words drawn at random."""
        fixed = Fixed.of(question)
        asked_for = {word for text in (*item.choices, item.target) for word in words(text)}
        free = [
            match
            for match in _WORD.finditer(question)
            if match.group() not in asked_for
            and not carries_an_invariant(match.group())
            and not fixed.touches(*match.span())
        ]
        known = frozenset(words(question))

        def make(draws: Draws) -> Reworded | None:
            chosen = draws.some_of(free, max(1, round(self._rate * len(free))))
            edits = [Edit(*match.span(), _slip(match.group(), draws)) for match in chosen]
            # A slip that makes another word of this text, or a guarded one, is no slip but another question.
            edits = [edit for edit in edits if edit.text not in known and not carries_an_invariant(edit.text)]
            return Reworded(edited(question, edits), {"slips": len(edits)}) if edits else None

        return make if free else None


def _slip(word: str, draws: Draws) -> str:
    inner = range(1, len(word) - 1)
    swaps = [at for at in inner[:-1] if word[at] != word[at + 1]]
    if swaps and draws.chance(0.5):
        at = draws.one_of(swaps)
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    at = draws.one_of(inner)
    return word[:at] + draws.one_of(_NEIGHBOURS[word[at]]) + word[at + 1 :]
