"""What is kept of a decided audit for comparing it with others: its figures, and what each item's answers came to."""

from __future__ import annotations

from typing import NamedTuple

from proctor.domain.base import Frozen
from proctor.domain.canonical import json_digest
from proctor.domain.card import ProtocolCard
from proctor.domain.channel_results import Verdict
from proctor.domain.decision import DecisionOutcome
from proctor.domain.estimate import Estimate

#: Columns of the source that say what an item is. Others (clusters, say) leave it the same problem.
_COLUMNS = ("id_field", "question_field", "choices_field", "target_field")


class Bounded(Frozen):
    """A figure with the bounds of its interval; None where one is undefined or unbounded."""

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, estimate: Estimate) -> Bounded:
        """The figure of an estimate."""
        return cls(value=estimate.value, low=estimate.low, high=estimate.high)


class Measure(Frozen):
    """The figures of one audit."""

    suite_id: str
    model_id: str
    model_digest: str
    """Of the weights."""
    benchmark_name: str
    benchmark_digest: str
    """Of the items as a source holds them: `benchmark_digest`."""
    content_digest: str | None
    """Of the benchmark's file; None where none could be read."""
    protocol_digest: str
    verdict: Verdict
    """Of the perturbation channel."""
    outcome: DecisionOutcome
    score: Bounded
    """Contamination Score."""
    inflation: Bounded
    """D, in percentage points."""
    level: float
    """Of both intervals."""
    n_items: int


class ItemCounts(NamedTuple):
    """What a model answered to each item of an audit: columns of equal length, in the order of the ids."""

    item_ids: tuple[str, ...]
    canonical: tuple[int, ...]
    """1 where the canonical wording was answered right, else 0."""
    right: tuple[int, ...]
    """Rewordings that were answered right."""
    total: tuple[int, ...]


class Measured(NamedTuple):
    """An audit's figures, with its items."""

    measure: Measure
    items: ItemCounts


def benchmark_digest(card: ProtocolCard) -> str:
    """The digest of what a card's items are read from, whatever name the benchmark was given and whichever were drawn.

    Of the file's content and the columns that make an item; where no file was read, of all that says which it is.
    """
    content = card.task_set.get("content_digest")
    if content is None:
        return json_digest(card.task_set)
    return json_digest({"content_digest": content, **{name: card.task_set.get(name) for name in _COLUMNS}})
