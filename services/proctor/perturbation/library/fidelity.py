"""Fidelity of the perturber: what rewording by a strategy costs a model that is known to be clean.

A perfect rewording costs a clean model nothing. What it does cost is measured by an audit of such a model, canonical
against reworded, and kept in the record store under the strategy and the benchmark. Where an audit of another model has
no control items, it can be the control of the difference-in-differences (`controlled_inflation` in
`evidence.perturbation.control`): all that this test needs of the answers is how many items show each pattern.

What has to be assumed then, beside that test's own assumptions: that rewording would cost the audited model as much as
this one. It is the better founded the closer the two models' accuracies are; `Fidelity.accuracy` is kept for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from pydantic import Field, ValidationError

from proctor.domain.base import Frozen
from proctor.domain.canonical import json_digest
from proctor.domain.errors import StoreError
from proctor.domain.evidence import Estimate
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.intervals import mean_share, score_inflation


class AnswerPattern(Frozen):
    """Items with the same answers: the canonical one, and how many of the reworded ones are right."""

    canonical: bool
    right: int = Field(ge=0)
    total: int = Field(ge=1)
    items: int = Field(ge=1)


class CleanModel(NamedTuple):
    """The model that was asked, and why it counts as clean."""

    model_id: str
    digest: str
    """Of its weights."""
    grounds: str
    """E.g. that the benchmark was written after its training data were gathered."""


class Fidelity(Frozen):
    """The cost of a strategy on a benchmark, measured on one clean model."""

    strategy: str
    benchmark: str
    variants: str
    """Digest of the rewordings that were asked."""
    model_id: str
    digest: str
    """Of the model's weights."""
    grounds: str
    n_items: int = Field(ge=0)
    cost: Estimate
    """Canonical minus reworded accuracy, in percentage points, with its interval. Positive: rewording costs."""
    accuracy: Estimate
    """Canonical accuracy, as a fraction."""
    patterns: tuple[AnswerPattern, ...]
    """All answers, as counts."""

    @property
    def key(self) -> str:
        """What identifies the measurement: strategy, benchmark, rewordings and model."""
        return json_digest([self.strategy, self.benchmark, self.variants, self.digest])

    def answers(self) -> PairedAnswers:
        """The answers as a control sample; the items' identifiers are their numbers."""
        return PairedAnswers.of(
            [f"clean-{number}" for number in range(sum(pattern.items for pattern in self.patterns))],
            [pattern.canonical for pattern in self.patterns for _ in range(pattern.items)],
            [pattern.right for pattern in self.patterns for _ in range(pattern.items)],
            [pattern.total for pattern in self.patterns for _ in range(pattern.items)],
        )


class FidelityRows(Protocol):
    """The part of the record store that is needed."""

    def fidelity_put(self, key: str, strategy: str, benchmark: str, row: Mapping[str, Any]) -> bool:
        """Write a row once; False where the key has one."""
        ...

    def fidelity_rows(self, strategy: str, benchmark: str) -> dict[str, str]:
        """Rows by key, as JSON, in the order of their keys."""
        ...


def measure_fidelity(
    answers: PairedAnswers, *, strategy: str, benchmark: str, variants: str, model: CleanModel, level: float = 0.95
) -> Fidelity:
    """What rewording cost a clean model.

    Args:
        answers: the model's answers, canonical and reworded, item by item.
        strategy: the chain's name.
        benchmark: the benchmark's name.
        variants: digest of the rewordings (e.g. of the VariantSet).
        model: the model, which is taken for clean on the grounds that it brings.
        level: confidence level of the intervals.

    The interval is `score_inflation`'s: normal with four pseudo-items, items independent of one another, answers to
    rewordings of one item not. Without an item the cost is undefined, not 0.
    """
    patterns = answers.patterns
    return Fidelity(
        strategy=strategy,
        benchmark=benchmark,
        variants=variants,
        model_id=model.model_id,
        digest=model.digest,
        grounds=model.grounds,
        n_items=answers.n,
        cost=score_inflation(answers, level),
        accuracy=_accuracy(answers, level),
        patterns=tuple(
            AnswerPattern(canonical=bool(canonical), right=int(right), total=int(total), items=int(count))
            for canonical, right, total, count in zip(
                patterns.canonical, patterns.right, patterns.total, patterns.counts, strict=True
            )
        ),
    )


def record_fidelity(rows: FidelityRows, fidelity: Fidelity) -> bool:
    """Keep a measurement. True where it is new, False where the same one is on record.

    Raises:
        StoreError: where another one of the same strategy, benchmark, rewordings and model is on record: rows are never
            changed.
    """
    if rows.fidelity_put(fidelity.key, fidelity.strategy, fidelity.benchmark, fidelity.plain()):
        return True
    there = next(one for one in fidelities(rows, fidelity.strategy, fidelity.benchmark) if one.key == fidelity.key)
    if there != fidelity:
        raise StoreError(
            f"the fidelity of {fidelity.strategy!r} on {fidelity.benchmark!r} for the model {fidelity.model_id!r} "
            "is on record with other figures, and is never changed: the model gave other answers to the same questions"
        )
    return False


def fidelities(rows: FidelityRows, strategy: str, benchmark: str) -> tuple[Fidelity, ...]:
    """All measurements of a strategy on a benchmark, in the order of their keys.

    Raises:
        StoreError: for a row that is none.
    """
    found = []
    for key, row in rows.fidelity_rows(strategy, benchmark).items():
        try:
            found.append(Fidelity.model_validate_json(row))
        except ValidationError as error:
            raise StoreError(
                f"the row {key} of the table strategy_fidelities is damaged ({error.error_count()} faults): delete it, "
                "and measure again"
            ) from None
    return tuple(found)


def _accuracy(answers: PairedAnswers, level: float) -> Estimate:
    return mean_share(answers.canonical.astype(np.float64), np.ones(answers.n, dtype=np.int64), level)
