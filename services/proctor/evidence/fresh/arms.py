"""An audit's canonical and fresh arms, laid side by side with a panel's answers, and weighed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from proctor.domain.evidence import FreshEvidence, Verdict
from proctor.domain.panel import Panel, ReferenceModel
from proctor.domain.trial import Arm, Outcome
from proctor.evidence.answers import Answer, FloatArray
from proctor.evidence.fresh import statements
from proctor.evidence.fresh.bootstrap import FreshAnswers
from proctor.evidence.fresh.channel import fresh_evidence
from proctor.evidence.protocol.channel import protocol_evidence

#: The arms that are compared; the benchmark's first.
ARMS: Final = (Arm.CANONICAL, Arm.FRESH)


@dataclass(frozen=True)
class FreshLimits:
    """What the comparison is held against, as a suite has it. Points are of accuracy, the others fractions."""

    allowed_points: float
    block_points: float
    alpha: float
    level: float
    guess_chance: float = 0.0


def weigh_arms(
    answers: Iterable[Answer],
    limits: FreshLimits,
    *,
    panel: Panel | None = None,
    clusters: Mapping[str, str] = MappingProxyType({}),
    seed: int = 0,
) -> FreshEvidence:
    """Weigh an audit's answers to the benchmark against those to fresh items.

    Args:
        answers: of both arms, in any order; rows of other arms are left out.
        limits: the suite's.
        panel: reference models' answers; an item that one of them did not answer is left out.
        clusters: item id → its cluster, of the items that are in one.
        seed: of the bootstrap.

    `invalid` where the arms are not comparable (`protocol_evidence`): an arm that was cut short is not forgetful. And
    `inconclusive` whatever the figures where items come in clusters, because these bounds take them as independent.
    """
    rows = [answer for answer in answers if answer.arm in ARMS]
    protocol = protocol_evidence(rows, expected_arms=ARMS, alpha=limits.alpha, level=limits.level)
    models = () if panel is None else panel.models
    sides = [_answered(rows, arm, models) for arm in ARMS]
    (benchmark, on_benchmark), (fresh, on_fresh) = sides
    asked = len({(row.arm, row.item_id) for row in rows})
    found = fresh_evidence(
        FreshAnswers.of(benchmark[0], fresh[0], benchmark[1:], fresh[1:]),
        allowed_points=limits.allowed_points,
        block_points=limits.block_points,
        alpha=limits.alpha,
        level=limits.level,
        guess_chance=limits.guess_chance,
        seed=seed,
    )
    verdict, reasons = found.verdict, found.reasons
    if protocol.verdict is Verdict.INVALID:
        verdict, reasons = Verdict.INVALID, protocol.reasons
    elif verdict is not Verdict.INVALID and clusters:
        verdict, reasons = Verdict.INCONCLUSIVE, (statements.CLUSTERED, *reasons)
    return found.model_copy(
        update={
            "verdict": verdict,
            "reasons": reasons,
            "arms": protocol.arms,
            "reference_models": tuple(model.name for model in models),
            "n_left_out": asked - len(on_benchmark) - len(on_fresh),
        }
    )


def _answered(rows: Sequence[Answer], arm: Arm, models: Sequence[ReferenceModel]) -> tuple[FloatArray, tuple[str, ...]]:
    """Right answers of the audited model and of the panel, shape (1 + K, n), and the items that all of them answered.

    Items stand in the order of their ids, so that rows in another order give the same draws.
    """
    own = {row.item_id: row.outcome is Outcome.CORRECT for row in rows if row.arm is arm and row.outcome is not None}
    right = [frozenset(model.right) for model in models]
    known = [of_model.union(model.wrong) for of_model, model in zip(right, models, strict=True)]
    items = tuple(sorted(item for item in own if all(item in of_model for of_model in known)))
    table = [[own[item] for item in items], *([item in of_model for item in items] for of_model in right)]
    return np.asarray(table, dtype=np.float64).reshape(1 + len(models), len(items)), items
