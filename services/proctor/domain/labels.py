"""How the options of a question are labelled: by A., B., C., …, or in another way."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NUMERALS: Final = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii")


class LabelScheme(StrEnum):
    """A way to label options other than by A., B., C., …, named by its first label.

    The schemes are few and closed, so that every label can be read in an answer, and a file of variants cannot put
    text of its own before the options.
    """

    NUMBERS = "1."
    SMALL_LETTERS = "a)"
    ROMAN_NUMERALS = "i."
    LATE_LETTERS = "P."

    @property
    def most_options(self) -> int:
        """The number of options that can be labelled so.

        Nine Roman numerals would make I the first label and, by letter, the ninth; P to Z are eleven.
        """
        return len(_MARKS[self])


_MARKS: Final[dict[LabelScheme | None, Sequence[str]]] = {
    None: _LETTERS,
    LabelScheme.NUMBERS: tuple(str(number) for number in range(1, len(_LETTERS) + 1)),
    LabelScheme.SMALL_LETTERS: _LETTERS.lower(),
    LabelScheme.ROMAN_NUMERALS: _NUMERALS,
    LabelScheme.LATE_LETTERS: _LETTERS[_LETTERS.index("P") :],
}


def marks(labels: LabelScheme | None, count: int) -> tuple[str, ...]:
    """The first `count` labels of a scheme, without what sets them apart from the option: A, B; 1, 2; i, ii."""
    return tuple(_MARKS[labels][:count])


def labelled(choices: Sequence[str], labels: LabelScheme | None) -> tuple[str, ...]:
    """The options behind their labels: "A. Paris", "1. Paris", "a) Paris"."""
    end = "." if labels is None else labels.value[-1]
    return tuple(f"{mark}{end} {choice}" for mark, choice in zip(marks(labels, len(choices)), choices, strict=False))
