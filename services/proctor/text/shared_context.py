"""Which items of a benchmark are related: they share a passage or a table word for word, or one template made them.

Found by what is equal, in one pass over the words, so the time grows with the benchmark and not with its square:

- **context**: a run of whole sentences, or lines, of `CONTEXT_WORDS` words or more that stands in several questions, or
  as many words at the start of several;
- **template**: question and options that are the same word for word once numerals, names and pronouns are masked, with
  `TEMPLATE_WORDS` words left;
- **copies**: question and options that are the same, however short.

What more than half of the items have in common is the instruction that stands above each of them, and no context.
Short questions that begin alike share neither. A passage that stands in another column, or that was typed anew, is not
seen, and neither are items about the same matter in other words: what is found is there, what is not found may be.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from proctor.text.normalise import words

#: Fewer words in common are a manner of asking: no two of GSM8K's 1,319 test items share so many.
CONTEXT_WORDS: Final = 25
#: Fewer words left of a question are a kind of question, like "What is the capital of …?", and not a template.
TEMPLATE_WORDS: Final = 15
#: Items up to which an instruction cannot be told from a context by how many have it.
_FEW_ITEMS: Final = 20

_ENDS: Final = re.compile(r"(?<=[.!?;:])\s|\n")
_WORD: Final = re.compile(r"[^\W_]+")
_PRONOUNS: Final = frozenset({"he", "she", "they", "him", "her", "them", "his", "hers", "their", "theirs"})


class Wording(NamedTuple):
    """What is asked in an item."""

    question: str
    choices: Sequence[str] = ()


def related_items(wordings: Iterable[Wording]) -> tuple[tuple[int, ...], ...]:
    """Groups of related items: places in ascending order, two or more a group, in the order of their first places.

    Relations add up: an item that shares a passage with a second, which came from a third's template, is in one group
    with both. The wordings are gone through once and not kept: a key of a dozen bytes stays of each run of sentences.
    """
    contexts, others, n = _Keys(), _Keys(), 0
    for place, wording in enumerate(wordings):
        contexts.add(place, _contexts(wording.question))
        others.add(place, chain(_template(wording), _copy(wording)))
        n = place + 1
    groups = _Groups(n)
    for places in contexts.in_common():
        if len(places) <= max(n / 2, _FEW_ITEMS):
            groups.unite(places)
    for places in others.in_common():
        groups.unite(places)
    return groups.of_several()


class _Keys:
    """Keys, each with the place of an item that has it."""

    def __init__(self) -> None:
        self._keys, self._places = array("Q"), array("q")

    def add(self, place: int, keys: Iterable[int]) -> None:
        """The keys of the next item; one that it has twice counts once."""
        own = set(keys)
        self._keys.extend(own)
        self._places.extend([place] * len(own))

    def in_common(self) -> Iterator[list[int]]:
        """The places of the items that have a key in common, in ascending order, for each key of several."""
        keys, places = np.frombuffer(self._keys, np.uint64), np.frombuffer(self._places, np.int64)
        order = np.argsort(keys, kind="stable")
        ends = np.flatnonzero(np.append(np.diff(keys[order]) != 0, [True] * bool(keys.size))) + 1
        starts = np.append(0, ends[:-1])[: ends.size]
        for start, end in np.stack([starts, ends], axis=1)[ends - starts > 1].tolist():
            yield places[order[start:end]].tolist()


class _Groups:
    """Sets of places that can be united (Tarjan 1975, "Efficiency of a good but not linear set union algorithm")."""

    def __init__(self, n: int) -> None:
        self._above = list(range(n))

    def _first(self, place: int) -> int:
        while self._above[place] != place:
            self._above[place] = place = self._above[self._above[place]]
        return place

    def unite(self, places: Sequence[int]) -> None:
        first = self._first(places[0])
        for place in places[1:]:
            other = self._first(place)
            first, above = min(first, other), max(first, other)
            self._above[above] = first

    def of_several(self) -> tuple[tuple[int, ...], ...]:
        found: dict[int, list[int]] = {}
        for place in range(len(self._above)):
            found.setdefault(self._first(place), []).append(place)
        return tuple(tuple(places) for places in found.values() if len(places) > 1)


def _contexts(question: str) -> Iterator[int]:
    """Keys of the runs of sentences that are long enough, each as short as it can be, and of the first words."""
    sentences = [found for part in _ENDS.split(question) if (found := words(part))]
    lengths = [len(sentence) for sentence in sentences]
    end = held = 0
    for start, length in enumerate(lengths):
        while held < CONTEXT_WORDS and end < len(sentences):
            held += lengths[end]
            end += 1
        if held < CONTEXT_WORDS:
            break
        yield _key("context", (word for sentence in sentences[start:end] for word in sentence))
        held -= length
    first = [word for sentence in sentences for word in sentence][:CONTEXT_WORDS]
    if len(first) == CONTEXT_WORDS:
        yield _key("start", first)


def _template(wording: Wording) -> Iterator[int]:
    """Key of what is left of question and options without numerals, names and pronouns; none of a short rest."""
    left, kept = list[str](), 0
    for text in (wording.question, *wording.choices):
        for word in _WORD.findall(text):
            plain = word.islower() and word not in _PRONOUNS
            kept += plain
            # A name is one, or two, or with a title: a run of masked words is one mask.
            if plain or left[-1:] != ["…"]:
                left.append(word if plain else "…")
        left.append("|")
    if kept >= TEMPLATE_WORDS:
        yield _key("template", left)


def _copy(wording: Wording) -> Iterator[int]:
    texts = (wording.question, *sorted(wording.choices))
    yield _key("copy", (part for text in texts for part in (*text.split(), "|")))


def _key(kind: str, parts: Iterable[str]) -> int:
    text = " ".join((kind, *parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
