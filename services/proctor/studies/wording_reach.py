"""For which of a benchmark's items wording alone is blind, as far as their form tells. A hint, and no measurement.

Memory of a short fact answers every wording of its question; a leak of lettered multiple choice, and of problems whose
answer is computed from given numbers, showed in other wordings where it was measured (`domain.scope.MEASURED`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from proctor.domain.benchmark_kind import BenchmarkKind, ItemKind, benchmark_kind
from proctor.domain.item import Item
from proctor.domain.scope import MEASURED, REACHING_FURTHER, SEEN_IN
from proctor.grading.extractors import target_number
from proctor.text.numerals import numerals

#: A longer answer is no name, place or date, but something that is put together.
SHORT_ANSWER_WORDS: Final = 5


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

    @property
    def kind(self) -> BenchmarkKind | None:
        """The benchmark's; None where the items are not read."""
        return None if self.kinds is None else benchmark_kind(self.kinds)


def wording_reach(items: Iterable[Item] | None, beyond: Collection[str] = ()) -> WordingReach:
    """Look at the items that would be asked.

    Args:
        items: None where they are not read; the hint then speaks of every benchmark.
        beyond: the channels past the wording that the suite requires.
    """
    covered = f"the suite requires {' and '.join(beyond)}, which reaches further" if beyond else ""
    if items is None:
        return WordingReach(
            None,
            "an approval by wordings alone does not rule out memory of short facts (open questions that are answered "
            f"by recall). {MEASURED} {_sentence(covered or f'For such a benchmark {REACHING_FURTHER}')}",
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
    some = "" if benchmark_kind(kinds) is BenchmarkKind.FACTS else " in these"
    blind = f"wording alone is blind to that{some}"
    return WordingReach(
        kinds,
        f"by their form {which} like short facts (open questions, answers of at most {SHORT_ANSWER_WORDS} words that "
        f"are not computed): a model that remembers one answers every wording of it, and {blind}. {MEASURED} "
        f"{_sentence(covered or f'To cover it, {REACHING_FURTHER}')}",
    )


def _sentence(clause: str) -> str:
    return clause[0].upper() + clause[1:]
