"""What the exposure channel found: which of the items stand in training data, and the figures without them."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.domain.base import Frozen
from proctor.domain.channel_results import ChannelEvidence, Verdict
from proctor.domain.corpus_search import ItemFinding, SearchedStage
from proctor.domain.estimate import Estimate
from proctor.domain.exposure import ExposureVerdict


class ItemFigures(Frozen):
    """Figures of the wording comparison over some of its items."""

    n_items: int
    accuracy_canonical: Estimate
    accuracy_perturbed: Estimate
    score_inflation: Estimate
    """In points."""
    contamination_score: Estimate


class ExposureEvidence(ChannelEvidence):
    """Items against training data, by a named policy. Never clean: what no policy finds may have been seen reworded."""

    policy: str
    rule: str
    ngram: int
    normalisation: str
    recall_pct: Mapping[str, float]
    """What was done to a copy → how many of such the policy finds, in percent (docs/exposure.md); empty where other
    n-grams than the policy's own were taken."""
    stages: Mapping[str, SearchedStage]
    n_items: int
    n_exposed: int
    n_unscorable: int
    n_affected: int
    """Items whose result is not comparable: `scope_limited` or `invalid_evidence`."""
    verdicts: Mapping[ExposureVerdict, int]
    exposed_pct: float
    """Of the items that were searched for."""
    allowed_pct: float
    """By the suite."""
    items: tuple[ItemFinding, ...]
    unscorable: tuple[str, ...] = ()
    skipped_places: tuple[str, ...] = ()
    all_items: ItemFigures | None
    """None where nothing was compared."""
    without_exposed: ItemFigures | None
    """The same figures without the affected items; None where none is left."""
    exposed_only: ItemFigures | None
    """Of the affected items alone; None where none was compared."""

    @property
    def against(self) -> str | None:
        """The deciding reason: that an item was exposed is another thing than that the model remembers it."""
        if self.verdict is Verdict.CONTAMINATED:
            return f"Items were in the training data: {self.reasons[0]}"
        too_short = f"{self.n_unscorable:,} are too short to be looked for"
        return (
            f"The suite requires a search of training data, in which {self.n_exposed:,} of {self.n_items:,} items were "
            f"found, and {too_short}: more together than the {self.allowed_pct:g} % that it allows."
        )

    @property
    def allows_approval(self) -> bool:
        """Whether what was found, and what could not be looked for, is within what the suite allows."""
        if self.verdict is not Verdict.INCONCLUSIVE or not self.n_items:
            return False
        return 100 * (self.n_exposed + self.n_unscorable) / self.n_items <= self.allowed_pct
