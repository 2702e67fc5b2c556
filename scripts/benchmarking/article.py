"""The per-item scorer as the article prints it, to be timed: one call of scipy's t-test for each item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass
class ContaminationReport:
    """The article's result for one item."""

    source_item_id: str
    accuracy_baseline: float
    accuracy_perturbed_mean: float
    contamination_score: float
    p_value: float
    is_contaminated: bool


def compute_contamination_score(
    baseline_correct: bool, perturbed_correct_flags: list[bool], alpha: float = 0.05
) -> ContaminationReport:
    """The article's function, line by line."""
    acc_baseline = float(baseline_correct)
    acc_perturbed_arr = np.array(perturbed_correct_flags, dtype=float)
    acc_perturbed_mean = acc_perturbed_arr.mean()
    t_stat, p_value = stats.ttest_1samp(acc_perturbed_arr, popmean=acc_baseline)
    p_value_one_tailed = p_value / 2 if t_stat < 0 else 1.0
    cs = (acc_baseline - acc_perturbed_mean) / acc_baseline if acc_baseline > 0 else 0.0
    return ContaminationReport(
        source_item_id="",
        accuracy_baseline=acc_baseline,
        accuracy_perturbed_mean=float(acc_perturbed_mean),
        contamination_score=round(float(cs), 4),
        p_value=round(float(p_value_one_tailed), 4),
        is_contaminated=bool(cs > 0.1 and p_value_one_tailed < alpha),
    )
