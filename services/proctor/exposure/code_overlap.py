"""Programs of a code benchmark in a corpus: the same tokens of the language, one after the other, and none between.

A document is read as tokens only where it has a word of a program that few other programs have, since tokens take a
hundred times as long as words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from proctor.exposure.corpus_file import CorpusFile
from proctor.exposure.items import Part, ScannedItem
from proctor.exposure.judging import PartResult, StageItem
from proctor.exposure.policies import Policy
from proctor.exposure.reading import ReadDocument, Reading
from proctor.exposure.scanned import Counts
from proctor.text.code_tokens import CodeToken, Language, code_tokens, program_of

_WORD: Final = re.compile(r"[^\W\d]\w*")
_COLUMN_END: Final = "\udcff"
_AROUND_CHARACTERS: Final = 80
_SHOWN_CHARACTERS: Final = 4_000


class _Program(NamedTuple):
    item: int
    text: str
    start: int
    """Of its first token in the text, up to `end`, the last one's."""
    end: int
    language: Language
    tokens: tuple[str, ...]
    anchor: str
    """The word of it that the fewest programs have."""
    anchor_at: int
    """Which of its tokens that is."""


def judge_stage_by_code(
    items: Sequence[ScannedItem], files: Sequence[CorpusFile], columns: Sequence[str], policy: Policy, stage: str
) -> tuple[list[StageItem], Counts]:
    """What a stage's corpus says of each item, and how much of it was read.

    An item is exposed where one document has its whole program. What was to be answered stands there then, so that in
    tuning data the label leaked.

    Args:
        items: of which the answers are looked for that are programs. One that is none, or has fewer tokens than the
            policy's n, cannot be scored: `return a + b` stands everywhere.
        files: the corpus.
        columns: which columns of rows hold text; nothing for the usual ones.
        policy: the rule.
        stage: of training that the corpus is of.

    Raises:
        BadInputError: for a file that cannot be opened.
    """
    programs = _programs(items, policy.n)
    by_anchor: dict[Language, dict[str, list[_Program]]] = {}
    for program in programs:
        by_anchor.setdefault(program.language, {}).setdefault(program.anchor, []).append(program)
    wanted = frozenset(program.anchor for program in programs)
    spans: dict[int, dict[str, Any]] = {}
    reading = Reading(files, columns)
    for document in reading:
        text = document.data.decode("utf-8", "surrogateescape")
        if wanted.isdisjoint(_WORD.findall(text)):
            continue
        for language, anchors in by_anchor.items():
            for program, first, last in _found(text, language, anchors):
                if program.item not in spans:
                    spans[program.item] = _span(program, document, text, first.start, last.end, stage)
    by_item = {program.item: program for program in programs}
    judged = [_judged(by_item.get(place), spans.get(place)) for place in range(len(items))]
    return judged, reading.counts


def _programs(items: Sequence[ScannedItem], least: int) -> list[_Program]:
    found: list[tuple[int, str, Language, list[CodeToken]]] = []
    for place, item in enumerate(items):
        program = program_of(item.parts.get(Part.ANSWER, ""))
        tokens = code_tokens(*program) if program is not None else []
        if program is not None and len(tokens) >= least and any(_WORD.fullmatch(token.text) for token in tokens):
            found.append((place, *program, tokens))
    having = Counter(word for *_, tokens in found for word in {token.text for token in tokens})
    programs = []
    for place, text, language, tokens in found:
        words = [at for at, token in enumerate(tokens) if _WORD.fullmatch(token.text)]
        at = min(words, key=lambda at: (having[tokens[at].text], -len(tokens[at].text), at))
        forms = tuple(token.text for token in tokens)
        programs.append(_Program(place, text, tokens[0].start, tokens[-1].end, language, forms, forms[at], at))
    return programs


def _found(
    text: str, language: Language, anchors: dict[str, list[_Program]]
) -> Iterator[tuple[_Program, CodeToken, CodeToken]]:
    begin = 0
    for column in text.split(_COLUMN_END):
        tokens = code_tokens(column, language)
        forms = [token.text for token in tokens]
        for at, form in enumerate(forms):
            for program in anchors.get(form, ()):
                first = at - program.anchor_at
                if first >= 0 and tuple(forms[first : first + len(program.tokens)]) == program.tokens:
                    last = tokens[first + len(program.tokens) - 1]
                    yield program, _moved(tokens[first], begin), _moved(last, begin)
        begin += len(column) + len(_COLUMN_END)


def _moved(token: CodeToken, by: int) -> CodeToken:
    return CodeToken(token.text, token.start + by, token.end + by)


def _span(program: _Program, document: ReadDocument, text: str, start: int, end: int, stage: str) -> dict[str, Any]:
    return {
        "stage": stage,
        "part": Part.ANSWER.value,
        "start": program.start,
        "end": program.end,
        "words": len(program.tokens),
        "text": program.text[program.start : program.end],
        "file": document.file,
        "document": document.position,
        "offset": len(text[:start].encode("utf-8", "surrogateescape")),
        "before": _shown(text[max(0, start - _AROUND_CHARACTERS) : start]),
        "document_text": _shown(text[start:end])[:_SHOWN_CHARACTERS],
        "after": _shown(text[end : end + _AROUND_CHARACTERS]),
    }


def _shown(text: str) -> str:
    return text.replace(_COLUMN_END, "\n").encode("utf-8", "replace").decode()


def _judged(program: _Program | None, span: dict[str, Any] | None) -> StageItem:
    if program is None:
        return StageItem(containment=None, longest_run=0, is_exposed=False, has_label=False, is_scorable=False)
    tokens = len(program.tokens)
    is_found = span is not None
    share, run = (1.0, tokens) if is_found else (0.0, 0)
    part = PartResult(Part.ANSWER, tokens, 1, share, run, 0, is_found)
    return StageItem(share, run, is_found, is_found, True, (part,), () if span is None else (span,))
