"""The noise channel's vocabulary: settings of a clean router against r noisy routers, and what a table of them says.

Song et al. 2026, arXiv 2603.21636, sections 3 and 4. Accuracies, gains and excesses are fractions, never points.
"""

from __future__ import annotations

from pydantic import Field

from proctor.domain.base import Frozen
from proctor.domain.estimate import Estimate


class RouterSetting(Frozen):
    """One noisy setting of one model: the same n questions through one clean router and through r noisy ones."""

    model: str
    router_count: int = Field(ge=1)
    n: int = Field(ge=1)
    clean_accuracy: float = Field(ge=0, le=1)
    noisy_accuracy: float = Field(ge=0, le=1)
    improve: int = Field(ge=0)
    """Questions that are wrong in the clean arm and right in the noisy one."""
    degrade: int = Field(ge=0)
    """Questions that are right in the clean arm and wrong in the noisy one."""
    invalid_answers: int | None = Field(default=None, ge=0)
    """Noisy answers that hold no option; None where the table does not say."""


class NoiseSetting(Frozen):
    """What one setting shows. In an invalid setting nothing is measured: its gain is no evidence either way."""

    model: str
    router_count: int
    n: int
    gain: float
    positive_excess: float
    violation: bool
    improve: int
    degrade: int
    invalid: bool
    p_value: float | None
    """One-sided exact McNemar, noisy better; None in an invalid setting."""
    holm_p_model: float | None
    """Corrected over the valid settings of the model."""
    holm_p_table: float | None
    """Corrected over the valid settings of the table."""


class NoiseModel(Frozen):
    """One model over its router counts. Means are over valid settings; None where none is valid."""

    model: str
    clean_accuracy: float
    violations: int
    """Violation breadth: valid settings whose gain is above 0."""
    settings: int
    """All noisy settings in the table, the invalid ones included."""
    max_positive_excess: float | None
    mean_positive_excess: float | None
    """As in the paper's tables: over the settings whose gain is above 0 alone; None where there is none."""
    mean_excess_over_all_settings: float | None = None
    """Mean of max(gain, 0) over all valid settings; in older documents, `mean_positive_excess`."""
    mean_gain: float | None
    improve: int
    degrade: int
    holm_min_p: float | None
    invalid_settings: int
    sensitivity: Estimate
    """Slope of noisy accuracy over router count, per router."""
    score_confidence: Estimate


class NoiseRouterCount(Frozen):
    """One router count over the models. Sums and means are over valid settings."""

    router_count: int
    models: int
    violating_models: int
    mean_positive_excess: float | None
    """As in the paper's tables: over the models whose gain is above 0 alone; None where there is none."""
    mean_excess_over_all_settings: float | None = None
    """Mean of max(gain, 0) over all valid settings, one a model; in older documents, `mean_positive_excess`."""
    mean_gain: float | None
    improve: int
    """Sum over models."""
    degrade: int
    net_improve: int
    mean_improve: float | None
    mean_degrade: float | None
    mean_net_improve: float | None
    invalid_settings: int


class HypothesisTest(Frozen):
    """A test with its null hypothesis in words."""

    name: str
    null_hypothesis: str
    method: str
    p_value: float | None
    """None where the table cannot test it."""
    reading: str
    parts: tuple[HypothesisTest, ...] = ()


class NoiseSummary(Frozen):
    """What a table of router settings says."""

    alpha: float
    models: tuple[NoiseModel, ...]
    router_counts: tuple[NoiseRouterCount, ...]
    settings: tuple[NoiseSetting, ...]
    positive_gains: int
    negative_gains: int
    tested_settings: int
    """The family of Holm's correction over the table: every valid setting."""
    significant: tuple[NoiseSetting, ...]
    """Settings whose exact p survives Holm over the whole table."""
    hypotheses: tuple[HypothesisTest, ...]
    conclusion: str
