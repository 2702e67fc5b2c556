"""What the rules know of English: where sentences part, and what in a text must be left as it is."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import Final, NamedTuple

from proctor.text.normalise import TEXTS_KEPT

#: Quoted text, code, formulas and tags: a change in there changes what is asked. Bounded, because an opening mark that
#: nothing closes would otherwise be followed to the end of the text every time.
_QUOTED: Final = re.compile(
    r"```.{0,4000}?(?:```|\Z)|`[^`\n]{0,300}`|\"[^\"\n]{1,300}\"|\u201c[^\u201d\n]{1,300}\u201d"
    r"|(?<!\w)'[^'\n]{1,300}'(?!\w)|(?<!\w)\u2018[^\u2019\n]{1,300}\u2019(?!\w)"
    r"|\$\$.{0,1000}?\$\$|\\\(.{0,1000}?\\\)|\\\[.{0,1000}?\\\]|\$(?=[^$\n]{0,300}[\\^_={}])[^$\n]{0,300}\$"
    r"|<[^<>\n]{1,200}>|\{[^{}\n]{0,300}\}|\[[^\]\n]{0,300}\]",
    re.DOTALL,
)
_CHUNK: Final = re.compile(r"\S+")
#: Chunks with one of these are links, addresses, code or formulas.
_CODE: Final = re.compile(r"://|[@_\\^=]")
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Prof|vs|No|Jr|Sr|Inc|Co|Ltd|etc|approx|oz|lbs?)|\b[A-Za-z])\.$"
)
_BOUNDARY: Final = re.compile(
    r"(?<![.!?])[.!?]{1,5}[\"')\]\u201d\u2019]{0,3}(?=\s{1,40}[\"'(\[\u201c\u2018]?[A-Z0-9$])"
)
_NOT_SPACE: Final = re.compile(r"\S")

#: Words that follow a noun without making a compound of it, or that may follow a full verb.
_FUNCTION_WORDS_LIST: Final = (
    "a an the this that these those and or but nor so if when while as because than then at in on of to from for "
    "with by about after before during between among over under into onto near per is are was were has have had "
    "does do did will would can could should may might must he she it they we you who which each every all both "
    "some any there his her their its my your our him them not only also"
)
FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS_LIST.split())
_DETERMINERS_LIST: Final = (
    "a an the this that these those his her their its my your our each every another one no some any"
)
DETERMINERS: Final = frozenset(_DETERMINERS_LIST.split())


class Sentence(NamedTuple):
    """A sentence's span, without the white space around it."""

    start: int
    end: int


@lru_cache(maxsize=TEXTS_KEPT)
def sentences(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text in order, told by end marks before a capital, a digit or a quote.

    Abbreviations (Mr., 4 p.m.) end no sentence, so two of them may be read as one: a rule then does less, not wrong.
    """
    found: list[Sentence] = []
    start = _next_solid(text, 0)
    for match in _BOUNDARY.finditer(text):
        mark = match.start() + 1
        if match.group()[0] == "." and _ABBREVIATION.search(text, max(start, mark - 8), mark):
            continue
        found.append(Sentence(start, match.end()))
        start = _next_solid(text, match.end())
    end = len(text.rstrip())
    if start < end:
        found.append(Sentence(start, end))
    return tuple(found)


class Fixed:
    """The spans of a text that no rule may change."""

    @staticmethod
    @lru_cache(maxsize=TEXTS_KEPT)
    def of(text: str) -> Fixed:
        """Those of this text, found once for all rules."""
        return Fixed(text)

    def __init__(self, text: str) -> None:
        spans = [match.span() for match in _QUOTED.finditer(text)]
        if _CODE.search(text):
            spans += [match.span() for match in _CHUNK.finditer(text) if _CODE.search(match.group())]
            spans = _merged(spans)
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def touches(self, start: int, end: int) -> bool:
        """Whether a span overlaps one of them."""
        index = bisect_right(self._starts, end - 1)
        return index > 0 and self._ends[index - 1] > start


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of spans, in order and apart."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def matching_case(word: str, model: str) -> str:
    """The word with a capital where the model begins with one."""
    return word[:1].upper() + word[1:] if model[:1].isupper() else word


def _next_solid(text: str, at: int) -> int:
    match = _NOT_SPACE.search(text, at)
    return match.start() if match else len(text)
