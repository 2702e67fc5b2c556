"""Evidence as it stands in a report: estimates with intervals, one result a channel, and its verdict."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.decision import DecisionOutcome


class Verdict(StrEnum):
    """What one channel says of an audit."""

    CONTAMINATED = "contaminated"
    CLEAN = "clean"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    NOT_AUDITED = "not_audited"


class Estimate(Frozen):
    """A point estimate with its confidence interval. `value` is None where it is undefined (0/0), and the
    bounds are None where the interval is unbounded on that side."""

    value: float | None
    low: float | None
    high: float | None
    level: float
    method: str


class ArmAccuracy(Frozen):
    """Accuracy of one arm: the mean over items of the share of right answers."""

    arm: str
    accuracy: Estimate
    n_items: int
    n_answers: int
    n_invalid: int
    n_errors: int
    n_truncated: int


class ItemEvidence(Frozen):
    """One item's part in the evidence. `suspicion` ranks; a flag needs the whole sample's evidence behind it."""

    item_id: str
    canonical_correct: bool
    perturbed_correct: int
    perturbed_total: int
    suspicion: float = Field(ge=0.0, le=1.0)
    flagged: bool = False


class PerItemTTest(Frozen):
    """The article's rule, for comparison: one-sample t-test per item, CS > threshold and p < alpha."""

    flagged_items: tuple[str, ...]
    flagged_pct: float
    would_block: bool
    note: str


class Singletons(Frozen):
    """Items right in exactly one wording: a description, never a ground for approval. Counts are of items."""

    n_items: int
    singletons: int
    canonical: int
    """Singletons whose one right wording is the canonical one."""
    expected: float
    """Canonical singletons among as many exchangeable ones: the sum of 1 / (V + 1) over them."""
    excess: float
    """`canonical` − `expected`; negative where the canonical wording has fewer than its share."""
    p_value: float
    """Upper tail under the null hypothesis; descriptive."""
    method: str
    null_hypothesis: str
    conclusion: str
    note: str


class ControlledInflation(Frozen):
    """Score inflation on the benchmark beyond that of a control sample."""

    null_hypothesis: str
    n_benchmark: int
    n_control: int
    inflation_benchmark: Estimate
    """D in points, uncontrolled."""
    inflation_control: Estimate
    """What rewording costs where nothing can have leaked, in points."""
    excess_inflation: Estimate
    """D_benchmark − D_control, in points."""
    excess_score: Estimate
    """Contamination Score of the benchmark minus that of the control sample."""
    p_value: float
    """The larger of the two below."""
    p_points: float
    p_share: float
    minimum_detectable_points: float
    """Smallest excess in points that these samples would find with 80 % power."""


class CleanControl(Frozen):
    """A clean model that was asked in the same way, and what the audited model lost beyond it."""

    model_id: str
    digest: str
    digest_verified: bool
    """Whether the control's endpoint reported that digest when it was measured."""
    grounds: str
    """Why a person declared it clean."""
    own_decision: DecisionOutcome | None
    """What the gate decided on the control's own audit."""
    same_rewordings: bool
    """Whether it was asked the very rewordings of this audit, or others by the same strategy."""
    accuracy: Estimate
    """Its canonical accuracy, as a fraction."""
    excess: ControlledInflation
    conclusion: str


class PerturbationEvidence(Frozen):
    """Canonical against reworded: suspicious when the canonical wording is answered better."""

    verdict: Verdict
    reasons: tuple[str, ...]
    null_hypothesis: str
    score_inflation: Estimate
    """D = canonical − reworded accuracy, in percentage points."""
    contamination_score: Estimate
    """(Acc_base − Acc_pert) / Acc_base."""
    leaked_share: Estimate | None
    """D / (1 − g) in percentage points, where a guess is right with chance g."""
    p_value: float
    p_exchangeability: float
    p_exchangeability_method: str
    p_studentised: float
    minimum_detectable_points: float
    """Smallest D, in points, that this sample would find with 80 % power at its alpha."""
    accuracy_canonical: Estimate
    accuracy_perturbed: Estimate
    n_items: int
    n_variants: int
    items: tuple[ItemEvidence, ...]
    """Most suspected first."""
    per_item_t_test: PerItemTTest
    singletons: Singletons
    items_needed_to_approve: int | None
    """Items at which this D and spread would let both upper bounds fall within their limits; None: never."""
    control: CleanControl | None = Field(default=None, exclude_if=lambda control: control is None)
    """Difference-in-differences against a clean model, where one is on record; not written otherwise."""


class ProtocolEvidence(Frozen):
    """Whether the arms are comparable at all: truncation, empty, unparsable and failed answers by arm."""

    verdict: Verdict
    reasons: tuple[str, ...]
    arms: tuple[ArmAccuracy, ...]


class Evidence(Frozen):
    """All channels of an audit. A channel that did not run is `not_audited`, never clean."""

    perturbation: PerturbationEvidence | None
    protocol: ProtocolEvidence
    not_audited: dict[str, str]
    """Channel to the reason why it did not run."""

    def verdict_of(self, channel: str) -> Verdict:
        """The verdict of a channel by name."""
        result: Any = getattr(self, channel, None)
        return result.verdict if result is not None else Verdict.NOT_AUDITED
