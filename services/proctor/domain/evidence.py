"""Evidence as it stands in a report: estimates with intervals, one result a channel, and its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Self

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.channel_results import ChannelEvidence, HypothesisEvidence, OtherEvidence
from proctor.domain.channel_results import Verdict as Verdict
from proctor.domain.channels import BEYOND_WORDING
from proctor.domain.decision import DecisionOutcome
from proctor.domain.estimate import Estimate as Estimate
from proctor.domain.exposure_evidence import ExposureEvidence
from proctor.domain.lottery import Lottery
from proctor.domain.noise import NoiseSummary, RouterSetting
from proctor.domain.scope import Scope


class ArmAccuracy(Frozen):
    """Accuracy of one arm: the mean over items of the share of right answers."""

    arm: str
    accuracy: Estimate
    n_items: int
    n_answers: int
    n_invalid: int
    n_errors: int
    n_truncated: int
    n_cut_short: int = Field(default=0, exclude_if=lambda n: n == 0)
    """Truncated before an answer stood in them, and not right; not written where there is none."""


class ItemGroups(Frozen):
    """Items that share something with others, and how they are grouped by it."""

    n_items: int
    """In a group of two or more."""
    n_groups: int
    largest: int
    """Items of the largest group."""

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Self | None:
        """Count groups of two or more; None where there is none."""
        several = [size for size in sizes if size > 1]
        return cls(n_items=sum(several), n_groups=len(several), largest=max(several)) if several else None


class ClusterCount(Frozen):
    """The clusters that a comparison's figures are over."""

    n_clusters: int
    effective: float
    """Clusters of equal size that would tell as much: n² / Σ n_g²."""
    largest: int
    """Items of the largest cluster."""
    enough: bool
    """Whether there are so many that a spread between clusters can be told; otherwise nothing is concluded."""


class ItemEvidence(Frozen):
    """One item's part in the evidence. `suspicion` ranks; a flag needs the whole sample's evidence behind it.

    An item whose canonical wording was answered no better than its rewordings has a suspicion of exactly 0 and no
    rank: nothing orders such items among each other.
    """

    item_id: str
    canonical_correct: bool
    perturbed_correct: int
    perturbed_total: int
    canonical_right: int | None = Field(default=None, exclude_if=lambda right: right is None)
    """Right answers of `canonical_asked` to the canonical wording, where each wording was asked several times:
    `canonical_correct` is then that most are right, and the counts of rewordings are of answers. Not written
    otherwise."""
    canonical_asked: int | None = Field(default=None, exclude_if=lambda asked: asked is None)
    suspicion: float = Field(ge=0.0, le=1.0)
    rank: int | None = None
    """1 is the most suspected item; None without suspicion, and in documents of before there were ranks."""
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


class Replicates(Frozen):
    """What several answers to each prompt tell beside the comparison, in which they count as one item's."""

    n_replicates: int
    """Most answers to a wording."""
    n_answers: int
    variance_of_items: float
    """Of a right answer (0 or 1): between items."""
    variance_of_wordings: float
    """Between an item's wordings."""
    variance_of_answers: float
    """Between the answers to one wording."""
    standard_error_points: float | None
    """Of D; None where no wording has two answers."""
    standard_error_once_points: float | None
    """What it would be about, were each wording asked once."""
    standard_error_at_best_points: float | None
    """What it would be about, were each wording asked without end."""
    lottery: Lottery | None
    """The first answer to each canonical wording against a strict majority of the others; None with fewer than two
    others."""
    conclusion: str


class ControlItems(Frozen):
    """Items that cannot have leaked, asked in both wordings, and what the benchmark's lost beyond them."""

    n_selected: int
    """Control items of the audit."""
    n_reworded: int
    """Those with an admitted rewording."""
    n_items: int
    """Those answered in both wordings."""
    problems: tuple[str, ...]
    """Why they do not tell what rewording costs, so that nothing is concluded; empty where they do."""
    incomparable: tuple[str, ...]
    """Why their two arms are not comparable; empty where they are."""
    arms: tuple[ArmAccuracy, ...]
    """Both arms, as they were answered."""
    excess: ControlledInflation
    """What the limits are held against."""
    items_needed_to_approve: int | None
    """Benchmark items at which this excess and spread, with control items in proportion, would let both upper bounds
    fall within their limits; None: never."""
    clusters: ClusterCount | None = Field(default=None, exclude_if=lambda clusters: clusters is None)
    """Of the control items, where they come in such."""
    conclusion: str


class PerturbationEvidence(HypothesisEvidence):
    """Canonical against reworded: suspicious when the canonical wording is answered better."""

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
    """Most suspected first, then those without suspicion, whose order says nothing."""
    per_item_t_test: PerItemTTest
    singletons: Singletons
    items_needed_to_approve: int | None
    """Items at which this D and spread would let both upper bounds fall within their limits; None: never."""
    not_above_chance: str | None = Field(default=None, exclude_if=lambda why: why is None)
    """Why the model cannot do the benchmark, so that nothing is held against a limit; not written where it can."""
    control: CleanControl | None = Field(default=None, exclude_if=lambda control: control is None)
    """Difference-in-differences against a clean model, where one is on record; not written otherwise."""
    control_items: ControlItems | None = Field(default=None, exclude_if=lambda control: control is None)
    """The same against control items, where the suite has some: it is what decides then. Not written otherwise."""
    replicates: Replicates | None = Field(default=None, exclude_if=lambda replicates: replicates is None)
    """Where each prompt was asked several times; not written otherwise."""
    clusters: ClusterCount | None = Field(default=None, exclude_if=lambda clusters: clusters is None)
    """What the figures are over where items come in clusters; not written where each is one of its own."""
    unnamed_groups: ItemGroups | None = Field(default=None, exclude_if=lambda groups: groups is None)
    """What items share though the suite names no clusters, so that the figures take them as independent; not written
    where nothing was found."""

    @property
    def suspected(self) -> tuple[ItemEvidence, ...]:
        """The items above zero suspicion, the most suspected first: those that are ranked."""
        return tuple(item for item in self.items if item.suspicion > 0.0)


class ProtocolEvidence(ChannelEvidence):
    """Whether the arms are comparable at all: truncation, empty, unparsable and failed answers by arm."""

    arms: tuple[ArmAccuracy, ...]


class RouterComparison(Frozen):
    """One count of noisy routers against a clean arm, over the same items. Accuracies and the gain are fractions."""

    router_count: int
    clean_arm: str
    n: int
    clean_accuracy: float
    noisy_accuracy: float
    gain: Estimate
    """Noisy minus clean accuracy. Its bounds hold for all router counts of the comparison together."""
    improve: int
    degrade: int
    p_value: float
    """One-sided exact McNemar, noisy better."""
    holm_p: float
    """Corrected over the router counts of the comparison."""


class RouterLeaks(Frozen):
    """What the routers of one arm give away, and what a reader without any model makes of their messages."""

    arm: str
    n_items: int
    n_messages: int
    n_stating: int
    """Messages that state an option as the answer, right or wrong."""
    n_right: int
    """Those of them that state the right one."""
    items_given_away: int
    """Items of which at least one message states the right answer."""
    read_off: Estimate
    """Accuracy of the option that most messages state; an item without one counts as not right."""


class NoiseEvidence(HypothesisEvidence):
    """One clean router against r noisy ones (arXiv 2603.21636): suspicious when the noisy ones are better."""

    n_items: int
    """Items that every arm answered: the same for every comparison."""
    n_left_out: int
    """Items of which a message or an answer is missing."""
    arms: tuple[ArmAccuracy, ...]
    settings: tuple[RouterSetting, ...]
    """The table of the paper's form, which `proctor noise` reads."""
    summary: NoiseSummary | None
    """What the table says; None where there is no item to compare."""
    own_baseline: tuple[RouterComparison, ...]
    """Against one clean router, the paper's baseline; invalid settings are left out here and below."""
    matched: tuple[RouterComparison, ...]
    """Against as many clean routers; empty where the suite asks none."""
    without_leaks: tuple[RouterComparison, ...]
    """Against one clean router, over the items of which no noisy message gives the answer away."""
    leaks: tuple[RouterLeaks, ...]
    clusters: ClusterCount | None = Field(default=None, exclude_if=lambda clusters: clusters is None)
    """What the comparisons are over where items come in clusters; not written where each is one of its own."""


class FreshEvidence(HypothesisEvidence):
    """Benchmark against fresh items. Accuracies are fractions, excess and its kin are in points."""

    method: str
    n_benchmark: int
    n_fresh: int
    n_reference_models: int
    paired: bool
    accuracy_benchmark: Estimate
    accuracy_fresh: Estimate
    expected_accuracy: float | None
    """Benchmark accuracy that the fresh items lead to expect; None where nothing was measured."""
    excess: Estimate
    """Benchmark accuracy minus the expected one, in points."""
    p_value: float
    scatter_points: float
    """Standard deviation of clean models about the reference models' curve, beyond the noise of items."""
    minimum_detectable_points: float
    """Smallest excess that these samples would find with 80 % power."""
    extrapolated: bool
    """Whether the model's accuracy on fresh items lies outside the reference models'."""
    seed: int
    replicates: int
    """Bootstrap replicates drawn; 0 without reference models."""
    arms: tuple[ArmAccuracy, ...] = ()
    """The canonical arm and the fresh one, as they were answered."""
    reference_models: tuple[str, ...] = ()
    n_left_out: int = 0
    """Benchmark and fresh items that the audited model or a reference model did not answer."""


class Evidence(Frozen):
    """All channels of an audit. A channel that did not run is `not_audited`, never clean."""

    perturbation: PerturbationEvidence | None
    protocol: ProtocolEvidence
    noise: NoiseEvidence | None = Field(default=None, exclude_if=lambda noise: noise is None)
    """Clean against noisy routers, where the suite asks them; not written otherwise."""
    fresh: FreshEvidence | None = Field(default=None, exclude_if=lambda fresh: fresh is None)
    """The benchmark against fresh items, where the suite asks such; not written otherwise."""
    exposure: ExposureEvidence | None = Field(default=None, exclude_if=lambda exposure: exposure is None)
    """Items against training data, where the suite names any; not written otherwise."""
    others: dict[str, OtherEvidence] = Field(default_factory=dict, exclude_if=lambda others: not others)
    """Channels of plug-ins that the suite requires, by name; not written where there are none."""
    not_audited: dict[str, str]
    """Channel to the reason why it did not run."""

    @classmethod
    def of(cls, results: Mapping[str, ChannelEvidence], not_audited: Mapping[str, str]) -> Self:
        """Lay out what the channels found, by their names: each in its own field, or among the others."""
        own = {name: results.get(name) for name in cls.model_fields if name not in _NOT_OF_ONE_CHANNEL}
        others = {name: result for name, result in sorted(results.items()) if name not in own}
        return cls.model_validate({**own, "others": others, "not_audited": dict(not_audited)})

    def result_of(self, channel: str) -> ChannelEvidence | None:
        """What a channel found, by its name; None where it did not run."""
        # A plug-in may have any name, also one that is an attribute here.
        result = self.__dict__.get(channel)
        return result if isinstance(result, ChannelEvidence) else self.others.get(channel)

    def verdict_of(self, channel: str) -> Verdict:
        """The verdict of a channel by name."""
        result = self.result_of(channel)
        return result.verdict if result is not None else Verdict.NOT_AUDITED

    @property
    def scope(self) -> Scope:
        """How far the evidence reaches: past the wording where a channel that does so ran and was valid."""
        unusable = (Verdict.INVALID, Verdict.NOT_AUDITED)
        return Scope.of(name for name in BEYOND_WORDING if self.verdict_of(name) not in unusable)


_NOT_OF_ONE_CHANNEL: Final = frozenset({"others", "not_audited"})
