"""What a search for near duplicates finds: a piece of a document beside an item, and whether it asks the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from proctor.exposure.near.sentences import COLUMN_END
from proctor.text.invariants import CHECKS
from proctor.text.overlap_words import without_markup

_SHOWN_CHARACTERS: Final = 2_000
#: Markdown's emphasis, code, headings and quotations, and TeX's dollars by Pandoc's rule, which leaves "$5 and $6".
_MARKS: Final = re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)|^[ \t]{0,8}(?:#{1,6}|>)[ \t]+", re.MULTILINE)
_DOLLARS: Final = re.compile(r"\$(?=\S)([^$\n]{0,80}\S)\$(?!\d)")


class NearMethod(StrEnum):
    """How documents that are like an item are found."""

    MINHASH = "minhash"
    EMBEDDING = "embedding"


class Document(NamedTuple):
    """A document, and where it stands."""

    file: str
    position: int
    """Its line or row in the piece that it was read of, from 1; in plain text its first byte."""
    text: str
    """In which what is no UTF-8, and the mark between columns, is half a surrogate pair a byte."""


class NearMatch(NamedTuple):
    """A piece of a document that is like an item."""

    similarity: float
    """By the method's measure; 1 for the same."""
    broken: str | None
    """The first answer invariant that it does not keep: it is like the item and asks something else. None for a near
    duplicate."""
    file: str
    document: int
    offset: int
    """Where it begins in the document, in bytes."""
    text: str


class Finding(NamedTuple):
    """A match, and the item (its place among the items) that it is one of."""

    item: int
    match: NearMatch


def broken_invariant(question: str, excerpt: str) -> str | None:
    """The first of the perturbation gate's answer invariants that a document's words do not keep; None for none."""
    asked, said = plain(question), plain(excerpt)
    return next((name for name, keeps in CHECKS.items() if not keeps(asked, said)), None)


def plain(text: str) -> str:
    """A text without marks that say how it looks: a name in bold is a name, and a number in TeX's dollars no price."""
    return _MARKS.sub("", _DOLLARS.sub(r"\1", without_markup(text)))


def match_of(document: Document, start: int, end: int, similarity: float, broken: str | None) -> NearMatch:
    """The match that some characters of a document are."""
    return NearMatch(
        # Of what a float's last bits say nothing is meant.
        similarity=round(similarity, 4),
        broken=broken,
        file=document.file,
        document=document.position,
        offset=len(document.text[:start].encode("utf-8", "surrogateescape")),
        text=readable(document.text[start:end])[:_SHOWN_CHARACTERS],
    )


def readable(text: str) -> str:
    """A document's text as it is shown, and as it is compared by its meaning."""
    return text.replace(COLUMN_END, "\n").encode("utf-8", "replace").decode()


class Best:
    """Of each item the best near duplicate, and the best match that asks something else.

    The more similar one; of equally similar ones the first, in the order of files, documents and places.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, bool], tuple[tuple[float, str, int, int, int], NearMatch]] = {}

    def add(self, findings: Iterable[Finding], piece: int = 0) -> None:
        """Weigh findings of a piece of the corpus."""
        for item, match in findings:
            key = item, match.broken is None
            rank = -match.similarity, match.file, piece, match.document, match.offset
            if key not in self._kept or rank < self._kept[key][0]:
                self._kept[key] = rank, match

    def pieces(self) -> Iterable[tuple[Finding, int]]:
        """What was kept, with the piece that each is of."""
        for (item, _), (rank, match) in sorted(self._kept.items()):
            yield Finding(item, match), rank[2]
