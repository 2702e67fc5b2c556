"""Paraphrases, by sentence embeddings: each item's nearest passages of a corpus, or of a seeded sample of it.

The search is exact: a batch of passages times the matrix of items is one product of matrices, a fraction of a second
for 10^5 items, where the encoder takes seconds for the same batch. An approximate index of the corpus would first have
to be built of the very vectors that cost the time, and would miss some.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.exposure.near.matches import Document, Finding, NearMatch, broken_invariant, match_of, readable
from proctor.exposure.near.sentences import Sentence, runs, sentences

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to unit vectors."""

#: Cosine similarity from which a run of sentences may say what an item says: the end of the perturbation gate's window.
THRESHOLD: Final = 0.55
#: A passage is of about an item's length and not of its own begin and end, so it is a little further off than the run
#: of sentences in it that is the item's.
_COARSE: Final = 0.5
#: An item's passages that are looked at closely.
TOP: Final = 5
_BATCH: Final = 256
#: A passage's length over an item's, at least and at most, and of the run that is compared in the end.
_LEAST_LENGTH, _MOST_LENGTH = 0.4, 2.0
#: Runs of one passage that are compared; the longest first would be those with the most in them that is not the item.
_MOST_RUNS: Final = 60
#: A shorter question says too little to be found by what it means.
_LEAST_CHARACTERS: Final = 20


class _Passage(NamedTuple):
    """Some sentences of a document, with those around them."""

    document: Document
    """Of which the text is what stands around alone."""
    offset: int
    """Where that begins in the document, in bytes."""
    sentences: tuple[Sentence, ...]
    first: int
    last: int

    @property
    def text(self) -> str:
        """The passage itself."""
        return readable(self.document.text[self.sentences[self.first].start : self.sentences[self.last].end])


class _Candidate(NamedTuple):
    """A passage that an item may be in."""

    row: int
    """Of the item's vector."""
    passage: _Passage
    coarse: float
    """The passage's own similarity."""
    same: tuple[tuple[int, int, str], ...]
    """Runs of sentences that keep the answer invariants: first, last and text."""
    refused: str | None
    """The first invariant that a run did not keep."""


class EmbeddingSearch:
    """Passages past items' vectors.

    Args:
        questions: of the items.
        encode: gives texts their vectors.
        threshold: cosine similarity from which a run of sentences is like an item.
        sample: passages to embed, drawn from all of the corpus; None for all of them.
        rng: draws them; needed where there is a sample.
    """

    def __init__(
        self,
        questions: Sequence[str],
        encode: Encode,
        *,
        threshold: float = THRESHOLD,
        sample: int | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._questions = questions
        self._encode = encode
        self._threshold = threshold
        self._sample = sample
        self._rng = rng
        self.too_short = [place for place, one in enumerate(questions) if len(one.strip()) < _LEAST_CHARACTERS]
        self._places = [place for place in range(len(questions)) if place not in set(self.too_short)]
        self._vectors = encode([questions[place] for place in self._places])
        self._lengths = length_classes([len(questions[place]) for place in self._places])
        self._waiting: list[_Passage] = []
        self._passages: dict[int, _Passage] = {}
        self._top_similarity = np.full((len(self._places), TOP), -1.0, dtype=np.float32)
        self._top_passage = np.full((len(self._places), TOP), -1, dtype=np.int64)
        self.passages = 0
        """Of the corpus."""
        self.embedded = 0

    def look_up(self, documents: Sequence[Document]) -> Iterator[Finding]:
        """Take documents' passages, or draw among them. What they are like is told in the end."""
        for document in documents:
            for passage in _passages(document, self._lengths):
                self.passages += 1
                self._take(passage)
        return iter(())

    def _take(self, passage: _Passage) -> None:
        if self._sample is None:
            self._waiting.append(passage)
            if len(self._waiting) >= _BATCH:
                self._weigh(self._waiting)
                self._waiting = []
        elif len(self._waiting) < self._sample:
            self._waiting.append(passage)
        else:
            assert self._rng is not None
            place = self._rng.randrange(self.passages)
            if place < self._sample:
                self._waiting[place] = passage

    def finish(self) -> Iterator[Finding]:
        """What the items' nearest passages say, once all documents were looked up."""
        for begin in range(0, len(self._waiting), _BATCH):
            self._weigh(self._waiting[begin : begin + _BATCH])
        self._waiting = []
        for begin in range(0, len(self._places), _BATCH):
            yield from self._decided(
                [
                    self._candidate(row, self._passages[int(number)], float(similarity))
                    for row in range(begin, min(begin + _BATCH, len(self._places)))
                    for similarity, number in zip(self._top_similarity[row], self._top_passage[row], strict=True)
                    if number >= 0
                ]
            )

    def _weigh(self, batch: Sequence[_Passage]) -> None:
        vectors = self._encode([passage.text for passage in batch])
        numbers = np.arange(self.embedded, self.embedded + len(batch))
        self.embedded += len(batch)
        similarity = self._vectors @ vectors.T
        better = np.flatnonzero(similarity.max(axis=1) > np.maximum(self._top_similarity[:, -1], _COARSE))
        for row in better:
            values = np.concatenate([self._top_similarity[row], similarity[row]])
            passages = np.concatenate([self._top_passage[row], numbers])
            order = np.argsort(-values, kind="stable")[:TOP]
            order = order[values[order] > _COARSE]
            self._top_similarity[row, : len(order)] = values[order]
            self._top_passage[row, : len(order)] = passages[order]
        self._passages.update(zip(numbers.tolist(), batch, strict=True))
        kept = set(np.unique(self._top_passage).tolist())
        self._passages = {number: passage for number, passage in self._passages.items() if number in kept}

    def _candidate(self, row: int, passage: _Passage, coarse: float) -> _Candidate:
        """The runs of sentences in and around a passage that ask what an item asks."""
        question = self._questions[self._places[row]]
        found = passage.sentences
        same: list[tuple[int, int, str]] = []
        refused: str | None = None
        bounds = round(_LEAST_LENGTH * len(question)), round(_MOST_LENGTH * len(question))
        tried = (run for run in runs(found, *bounds) if run[0] <= passage.last and run[1] >= passage.first)
        for first, last in islice(tried, _MOST_RUNS):
            text = readable(passage.document.text[found[first].start : found[last].end])
            broken = broken_invariant(question, text)
            if broken is None:
                same.append((first, last, text))
            refused = refused or broken
        return _Candidate(row, passage, coarse, tuple(same), refused)

    def _decided(self, candidates: Sequence[_Candidate]) -> Iterator[Finding]:
        texts = sorted({text for one in candidates for *_, text in one.same})
        row_of = {text: row for row, text in enumerate(texts)}
        vectors = self._encode(texts)
        for candidate in candidates:
            row, passage, coarse, same, refused = candidate
            place = self._places[row]
            if same:
                similarities = vectors[[row_of[text] for *_, text in same]] @ self._vectors[row]
                at = int(np.argmax(similarities))
                if similarities[at] >= self._threshold:
                    first, last, _ = same[at]
                    yield Finding(place, self._match(passage, first, last, float(similarities[at]), None))
                    continue
            if coarse >= self._threshold and refused is not None:
                yield Finding(place, self._match(passage, passage.first, passage.last, coarse, refused))

    @staticmethod
    def _match(passage: _Passage, first: int, last: int, similarity: float, broken: str | None) -> NearMatch:
        found = passage.sentences
        match = match_of(passage.document, found[first].start, found[last].end, similarity, broken)
        return match._replace(offset=match.offset + passage.offset)


def length_classes(lengths: Sequence[int]) -> tuple[int, ...]:
    """Lengths of passages, each twice the one before, so that every item is near one of them."""
    if not lengths:
        return ()
    low, high = min(lengths), max(lengths)
    classes = [round(low * 4 / 3)]
    while classes[-1] * 3 < high * 2:
        classes.append(2 * classes[-1])
    return tuple(classes)


def _passages(document: Document, lengths: Sequence[int]) -> Iterator[_Passage]:
    """Runs of whole sentences of about these lengths, each beginning in the middle of the one before."""
    found = sentences(document.text)
    seen: set[tuple[int, int]] = set()
    around = round(max(lengths, default=0) * _MOST_LENGTH)
    for length in lengths:
        first = 0
        while first < len(found):
            last = first
            while last + 1 < len(found) and found[last].end - found[first].start < 3 * length // 4:
                last += 1
            if (first, last) not in seen:
                seen.add((first, last))
                yield _cut_out(document, found, first, last, around)
            if last == len(found) - 1:
                break
            middle = found[first].start + length // 2
            first = next((at for at in range(first + 1, last + 1) if found[at].start >= middle), last + 1)


def _cut_out(document: Document, found: Sequence[Sentence], first: int, last: int, around: int) -> _Passage:
    begin, end = first, last
    while begin > 0 and found[first].start - found[begin - 1].start <= around:
        begin -= 1
    while end + 1 < len(found) and found[end + 1].end - found[last].end <= around:
        end += 1
    start = found[begin].start
    return _Passage(
        document._replace(text=document.text[start : found[end].end]),
        len(document.text[:start].encode("utf-8", "surrogateescape")),
        tuple(Sentence(one.start - start, one.end - start) for one in found[begin : end + 1]),
        first - begin,
        last - begin,
    )
