"""Labelled pairs of a benchmark's items: what a calibration of the gate is learned from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.perturbation.admission.window import Goals
from proctor.perturbation.candidate import Candidate
from proctor.perturbation.encoder import Encoder, Vectors
from proctor.text.same_question import asked_of_options
from proctor.text.sameness import question_digest

#: Similarities are computed for this many items at a time: 8 MiB for 4,000 items, whatever the benchmark's size.
_BLOCK_ITEMS: Final = 512


class ChangedQuestion(NamedTuple):
    """A question that was made from an item's and asks something else on purpose."""

    item: Item
    candidate: Candidate
    kind: str
    """What was done, in the words of whoever made it: analogous, extended, …."""


class LabelledPair(NamedTuple):
    """A pair of which it is known whether both ask the same."""

    item: Item
    candidate: Candidate
    equivalent: bool
    nearest: bool = False
    """Of a different pair: whether the other question is the nearest to the item's of all in the benchmark."""


def neighbours_needed(items: int, goals: Goals) -> int:
    """How many of the nearest different items to take of each item, so that half of the items give enough pairs.

    Raises:
        BadInputError: for a benchmark that has not that many.
    """
    half = items // 2
    needed = math.ceil(goals.different_needed / half) if half else items
    if needed >= items:
        raise BadInputError(
            f"the benchmark has {items} items, which do not make the {2 * goals.different_needed} different pairs "
            f"that admitting at most {100 * goals.false_admits:g} % takes: raise --false-admits"
        )
    return needed


def nearest_different(items: Sequence[Item], encoder: Encoder, count: int) -> list[LabelledPair]:
    """Each item paired with the questions of the `count` items nearest to it that ask something else.

    The hardest known-different pairs that a benchmark has. Items that ask the same text, or differ in how they point at
    their options only, are not different and are passed over; the candidate keeps the item's own options, so that they
    do not give it away.

    Raises:
        EncoderError: when the questions cannot be embedded.
    """
    texts = [asked_of_options(item.question) for item in items]
    vectors = encoder.encode([item.question for item in items])
    pairs = []
    for row, order in _by_similarity(vectors, count + max(Counter(texts).values(), default=0)):
        others = (other for other in order if texts[other] != texts[row])
        for rank, other in enumerate(islice(others, count)):
            candidate = Candidate(items[other].question, items[row].choices, "different", 1, {})
            pairs.append(LabelledPair(items[row], candidate, equivalent=False, nearest=rank == 0))
    return pairs


def _by_similarity(vectors: Vectors, count: int) -> Iterator[tuple[int, list[int]]]:
    """Every row with the `count` rows most similar to it, itself among them, the most similar first."""
    count = min(count, len(vectors))
    for start in range(0, len(vectors), _BLOCK_ITEMS):
        similarity = vectors[start : start + _BLOCK_ITEMS] @ vectors.T
        nearest = np.argpartition(-similarity, count - 1, axis=1)[:, :count]
        for offset, (columns, row) in enumerate(zip(nearest, similarity, strict=True)):
            # The position settles ties, so that the order is the same on every run.
            yield start + offset, columns[np.lexsort((columns, -row[columns]))].tolist()


def one_of_each(pairs: Sequence[LabelledPair]) -> list[LabelledPair]:
    """The pairs of one item for all items that ask the same with the same options: the first's, and what others add."""
    first: dict[str, Item] = {}
    own: list[LabelledPair] = []
    of_twins: list[tuple[str, LabelledPair]] = []
    known: set[tuple[str, str, tuple[str, ...], bool]] = set()
    for pair in pairs:
        digest = question_digest(pair.item.question, pair.item.choices)
        if first.setdefault(digest, pair.item).item_id == pair.item.item_id:
            own.append(pair)
            known.add(_key(digest, pair))
        else:
            of_twins.append((digest, pair))
    for digest, pair in of_twins:
        if _key(digest, pair) not in known:
            known.add(_key(digest, pair))
            own.append(pair._replace(item=first[digest]))
    return own


def _key(digest: str, pair: LabelledPair) -> tuple[str, str, tuple[str, ...], bool]:
    return digest, pair.candidate.question, pair.candidate.choices, pair.equivalent
