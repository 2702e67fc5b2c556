"""What was learned of the admission gate for one encoder and one benchmark: the document that suites pin."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.evidence import Estimate
from proctor.domain.versions import added

#: The article's window, and its advice for two kinds of benchmark, as least and greatest semantic distance.
ARTICLE_WINDOWS: Final = {
    "the article's": (0.15, 0.45),
    "the article's for factual benchmarks": (0.15, 0.30),
    "the article's for reasoning": (0.20, 0.50),
}
#: Of the histogram, in semantic distance.
BIN_WIDTH: Final = 0.02
#: What a person should know of a calibration of the first version; its name stands before it.
WITHOUT_MARGIN: Final = (
    "was learned before margins to other items were, so other questions of the benchmark are told apart by the "
    "distance alone: run `proctor variants calibrate` again"
)


class WindowRates(Frozen):
    """What the whole gate admits under one window, of pairs that the window was not learned from.

    The intervals are Wilson's, as if pairs were independent; pairs of one item are not quite.
    """

    window: str
    min_semantic_distance: float
    max_semantic_distance: float
    min_margin: float | None = added(None, since=2)
    """None where no margin to other items is asked for."""
    true_admits: Estimate
    """Share of the known-equivalent pairs that is admitted."""
    false_admits: Estimate
    """Share of the known-different pairs that is admitted."""
    nearest_admits: Estimate
    """Share of the items whose nearest different item's question would be admitted as a rewording."""


class NearItems(Frozen):
    """Two items of the benchmark whose questions are nearer to each other than most rewordings are to their item."""

    item: str
    other: str
    distance: float
    """Cosine distance of the two questions without their options, 0 to 2."""


class Crowding(Frozen):
    """How near a benchmark's own items are to each other."""

    below: float
    """Median distance of the equivalent pairs from which was learned, of those that pass the gate's other checks: half
    of all rewordings are farther from their item than these items are from each other."""
    items: int
    """Items that have another one nearer than that."""
    indistinct: int
    """Items that have another one nearer than the margin: hardly a rewording of theirs can be admitted."""
    pairs: int
    """Pairs of items nearer to each other than `below`."""
    nearest: tuple[NearItems, ...]
    """The first of these pairs, the nearest first."""


class ChangedAdmits(Frozen):
    """What the whole gate admits of questions that were made from items to ask something else."""

    kind: str
    """What was done to them, in the words of whoever made them."""
    questions: int
    admitted: Estimate
    """The share; its interval is Wilson's."""


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
    """A learned window and margin, what they were learned from, and what they do on pairs that were held out.

    Both belong to the encoder of this fingerprint and to this benchmark.
    """

    schema_version: Literal["gate-calibration/1", "gate-calibration/2"] = "gate-calibration/2"
    """The first version had a window alone."""
    benchmark: str
    encoder: str
    encoder_digest: str
    encoder_fingerprint: str
    gate_version: str
    seed: int
    """Of the split into a half to learn from and a half that is held out; an item's pairs stay together."""
    min_semantic_distance: float = Field(ge=0.0, le=2.0)
    max_semantic_distance: float = Field(gt=0.0, le=2.0)
    min_margin: float | None = added(None, since=2)
    """By how much a rewording must be nearer to its own item than to any other; None in the first version."""
    questions: int | None = added(None, since=2)
    """Different questions that the benchmark asks, to which the margin is kept."""
    questions_digest: str | None = added(None, since=2)
    """Their digest: the margin is kept to these questions and to no others."""
    target_true_admits: float
    """Window and margin hold at least this share of the equivalent pairs that pass the other checks."""
    target_false_admits: float
    """The gate admits at most this share of the different pairs; where both cannot be had, this one is kept."""
    bounded_by: Literal["equivalent", "different"]
    """The pairs that decided where window and margin end."""
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
    reworded_admits: Estimate | None = added(None, since=2)
    """Share of the held-out equivalent rewordings that would be admitted as rewordings of the other item whose question
    is nearest to them."""
    changed: tuple[ChangedAdmits, ...] | None = added(None, since=2)
    """Of questions that were changed on purpose, by kind; None where none were given, so that nothing is known of them.
    They have no part in the learning, so all of them count."""
    crowding: Crowding | None = added(None, since=2)
    """None in the first version."""
    roc_gate: Roc
    """Of the whole gate: answer invariants, surface, margin, distance."""
    roc_distance: Roc
    """Of the distance alone."""
    histogram: tuple[DistanceBin, ...]
    inputs: dict[str, str]
    """Digests of what the pairs came from, by name."""

    @property
    def conclusion(self) -> str:
        """What the calibration comes to, in one sentence."""
        article = self.fixed_windows[0]
        margin = "" if self.min_margin is None else f", {self.min_margin:g} nearer than to any other item,"
        return (
            f"A window of {self.min_semantic_distance:g} to {self.max_semantic_distance:g}{margin} admits "
            f"{_share(self.rates.true_admits)} of the equivalent pairs that were held out and "
            f"{_share(self.rates.nearest_admits)} of the nearest different questions; {article.window} "
            f"{article.min_semantic_distance:g} to {article.max_semantic_distance:g} admits "
            f"{_share(article.true_admits)} and {_share(article.nearest_admits)}."
        )


def _share(estimate: Estimate) -> str:
    return "none" if estimate.value is None else f"{100 * estimate.value:.1f} %"
