"""Edited copies, by MinHash and locality-sensitive hashing of sentences.

An item that is embedded in a long document is little of it, so documents and items are not compared as they stand:
sentences are. The items' sentences are indexed once; a sentence of a document that is like one of them leads to the
run of sentences around it that is most like the whole item, and that run is compared with it exactly, by the share of
their 5-letter shingles (Jaccard). Shingles of letters, not words: a typo then costs a word five of them, and not all
n-grams of words that it stands in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from proctor.exposure.near.matches import Document, Finding, broken_invariant, match_of, readable
from proctor.exposure.near.sentences import Sentence, form_of, sentences

#: Jaccard similarity from which a run of sentences is like an item.
THRESHOLD: Final = 0.3
SHINGLE_LETTERS: Final = 5
SEED: Final = 17
#: With 32 bands of 4, a sentence that shares half of its shingles with one of an item's leads there in 87 of 100
#: cases, one that shares 70 % in 9,998 of 10,000, and one that shares 20 % in 5.
PERMUTATIONS: Final = 128
BANDS: Final = 32
#: A question with fewer shingles says too little to be told from others by them.
_LEAST_SHINGLES: Final = 20
#: Items that one sentence leads to: what is asked in as many ("How much did she spend in all?") tells nothing.
_MOST_ITEMS: Final = 50
#: How much longer than the item a run may become.
_MOST_GROWTH: Final = 3

Shingles = frozenset[str]


class _Item(NamedTuple):
    place: int
    question: str
    shingles: Shingles


class MinhashSearch:
    """Documents past items' sentences.

    Args:
        questions: of the items.
        threshold: Jaccard similarity from which a run of sentences is like an item.
    """

    def __init__(self, questions: Sequence[str], threshold: float = THRESHOLD) -> None:
        import rensa

        self._threshold = threshold
        self._items: list[_Item] = []
        self._owners: list[int] = []
        indexed: list[Shingles] = []
        self.too_short: list[int] = []
        for place, question in enumerate(questions):
            own = [shingles(form_of(question[one.start : one.end])) for one in sentences(question)]
            whole = frozenset().union(*own)
            if len(whole) < _LEAST_SHINGLES:
                self.too_short.append(place)
                continue
            self._owners += [len(self._items)] * len(own)
            indexed += own
            self._items.append(_Item(place, question, whole))
        self._sketch = rensa.RMinHash.from_token_sets
        self._lsh: Any = rensa.RMinHashLSH(threshold=threshold, num_perm=PERMUTATIONS, num_bands=BANDS)
        self._lsh.insert_many(self._sketched(indexed))

    def _sketched(self, sets: Sequence[Shingles]) -> Any:
        return self._sketch(sets, num_perm=PERMUTATIONS, seed=SEED)

    def look_up(self, documents: Sequence[Document]) -> Iterator[Finding]:
        """What in some documents is like an item."""
        cut = [sentences(document.text) for document in documents]
        sets = [
            [shingles(form_of(document.text[one.start : one.end])) for one in found]
            for document, found in zip(documents, cut, strict=True)
        ]
        near = iter(self._lsh.query_all(self._sketched([one for of_document in sets for one in of_document])))
        for document, found, own in zip(documents, cut, sets, strict=True):
            yield from self._of_document(document, found, own, list(islice(near, len(own))))

    def finish(self) -> Iterator[Finding]:
        """Nothing is left to be looked up."""
        return iter(())

    def _of_document(
        self, document: Document, found: Sequence[Sentence], own: Sequence[Shingles], near: Sequence[Sequence[int]]
    ) -> Iterator[Finding]:
        # Of an item, up to which sentence the document has been compared with it.
        compared: dict[int, int] = {}
        for at, keys in enumerate(near):
            numbers = sorted({self._owners[key] for key in keys})
            for number in numbers if len(numbers) <= _MOST_ITEMS else ():
                if compared.get(number, -1) >= at:
                    continue
                item = self._items[number]
                first, last, similarity = grown(item.shingles, own, at)
                compared[number] = max(at, last)
                if similarity >= self._threshold:
                    yield self._checked(item, document, found, own, (first, last, similarity))

    def _checked(
        self,
        item: _Item,
        document: Document,
        found: Sequence[Sentence],
        own: Sequence[Shingles],
        best: tuple[int, int, float],
    ) -> Finding:
        """The run, or one with a sentence more or less that is nearly as like the item and asks the same."""
        first, last, _ = best
        tried = [best]
        for begin, end in ((first, last - 1), (first + 1, last), (first, last + 1), (first - 1, last)):
            if 0 <= begin <= end < len(found):
                similarity = jaccard(item.shingles, frozenset().union(*own[begin : end + 1]))
                if similarity >= self._threshold:
                    tried.append((begin, end, similarity))
        tried.sort(key=lambda one: -one[2])
        refused: str | None = None
        for begin, end, similarity in tried:
            start, stop = found[begin].start, found[end].end
            broken = broken_invariant(item.question, readable(document.text[start:stop]))
            if broken is None:
                return Finding(item.place, match_of(document, start, stop, similarity, None))
            refused = refused or broken
        begin, end, similarity = tried[0]
        return Finding(item.place, match_of(document, found[begin].start, found[end].end, similarity, refused))


def shingles(form: str) -> Shingles:
    """Every few letters one after the other; a text that is shorter is one."""
    return frozenset(form[at : at + SHINGLE_LETTERS] for at in range(max(1, len(form) - SHINGLE_LETTERS + 1)))


def jaccard(one: Shingles, other: Shingles) -> float:
    """The share of what either has that both have."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def grown(wanted: Shingles, own: Sequence[Shingles], at: int) -> tuple[int, int, float]:
    """The run of sentences with this one that is most like an item: first and last of it, and its similarity."""
    best = jaccard(wanted, own[at])
    have, first, last = own[at], at, at
    for step, end in ((1, len(own)), (-1, -1)):
        longer, place = have, last if step > 0 else first
        while (place := place + step) != end:
            longer |= own[place]
            if len(longer) > _MOST_GROWTH * len(wanted):
                break
            similarity = jaccard(wanted, longer)
            if similarity > best:
                best, have = similarity, longer
                first, last = min(first, place), max(last, place)
    return first, last, best
