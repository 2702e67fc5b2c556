"""The paper's three hypotheses (arXiv 2603.21636, section 3.4) as tests with stated nulls, over valid settings.

Rejecting a null is not yet contamination: gains, differences and trends also come from a clean router that loses more
than many noisy ones together, from answers cut or unread in one arm, or from a lucky or unlucky clean run.
"""

from __future__ import annotations

from collections.abc import Sequence

from proctor.domain.noise import HypothesisTest, NoiseSetting
from proctor.evidence.multiplicity import holm
from proctor.evidence.noise.gains import heterogeneity_p, one_sided_mcnemar, page_trend
from proctor.evidence.written_numbers import counted, p_text

_NOTHING = "The table has no valid setting."


def gains_exist(valid: Sequence[NoiseSetting], alpha: float) -> HypothesisTest:
    """H1: above-baseline anomalies under some router settings. The smallest Holm-corrected p over the table."""
    p_values = [setting.holm_p_table for setting in valid if setting.holm_p_table is not None]
    surviving = sum(p < alpha for p in p_values)
    return HypothesisTest(
        name="H1: noise raises the score in some setting",
        null_hypothesis="In no setting does a question turn right more often than it turns wrong.",
        method=f"one-sided exact McNemar per setting, Holm over {counted(len(p_values), 'setting')}, smallest p",
        p_value=min(p_values, default=None),
        reading=f"{surviving} of {counted(len(p_values), 'setting')} show it." if p_values else _NOTHING,
    )


def models_differ(valid: Sequence[NoiseSetting], alpha: float) -> HypothesisTest:
    """H2: models differ in sensitivity. Cochran's Q of the gains per router count, Holm over router counts."""
    counts, raw = [], []
    for count in sorted({setting.router_count for setting in valid}):
        here = [setting for setting in valid if setting.router_count == count]
        p_value = heterogeneity_p([s.improve for s in here], [s.degrade for s in here], [s.n for s in here])
        if p_value is not None:
            counts.append(count)
            raw.append(p_value)
    null = "At every router count, all models have the same expected gain."
    adjusted = holm(raw)
    parts = tuple(
        HypothesisTest(
            name=f"H2 at {counted(count, 'router')}",
            null_hypothesis=f"At router count {count}, all models have the same expected gain.",
            method=f"Cochran's Q over models, chi-squared, Holm over {counted(len(counts), 'router count')}",
            p_value=p_value,
            reading="The models differ." if p_value < alpha else "The models cannot be told apart.",
        )
        for count, p_value in zip(counts, adjusted, strict=True)
    )
    differing = sum(p < alpha for p in adjusted)
    return HypothesisTest(
        name="H2: models differ in how much noise moves them",
        null_hypothesis=null,
        method="Cochran's Q per router count, Holm over router counts, smallest p",
        p_value=min(adjusted, default=None),
        reading=(
            f"The models differ at {differing} of {counted(len(counts), 'router count')}."
            if counts
            else "No router count has two models to compare."
        ),
        parts=parts,
    )


def transitions_turn(valid: Sequence[NoiseSetting], alpha: float) -> HypothesisTest:
    """H3: with more routers improve rises, degrade falls, and improve ends above degrade. Largest p of the three."""
    models = sorted({setting.model for setting in valid})
    blocks = [[setting for setting in valid if setting.model == model] for model in models]
    rising = page_trend([{s.router_count: s.improve for s in block} for block in blocks])
    falling = page_trend([{s.router_count: -s.degrade for s in block} for block in blocks])
    parts = [
        HypothesisTest(
            name="H3a: improve rises with the router count",
            null_hypothesis="Within a model, improve transitions are exchangeable over router counts.",
            method=f"Page's trend test, {rising.method}",
            p_value=rising.p_value,
            reading=_trend_reading(rising.p_value, alpha, "Improve rises.", "No rise of improve is shown."),
        ),
        HypothesisTest(
            name="H3b: degrade falls with the router count",
            null_hypothesis="Within a model, degrade transitions are exchangeable over router counts.",
            method=f"Page's trend test, {falling.method}",
            p_value=falling.p_value,
            reading=_trend_reading(falling.p_value, alpha, "Degrade falls.", "No fall of degrade is shown."),
        ),
    ]
    if valid:
        parts.append(_end(valid, alpha))
    p_values = [part.p_value for part in parts]
    known = [p for p in p_values if p is not None]
    p_value = max(known) if len(known) == 3 else None
    return HypothesisTest(
        name="H3: improve rises, degrade falls, and improve ends above degrade",
        null_hypothesis="At least one of the three does not happen.",
        method="the largest p of the three (intersection–union)",
        p_value=p_value,
        reading=(
            "It needs a model with two router counts."
            if p_value is None
            else f"{sum(p < alpha for p in known)} of its 3 parts shown."
        ),
        parts=tuple(parts),
    )


def _trend_reading(p_value: float | None, alpha: float, shown: str, not_shown: str) -> str:
    if p_value is None:
        return "No model has two router counts."
    return f"{shown if p_value < alpha else not_shown} ({p_text(p_value)})"


def _end(valid: Sequence[NoiseSetting], alpha: float) -> HypothesisTest:
    last = max(setting.router_count for setting in valid)
    here = [setting for setting in valid if setting.router_count == last]
    improve, degrade = sum(s.improve for s in here), sum(s.degrade for s in here)
    p_value = one_sided_mcnemar(improve, degrade)
    verdict = "Improve exceeds degrade" if p_value < alpha else "Improve is not shown to exceed degrade"
    return HypothesisTest(
        name="H3c: improve exceeds degrade at the largest router count",
        null_hypothesis=f"At router count {last}, a changed question of any model turns right with chance 1/2 at most.",
        method=f"one-sided exact McNemar, pooled over {counted(len(here), 'model')}",
        p_value=p_value,
        reading=f"{verdict}: {improve} against {degrade} ({p_text(p_value)}).",
    )
