"""The toy audit of the page on protocol cards: sets of tokens, document by document.

Its token of one letter does not count, its overlap is of the item's tokens, and an answer whose tokens all stand in a
document counts as leaked wherever they stand. That makes "4" in any document a leak; the page says as much of itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.domain.exposure import TUNING_STAGES
from proctor.exposure.corpus_file import CorpusFile
from proctor.exposure.items import Part, ScannedItem
from proctor.exposure.judging import StageItem
from proctor.exposure.policies import Policy
from proctor.exposure.reading import Reading
from proctor.exposure.scanned import Counts

#: Items times documents: every document is compared with every item.
MAX_PAIRS: Final = 20_000_000
_TOKEN: Final = re.compile(r"[a-z0-9]+")


class _Tokens(NamedTuple):
    item_id: str
    all: frozenset[str]
    answer: frozenset[str]


def tokens(text: str) -> frozenset[str]:
    """Runs of a to z and digits, in lower case; a single letter is none."""
    return frozenset(token for token in _TOKEN.findall(text.lower()) if len(token) > 1 or token.isdigit())


def judge_stage_by_tokens(
    items: Sequence[ScannedItem], files: Sequence[CorpusFile], columns: Sequence[str], policy: Policy, stage: str
) -> tuple[list[StageItem], Counts]:
    """What a stage's corpus says of each item, and how much of it was read.

    In tuning data an item is exposed where one document has its answer's tokens and its identifier as it is written; in
    any other stage where a document has the policy's share of the item's tokens, or its answer's.

    Raises:
        BadInputError: for more than `MAX_PAIRS` pairs, or a file that cannot be opened.
    """
    wanted = [_wanted(item) for item in items]
    best = [0.0] * len(items)
    exposed, answered = [False] * len(items), [False] * len(items)
    reading = Reading(files, columns)
    for number, document in enumerate(reading, 1):
        if number * len(items) > MAX_PAIRS:
            raise BadInputError(
                f"the policy {policy.name} compares every document with every item, at most {MAX_PAIRS:,} "
                "pairs: take fewer, or another policy"
            )
        text = document.data.decode("utf-8", "replace")
        theirs, lowered = tokens(text), text.lower()
        for place, item in enumerate(wanted):
            overlap = len(item.all & theirs) / max(1, len(item.all))
            has_answer, has_id = bool(item.answer) and item.answer <= theirs, item.item_id in lowered
            best[place] = max(best[place], overlap)
            answered[place] |= has_answer
            exposed[place] |= has_answer and has_id if stage in TUNING_STAGES else has_answer or policy.is_past(overlap)
    judged = [
        StageItem(containment=best[place], longest_run=0, is_exposed=exposed[place], has_label=answered[place],
                  is_scorable=bool(wanted[place].all))
        for place in range(len(items))
    ]  # fmt: skip
    return judged, reading.counts


def _wanted(item: ScannedItem) -> _Tokens:
    answer = item.parts.get(Part.ANSWER, "")
    return _Tokens(item.item_id.lower(), tokens(f"{item.item_id} {item.parts[Part.QUESTION]} {answer}"), tokens(answer))
