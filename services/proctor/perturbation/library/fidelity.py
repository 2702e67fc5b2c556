"""Fidelity of the perturber: what rewording by a strategy costs a model that is known to be clean.

A perfect rewording costs a clean model nothing. What it does cost is measured by an audit of such a model, canonical
against reworded, and kept in the record store under the strategy and the benchmark. Audits of other models by the same
strategy on the same benchmark take it along, and the scorer holds them against it (difference-in-differences,
`evidence.perturbation.clean_control`): all that this needs of the answers is how many items show each pattern.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from pydantic import ValidationError

from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import StoreError
from proctor.domain.fidelity import AnswerPattern, Fidelity
from proctor.domain.manifest import VariantSet
from proctor.domain.versions import reading, unknown_fields
from proctor.evidence.answers import PairedAnswers
from proctor.evidence.intervals import score_inflation, wilson


class CleanModel(NamedTuple):
    """The model that was asked, and why it counts as clean."""

    model_id: str
    digest: str
    """Of its weights."""
    grounds: str
    """E.g. that the benchmark was written after its training data were gathered."""
    digest_verified: bool = False
    """Whether its endpoint itself reported the digest."""
    own_decision: DecisionOutcome | None = None
    """What the gate decided on the audit in which it was asked."""


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
        variants: digest of the rewordings (`VariantSet.rewordings_digest`).
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
        **model._asdict(),
        n_items=answers.n,
        cost=score_inflation(answers, level),
        accuracy=wilson(int(np.count_nonzero(answers.canonical)), answers.n, level),
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
    if there == fidelity:
        return False
    what = (
        f"on the grounds {there.grounds!r}"
        if there.patterns == fidelity.patterns
        else "with other figures: the model gave other answers to the same questions"
    )
    raise StoreError(
        f"the fidelity of {fidelity.strategy!r} on {fidelity.benchmark!r} for the model {fidelity.model_id!r} is on "
        f"record and is never changed; it was measured {what}"
    )


def fidelities(rows: FidelityRows, strategy: str, benchmark: str) -> tuple[Fidelity, ...]:
    """All measurements of a strategy on a benchmark, in the order of their keys.

    Raises:
        StoreError: for a row that is none.
        NewerVersionError: for one that needs a newer Proctor.
    """
    found = []
    for key, row in rows.fidelity_rows(strategy, benchmark).items():
        try:
            found.append(Fidelity.model_validate_json(row))
        except ValidationError as error:
            if unknown_fields(error):
                raise reading(f"the row {key} of the table strategy_fidelities", error) from None
            raise StoreError(
                f"the row {key} of the table strategy_fidelities is damaged ({error.error_count()} faults): delete it, "
                "and measure again"
            ) from None
    return tuple(found)


def with_controls(made: VariantSet, rows: FidelityRows, strategy: str, benchmark: str) -> VariantSet:
    """The variants of an audit together with all that is on record of clean models asked by the same strategy.

    All of them: which one controls the audit depends on the model's answers, so the scorer chooses.

    Raises:
        StoreError: for a row that is none.
    """
    return made.model_copy(update={"controls": fidelities(rows, strategy, benchmark)})
