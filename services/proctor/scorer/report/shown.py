"""The answers that a report shows in full: those to its most suspected items."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from proctor.domain.trial import Completion, Grade, Trial


class GradedTrial(NamedTuple):
    """A planned trial with what came of it. No completion: its shard was given up. No grade: an error row."""

    trial: Trial
    completion: Completion | None
    grade: Grade | None


ShownAnswers = Mapping[tuple[str, str | None], GradedTrial]
"""(item, variant, or None for the canonical question) → the answer."""


def show(rows: Iterable[GradedTrial], item_ids: Collection[str]) -> ShownAnswers:
    """Keep the direct answers to these items, of replicates the first. The order of the rows does not matter."""
    kept: dict[tuple[str, str | None], GradedTrial] = {}
    for row in rows:
        trial = row.trial
        if not trial.arm.is_direct or trial.item_id not in item_ids:
            continue
        key = (trial.item_id, trial.variant_id)
        if key not in kept or _precedes(row, kept[key]):
            kept[key] = row
    return kept


def _precedes(row: GradedTrial, held: GradedTrial) -> bool:
    """A trial that came twice is shown as it is counted: with its grade."""
    return (row.trial.replicate, row.grade is None, row.completion is None) < (
        held.trial.replicate,
        held.grade is None,
        held.completion is None,
    )
