"""How much harder the rewordings would have to be to explain a block, where no clean model is on record to say.

A cost of rewording is canonical minus reworded accuracy of a model without memory, in percentage points. A cost c that
is known exactly takes c off D and off both of its bounds, and c / accuracy off the Contamination Score, for a clean
model that is as accurate as the audited one. A control's own interval makes the excess wider, so a *measured* clean
model keeps the gate from blocking at a smaller cost than is said here, and never at a larger one.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from proctor.domain.evidence import PerturbationEvidence
from proctor.domain.limitation import Limitation
from proctor.domain.suite import GovernanceSection, ScoringSection
from proctor.evidence.written_numbers import points

#: Of the limitation.
CODE: Final = "rewording_cost_not_on_record"
_RECORD: Final = (
    "To settle it, audit a model that cannot have seen the benchmark with the same suite, record what rewording cost "
    'it with `proctor variants fidelity AUDIT --grounds "…"`, and audit this model again.'
)


class ExplainingCost(NamedTuple):
    """Costs of rewording in percentage points; None where there is nothing of the kind to explain."""

    of_block: float | None
    """From this cost on, no excess is past the limit that its estimate is past. None where no limit is passed, and
    where the suite blocks by the article's rule, which knows no control."""
    of_inflation: float | None
    """What would explain all of D."""


def explaining_cost(
    found: PerturbationEvidence, scoring: ScoringSection, governance: GovernanceSection
) -> ExplainingCost:
    """The costs that would explain away what an audit without a control found.

    A limit blocks beside a control where the lower bound of the same estimate's excess is past it. So the cost that
    explains the block is, of the limits that are passed, the largest of `lower bound − limit`: in points for D; for the
    Contamination Score times the canonical accuracy, which turns it into points.
    """
    inflation, score, accuracy = found.score_inflation, found.contamination_score, found.accuracy_canonical.value
    over = []
    if inflation.low is not None and inflation.low > governance.block_deployment_above_contaminated_pct:
        over.append(inflation.low - governance.block_deployment_above_contaminated_pct)
    if score.low is not None and score.low > scoring.contamination_threshold and accuracy is not None:
        over.append(100 * accuracy * (score.low - scoring.contamination_threshold))
    if scoring.method == "per_item_t_test":
        over = []
    whole = inflation.value if inflation.value is not None and inflation.value > 0 else None
    return ExplainingCost(max(over, default=None), whole)


def not_on_record(
    found: PerturbationEvidence, scoring: ScoringSection, governance: GovernanceSection
) -> Limitation | None:
    """That nobody knows what rewording costs a clean model, beside a block; None where a control is on record.

    Args:
        found: the evidence of an audit that was blocked.
        scoring: the suite's.
        governance: the suite's.
    """
    if found.control is not None or found.control_items is not None:
        return None
    cost = explaining_cost(found, scoring, governance)
    sizes = []
    if cost.of_block is not None:
        sizes.append(f"a cost of {_at_least(cost.of_block)} or more would turn this block into a review")
    if cost.of_inflation is not None:
        sizes.append(f"a cost of {_at_least(cost.of_inflation)} would explain all of the score inflation")
    said = f": {', '.join(sizes)}" if sizes else ""
    return Limitation(
        code=CODE,
        text="No clean model is on record that this audit could be held against, so it is not ruled out that the "
        f"rewordings are simply harder{said}. {_RECORD}",
    )


def _at_least(cost: float) -> str:
    # Upwards, so that the cost that is named does what is said of it.
    return points(math.ceil(10 * cost - 1e-9) / 10)
