"""For which of a benchmark's items wording alone is blind, as far as their form tells. A hint, and no measurement.

Memory of a short fact answers every wording of its question; a leak of lettered multiple choice, and of problems whose
answer is computed from given numbers, showed in other wordings where it was measured (`domain.scope.MEASURED`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from proctor.domain.item import Item
from proctor.domain.scope import MEASURED, REACHING_FURTHER, SEEN_IN
from proctor.grading.extractors import target_number
from proctor.text.numerals import numerals

#: A longer answer is no name, place or date, but something that is put together.
SHORT_ANSWER_WORDS: Final = 5
#: Of the items, for which the hint speaks of the benchmark and not of some of its items.
_MOST: Final = 0.5


class ItemKind(StrEnum):
    """What an item's form tells of how it is answered."""

    OPTIONS = "options"
    """One of the options that are given."""
    SHORT_FACT = "short_fact"
    """An open question with a short answer that is not computed from numbers in the question."""
    COMPUTED = "computed"
    """A number, of a question that gives numbers."""
    OTHER = "other"
    """A longer answer to an open question."""


def kind_of(item: Item) -> ItemKind:
    """The kind of an item, by its options, its answer and the numbers in its question."""
    if item.choices:
        return ItemKind.OPTIONS
    if target_number(item.target) is not None:
        # A number that is asked for and cannot have been worked out from the question is remembered, as a year is.
        return ItemKind.COMPUTED if numerals(item.question) else ItemKind.SHORT_FACT
    return ItemKind.SHORT_FACT if len(item.target.split()) <= SHORT_ANSWER_WORDS else ItemKind.OTHER


class WordingReach(NamedTuple):
    """What wording alone can say of a benchmark."""

    kinds: Mapping[ItemKind, int] | None
    """Items of each kind; None where the items are not read."""
    hint: str
    """A sentence or two, without a full stop at the end."""


def wording_reach(items: Iterable[Item] | None) -> WordingReach:
    """Look at the items that would be asked.

    Args:
        items: None where they are not read; the hint then speaks of every benchmark.
    """
    if items is None:
        return WordingReach(
            None,
            "an approval by wordings alone does not rule out memory of short facts (open questions that are answered "
            f"by recall). {MEASURED} For such a benchmark {REACHING_FURTHER}",
        )
    counts = Counter(map(kind_of, items))
    kinds = {kind: counts[kind] for kind in ItemKind}
    total, facts = sum(kinds.values()), kinds[ItemKind.SHORT_FACT]
    if not facts:
        return WordingReach(
            kinds,
            "by their form none of the items is a short fact (an open question that is answered by recall), to which "
            f"wording alone is blind; of other kinds, a leak was seen on {SEEN_IN}. A hint, no measurement of this "
            "benchmark",
        )
    which = f"{facts:,} of the {total:,} items look" if facts < total else f"all {total:,} items look"
    blind = "wording alone is blind to that" if facts >= _MOST * total else "wording alone is blind to that in these"
    return WordingReach(
        kinds,
        f"by their form {which} like short facts (open questions, answers of at most {SHORT_ANSWER_WORDS} words that "
        f"are not computed): a model that remembers one answers every wording of it, and {blind}. {MEASURED} To cover "
        f"it, {REACHING_FURTHER}",
    )
