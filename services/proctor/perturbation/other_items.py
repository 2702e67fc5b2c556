"""The questions of a benchmark, from each of which a rewording of another item has to keep its distance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from proctor.domain.canonical import json_digest
from proctor.perturbation.encoder import Vectors, distances
from proctor.text.same_question import asked, asked_of_options

#: Similarities are computed for this many rewordings at a time: 14 MiB for 14,000 items.
_BLOCK: Final = 256

#: No two texts are farther apart.
_FARTHEST: Final = 2.0

Encode = Callable[[Sequence[str]], Vectors]


class OtherItems:
    """All questions of a benchmark, as one set: neither their order nor how often one is asked changes anything.

    Items that ask the same text are one question here. If their options are the same too, they are one item; if not,
    the options tell them apart, and those are the item's own in every rewording. So no such item is another one. The
    same goes for items whose questions differ only in how they point at the options, but for a rewording that is one of
    those questions word for word.

    Args:
        questions: of all items, in any order.
        encode: unit vectors of texts, exact ones. Asked once, for all questions, and not before it is needed.
    """

    def __init__(self, questions: Iterable[str], encode: Encode) -> None:
        by_text: dict[str, str] = {}
        for question in questions:
            key = asked(question)
            # The least of those that ask the same, so that the order does not decide which of them is embedded.
            by_text[key] = min(question, by_text.get(key, question))
        self._rows = {key: row for row, key in enumerate(sorted(by_text))}
        self.questions = tuple(by_text[key] for key in sorted(by_text))
        self._groups: dict[str, list[int]] = {}
        for row, question in enumerate(self.questions):
            self._groups.setdefault(asked_of_options(question), []).append(row)
        self._encode = encode

    @cached_property
    def digest(self) -> str:
        """Of the questions: what a margin was learned against, and a part of the library's keys."""
        return json_digest(list(self.questions))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OtherItems) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def vectors(self) -> Vectors:
        """One unit vector a question, in the order of `questions`; raises what `encode` raises."""
        return self._encode(self.questions)

    def row_of(self, text: str) -> int | None:
        """Where a text stands among the questions, letter by letter; None where none of them is exactly this."""
        row = self._rows.get(asked(text))
        return row if row is not None and self.questions[row] == text else None

    def nearest(self, pairs: Sequence[tuple[str, str]], rewordings: Vectors) -> list[float]:
        """For each question and its rewording, the distance of the rewording from the nearest question of another item.

        2 where there is no other item, and 0 where the rewording is another item's question word for word.

        Args:
            pairs: the item's own question, and its rewording.
            rewordings: the unit vectors of the rewordings, one row a pair.

        Raises:
            EncoderError: when the benchmark's questions cannot be embedded.
        """
        return [distance for distance, _ in self.nearest_rows(pairs, rewordings)]

    def nearest_rows(self, pairs: Sequence[tuple[str, str]], rewordings: Vectors) -> list[tuple[float, int]]:
        """As `nearest`, each with the row of that other question among `questions`; -1 where there is none."""
        found: list[tuple[float, int]] = []
        for start in range(0, len(pairs), _BLOCK):
            part = pairs[start : start + _BLOCK]
            similarity = rewordings[start : start + _BLOCK] @ self.vectors.T
            for place, ((question, rewording), row) in enumerate(zip(part, similarity, strict=True), start):
                nearest = self._nearest(question, rewording, row)
                found.append((self._distance(rewordings[place], nearest, rewording), nearest))
        return found

    def near_pairs(self, below: float) -> list[tuple[float, int, int]]:
        """Pairs of questions of different items nearer to each other than a distance, the nearest first, by rows."""
        group = np.empty(len(self.questions), dtype=np.int64)
        for number, rows in enumerate(self._groups.values()):
            group[rows] = number
        found = []
        for start in range(0, len(self.questions), _BLOCK):
            distance = 1.0 - self.vectors[start : start + _BLOCK].astype(np.float64) @ self.vectors.astype(np.float64).T
            near = (distance < below) & (group[start : start + _BLOCK, None] != group[None, :])
            for offset, column in np.argwhere(near):
                if start + offset < column:
                    found.append((float(distance[offset, column]), int(start + offset), int(column)))
        return sorted(found)

    def _nearest(self, question: str, rewording: str, similarity: NDArray[np.float32]) -> int:
        """The row of the nearest question of another item; -1 where there is none."""
        verbatim = self._rows.get(asked(rewording))
        if verbatim is not None and asked(rewording) != asked(question):
            return verbatim
        mine = self._groups.get(asked_of_options(question), [])
        if len(mine) == len(self.questions):
            return -1
        similarity[mine] = -np.inf
        return int(np.argmax(similarity))

    def _distance(self, vector: Vectors, row: int, rewording: str) -> float:
        if row < 0:
            return _FARTHEST
        if asked(rewording) == asked(self.questions[row]):
            return 0.0
        return float(distances(vector[None], self.vectors[row][None])[0])
