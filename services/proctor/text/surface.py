"""How different two texts look, whatever they mean: the part of a rewording that defeats recall."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from proctor.text.normalise import TEXTS_KEPT, words

#: Long enough that sharing one by chance is rare in a benchmark, short enough that a question has many.
NGRAM_WORDS: Final = 5
#: The edit distance takes quadratic time. So many words, some forty pages, take 60 ms; 200,000 would take minutes.
EXACT_WORDS: Final = 8_192


def jaccard(left: frozenset[Hashable], right: frozenset[Hashable]) -> float:
    """Shared share of two sets, 0 to 1; two empty sets are equal, so 1."""
    shared = len(left & right)
    # Counted rather than built: the union of two long texts' n-grams costs as much as all the rest.
    union = len(left) + len(right) - shared
    return shared / union if union else 1.0


def bigrams(tokens: Sequence[Hashable]) -> frozenset[Hashable]:
    """The adjacent pairs of a sequence; a sequence of one gives itself, so that short texts can differ."""
    return frozenset(pairwise(tokens)) if len(tokens) > 1 else frozenset(tokens)


def token_overlap(
    question: str, rewording: str, choices: Sequence[str] = (), reworded_choices: Sequence[str] = ()
) -> float:
    """Jaccard overlap of word bigrams, 0 to 1; where there are options, the mean of it and of the options' order.

    The two are averaged instead of pooled, because in a pool a long question would drown any change of its
    options, and the order of options is what a model memorises as readily as the words.
    """
    overlap = jaccard(_bigrams_of(question), _bigrams_of(rewording))
    if not choices:
        return overlap
    return (overlap + jaccard(bigrams(tuple(choices)), bigrams(tuple(reworded_choices)))) / 2


@lru_cache(maxsize=TEXTS_KEPT)
def _bigrams_of(text: str) -> frozenset[Hashable]:
    return bigrams(words(text))


def containment(text: str, rewording: str) -> float:
    """Share of a text's word 5-grams that the rewording holds word for word, 0 to 1.

    Unlike `token_overlap` it is not lowered by what the rewording adds, so a text that stands whole inside a longer
    one is contained. Of a text of fewer than five words the whole is one n-gram; a text without words is contained.
    """
    ours, theirs = words(text), words(rewording)
    n = min(NGRAM_WORDS, len(ours))
    if not n:
        return 1.0
    grams, kept = _ngrams_of(text, n), frozenset(_ngrams(theirs, n))
    return sum(map(kept.__contains__, grams)) / len(grams)


@lru_cache(maxsize=TEXTS_KEPT)
def _ngrams_of(text: str, n: int) -> tuple[tuple[str, ...], ...]:
    return tuple(_ngrams(words(text), n))


def _ngrams(tokens: tuple[str, ...], n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(tokens[start:] for start in range(n)), strict=False)


def word_edit_distance(left: str, right: str) -> float:
    """Levenshtein distance over words, divided by the longer text's words; 0 to 1, and 0 for two empty texts.

    Where the texts differ in more than `EXACT_WORDS` it is measured piece by piece, which may find more edits.
    """
    a, b = words(left), words(right)
    longer = max(len(a), len(b))
    return _edits(a, b) / longer if longer else 0.0


def _edits(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """The Levenshtein distance; of longer texts that of their pieces, which takes linear time and is never less.

    The texts are parted alike, into as many pieces as it takes, so that a piece of the one meets the one that stands
    where it would if nothing had moved.
    """
    left, right = _unlike(left, right)
    longer = max(len(left), len(right))
    if longer <= EXACT_WORDS:
        return levenshtein(left, right)
    pieces = -(-longer // EXACT_WORDS)
    bounds = [(len(left) * piece // pieces, len(right) * piece // pieces) for piece in range(pieces + 1)]
    return sum(levenshtein(left[first:last], right[start:stop]) for (first, start), (last, stop) in pairwise(bounds))


def levenshtein(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Levenshtein distance of two sequences.

    Bit-parallel over one integer as wide as `left` is long (Hyyrö 2003, "A bit-vector algorithm for computing
    Levenshtein and Damerau edit distances"): a row of the table costs a handful of integer operations.
    """
    left, right = _unlike(left, right)
    if not left or not right:
        return max(len(left), len(right))
    positions: dict[Hashable, int] = {}
    for index, token in enumerate(left):
        positions[token] = positions.get(token, 0) | (1 << index)
    mask, last = (1 << len(left)) - 1, 1 << (len(left) - 1)
    positive, negative, distance = mask, 0, len(left)
    for token in right:
        match = positions.get(token, 0)
        diagonal = ((((match & positive) + positive) ^ positive) | match | negative) & mask
        up, down = (negative | ~(diagonal | positive)) & mask, diagonal & positive
        if up & last:
            distance += 1
        elif down & last:
            distance -= 1
        up = ((up << 1) | 1) & mask
        down = (down << 1) & mask
        positive, negative = (down | ~(diagonal | up)) & mask, diagonal & up
    return distance


def _unlike(left: Sequence[Hashable], right: Sequence[Hashable]) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """Both without what they begin and end with alike, which costs no edit: most of a text that a rule has changed."""
    shorter = min(len(left), len(right))
    head = next((at for at in range(shorter) if left[at] != right[at]), shorter)
    left, right = left[head:], right[head:]
    shorter -= head
    tail = next((at for at in range(shorter) if left[-1 - at] != right[-1 - at]), shorter)
    return left[: len(left) - tail], right[: len(right) - tail]
