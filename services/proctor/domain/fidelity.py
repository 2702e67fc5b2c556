"""Fidelity of a perturber: what its rewordings cost one clean model, as it is kept and as it travels."""

from __future__ import annotations

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.canonical import json_digest
from proctor.domain.decision import DecisionOutcome
from proctor.domain.evidence import Estimate

#: Grounds stand in reports, in a sentence.
MAX_GROUNDS_CHARACTERS = 300


class AnswerPattern(Frozen):
    """Items with the same answers: the canonical one, and how many of the reworded ones are right."""

    canonical: bool
    right: int = Field(ge=0)
    total: int = Field(ge=1)
    items: int = Field(ge=1)


class Fidelity(Frozen):
    """The cost of a strategy on a benchmark, measured on one clean model."""

    strategy: str
    benchmark: str
    variants: str
    """Digest of the rewordings that were asked (`VariantSet.rewordings_digest`)."""
    model_id: str
    digest: str
    """Of the model's weights."""
    digest_verified: bool = False
    """Whether its endpoint itself reported that digest."""
    grounds: str = Field(max_length=MAX_GROUNDS_CHARACTERS)
    """Why it counts as clean: a person's word."""
    own_decision: DecisionOutcome | None = None
    """What the gate decided on the audit that this was measured by; None where there was none."""
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
