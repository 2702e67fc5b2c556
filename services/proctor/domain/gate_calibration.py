"""What was learned of the admission gate for one encoder and one benchmark: the document that suites pin."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.evidence import Estimate

#: The article's window, and its advice for two kinds of benchmark, as least and greatest semantic distance.
ARTICLE_WINDOWS: Final = {
    "the article's": (0.15, 0.45),
    "the article's for factual benchmarks": (0.15, 0.30),
    "the article's for reasoning": (0.20, 0.50),
}
#: Of the histogram, in semantic distance.
BIN_WIDTH: Final = 0.02


class WindowRates(Frozen):
    """What the whole gate admits under one window, of pairs that the window was not learned from.

    The intervals are Wilson's, as if pairs were independent; pairs of one item are not quite.
    """

    window: str
    min_semantic_distance: float
    max_semantic_distance: float
    true_admits: Estimate
    """Share of the known-equivalent pairs that is admitted."""
    false_admits: Estimate
    """Share of the known-different pairs that is admitted."""
    nearest_admits: Estimate
    """Share of the items whose nearest different item's question would be admitted as a rewording."""


class PairCounts(Frozen):
    """Pairs of one half of the split."""

    equivalent: int
    equivalent_kept: int
    """Those that pass every check but the distance."""
    different: int
    different_kept: int


class RocPoint(Frozen):
    """The shares admitted when the window ends at a distance."""

    max_semantic_distance: float
    false_admits: float
    true_admits: float


class Roc(Frozen):
    """Receiver operating characteristic over the window's end, of the held-out pairs.

    A pair that another check turns away is admitted at no distance, so the whole gate's curve may end below 1.
    """

    auc: float
    """Chance that an equivalent pair is nearer than a different one, ties counted half; one that is turned away is
    farther than any that is not."""
    points: tuple[RocPoint, ...]


class DistanceBin(Frozen):
    """Held-out pairs by semantic distance, from `low` to `low` + 0.02; whatever the other checks say of them."""

    low: float
    equivalent: int
    different: int


class GateCalibration(Frozen):
    """A learned window, what it was learned from, and what it does on pairs that were held out.

    The window belongs to the encoder of this fingerprint and to this benchmark.
    """

    schema_version: Literal["gate-calibration/1"] = "gate-calibration/1"
    benchmark: str
    encoder: str
    encoder_digest: str
    encoder_fingerprint: str
    gate_version: str
    seed: int
    """Of the split into a half to learn from and a half that is held out; an item's pairs stay together."""
    min_semantic_distance: float = Field(ge=0.0, le=2.0)
    max_semantic_distance: float = Field(gt=0.0, le=2.0)
    target_true_admits: float
    """The window holds at least this share of the equivalent pairs that pass the other checks."""
    target_false_admits: float
    """The gate admits at most this share of the different pairs; where both cannot be had, this one is kept."""
    bounded_by: Literal["equivalent", "different"]
    """The pairs that decided where the window ends."""
    max_token_overlap: float
    """The surface limits that the pairs were put through; they are policy and are not learned."""
    max_containment: float
    min_edit_distance: float
    learned_from: PairCounts
    held_out: PairCounts
    rates: WindowRates
    fixed_windows: tuple[WindowRates, ...]
    """The article's windows beside the learned one, on the same held-out pairs."""
    rejections: dict[str, int]
    """Why held-out equivalent pairs are turned away, by reason."""
    roc_gate: Roc
    """Of the whole gate: answer invariants, surface, distance."""
    roc_distance: Roc
    """Of the distance alone."""
    histogram: tuple[DistanceBin, ...]
    inputs: dict[str, str]
    """Digests of what the pairs came from, by name."""

    @property
    def conclusion(self) -> str:
        """What the calibration comes to, in one sentence."""
        article = self.fixed_windows[0]
        return (
            f"A window of {self.min_semantic_distance:g} to {self.max_semantic_distance:g} admits "
            f"{_share(self.rates.true_admits)} of the equivalent pairs that were held out and "
            f"{_share(self.rates.nearest_admits)} of the nearest different questions; {article.window} "
            f"{article.min_semantic_distance:g} to {article.max_semantic_distance:g} admits "
            f"{_share(article.true_admits)} and {_share(article.nearest_admits)}."
        )


def _share(estimate: Estimate) -> str:
    return "none" if estimate.value is None else f"{100 * estimate.value:.1f} %"
