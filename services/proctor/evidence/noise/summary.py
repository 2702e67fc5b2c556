"""The noise channel on a table: a clean router against r noisy routers, suspicious when the noisy ones are better.

Definitions of Song et al. 2026 (arXiv 2603.21636), section 4.4: gain = noisy accuracy − clean baseline, positive
excess = max(gain, 0), violation where gain > 0, violation breadth = violations over a model's noisy settings; improve
and degrade transitions per question. A positive gain is one draw, so each setting has an exact paired test beside it
and the family is corrected by Holm. Where the paper leaves room:

- a gain is (improve − degrade) / n, which no rounding of accuracies moves;
- `mean_positive_excess` is, as in the paper's tables, over the settings with a violation alone (over the models with
  one, for a router count), and undefined without any; the mean of the excess over all valid settings, those without a
  violation included, stands beside it under a name of its own, and means of gain are over all valid settings;
- improve and degrade of a router count are sums over models, with means over models beside them;
- a setting of which more than half of the answers hold no option is `invalid`: no violation, in no mean and no family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from statistics import fmean

from proctor.domain.levels import SIGNIFICANCE_ALPHA
from proctor.domain.noise import (
    HypothesisTest,
    NoiseModel,
    NoiseRouterCount,
    NoiseSetting,
    NoiseSummary,
    RouterSetting,
)
from proctor.evidence.multiplicity import holm
from proctor.evidence.noise.gains import one_sided_mcnemar
from proctor.evidence.noise.hypotheses import gains_exist, models_differ, transitions_turn
from proctor.evidence.noise.sensitivity import contamination_sensitivity, score_confidence
from proctor.evidence.noise.table_statements import conclusion
from proctor.evidence.protocol.channel import MAX_INVALID_SHARE


def noise_summary(table: Sequence[RouterSetting], *, alpha: float = SIGNIFICANCE_ALPHA) -> NoiseSummary:
    """Everything that a table of router settings says, in an order that does not depend on the rows'.

    Intervals have level 1 − alpha.

    Raises:
        ValueError: for an empty table, a (model, router_count) that stands twice, or an alpha outside 0 to 1.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}; it lies between 0 and 1")
    rows = sorted(table, key=lambda row: (row.model, row.router_count))
    if not rows or len({(row.model, row.router_count) for row in rows}) != len(rows):
        raise ValueError("a table needs settings, each (model, router_count) once")
    settings = _tested(rows)
    valid = [setting for setting in settings if not setting.invalid]
    pairs = zip(rows, settings, strict=True)
    models = tuple(_model(list(group), 1 - alpha) for _, group in groupby(pairs, key=lambda pair: pair[0].model))
    by_count = sorted(settings, key=_count_of)
    counts = tuple(_router_count(list(group)) for _, group in groupby(by_count, key=_count_of))
    significant = tuple(s for s in valid if s.holm_p_table is not None and s.holm_p_table < alpha)
    hypotheses: tuple[HypothesisTest, ...] = (
        gains_exist(valid, alpha),
        models_differ(valid, alpha),
        transitions_turn(valid, alpha),
    )
    return NoiseSummary(
        alpha=alpha,
        models=models,
        router_counts=counts,
        settings=settings,
        positive_gains=sum(setting.violation for setting in valid),
        negative_gains=sum(setting.gain < 0 for setting in valid),
        tested_settings=len(valid),
        significant=significant,
        hypotheses=hypotheses,
        conclusion=conclusion(settings, significant, hypotheses, models, _without_right_answers(rows), alpha),
    )


def _without_right_answers(rows: Sequence[RouterSetting]) -> int:
    """Settings that lost every right answer and of which the table does not say whether they were answers at all."""
    return sum(r.noisy_accuracy == 0 and r.degrade > 0 and r.invalid_answers is None for r in rows)


def is_invalid(row: RouterSetting) -> bool:
    """Whether nothing is measured in a setting: more than half of its answers hold no option."""
    return row.invalid_answers is not None and row.invalid_answers > MAX_INVALID_SHARE * row.n


def _tested(rows: Sequence[RouterSetting]) -> tuple[NoiseSetting, ...]:
    valid = [row for row in rows if not is_invalid(row)]
    p_values = {_key(row): one_sided_mcnemar(row.improve, row.degrade) for row in valid}
    over_table = _corrected(valid, p_values)
    over_model: dict[tuple[str, int], float] = {}
    for _, family in groupby(valid, key=lambda row: row.model):
        over_model |= _corrected(list(family), p_values)
    return tuple(_setting(row, p_values, over_model, over_table) for row in rows)


def _count_of(setting: NoiseSetting) -> int:
    return setting.router_count


def _key(row: RouterSetting) -> tuple[str, int]:
    return row.model, row.router_count


def _corrected(family: Sequence[RouterSetting], p_values: dict[tuple[str, int], float]) -> dict[tuple[str, int], float]:
    keys = [_key(row) for row in family]
    return dict(zip(keys, holm([p_values[key] for key in keys]), strict=True))


def _setting(
    row: RouterSetting,
    p_values: dict[tuple[str, int], float],
    over_model: dict[tuple[str, int], float],
    over_table: dict[tuple[str, int], float],
) -> NoiseSetting:
    gain, invalid = (row.improve - row.degrade) / row.n, is_invalid(row)
    return NoiseSetting(
        model=row.model,
        router_count=row.router_count,
        n=row.n,
        gain=gain,
        positive_excess=max(gain, 0.0),
        violation=gain > 0 and not invalid,
        improve=row.improve,
        degrade=row.degrade,
        invalid=invalid,
        p_value=p_values.get(_key(row)),
        holm_p_model=over_model.get(_key(row)),
        holm_p_table=over_table.get(_key(row)),
    )


def _mean(settings: Sequence[NoiseSetting], value: Callable[[NoiseSetting], float]) -> float | None:
    return fmean(value(setting) for setting in settings) if settings else None


def _violations(settings: Sequence[NoiseSetting]) -> list[NoiseSetting]:
    return [setting for setting in settings if setting.violation]


def _model(pairs: Sequence[tuple[RouterSetting, NoiseSetting]], level: float) -> NoiseModel:
    valid = [setting for _, setting in pairs if not setting.invalid]
    counts = [setting.router_count for setting in valid]
    accuracies = [row.noisy_accuracy for row, setting in pairs if not setting.invalid]
    slope = contamination_sensitivity(counts, accuracies, level)
    return NoiseModel(
        model=pairs[0][0].model,
        clean_accuracy=pairs[0][0].clean_accuracy,
        violations=sum(setting.violation for setting in valid),
        settings=len(pairs),
        max_positive_excess=max((setting.positive_excess for setting in valid), default=None),
        mean_positive_excess=_mean(_violations(valid), lambda setting: setting.positive_excess),
        mean_excess_over_all_settings=_mean(valid, lambda setting: setting.positive_excess),
        mean_gain=_mean(valid, lambda setting: setting.gain),
        improve=sum(setting.improve for setting in valid),
        degrade=sum(setting.degrade for setting in valid),
        holm_min_p=min((s.holm_p_model for s in valid if s.holm_p_model is not None), default=None),
        invalid_settings=len(pairs) - len(valid),
        sensitivity=slope,
        score_confidence=score_confidence(slope, counts),
    )


def _router_count(settings: Sequence[NoiseSetting]) -> NoiseRouterCount:
    valid = [setting for setting in settings if not setting.invalid]
    improve, degrade = sum(s.improve for s in valid), sum(s.degrade for s in valid)
    return NoiseRouterCount(
        router_count=settings[0].router_count,
        models=len(settings),
        violating_models=sum(setting.violation for setting in valid),
        mean_positive_excess=_mean(_violations(valid), lambda setting: setting.positive_excess),
        mean_excess_over_all_settings=_mean(valid, lambda setting: setting.positive_excess),
        mean_gain=_mean(valid, lambda setting: setting.gain),
        improve=improve,
        degrade=degrade,
        net_improve=improve - degrade,
        mean_improve=_mean(valid, lambda setting: setting.improve),
        mean_degrade=_mean(valid, lambda setting: setting.degrade),
        mean_net_improve=_mean(valid, lambda setting: setting.improve - setting.degrade),
        invalid_settings=len(settings) - len(valid),
    )
