"""The article's own rule, for comparison: a one-sample t-test for each item.

An item is flagged where its Contamination Score is above the threshold and a one-sided t-test of its reworded answers
against its single canonical answer gives p < alpha. A suite is blocked where the flagged share is above its limit.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from proctor.domain.evidence import PerItemTTest
from proctor.evidence.answers import FloatArray, PairedAnswers

_NOTE = (
    "This rule tests one lucky draw against its own mean. It flags up to 17 % of a simulated clean model's items at 3 "
    "or 4 variants and up to 28 % at 9 or 10, where its 5 % limit blocks nearly every clean model whose answers vary. "
    "It is shown for comparison."
)


def per_item_p_values(answers: PairedAnswers) -> FloatArray:
    """One-sided p of each item's t-test, from its counts.

    Degenerate cases, which the article's code leaves to NaN and division by zero: canonical right and every
    rewording wrong is an infinite t, p = 0; all answers equal, p = 1. With one rewording there is no test, p = 1.
    """
    patterns = answers.patterns
    share, total, drop = patterns.reworded_share, patterns.total, -patterns.differences
    degrees = np.maximum(total - 1, 1)
    # Variance of 0/1 answers over n - 1, divided by n.
    error = np.sqrt(share * (1 - share) / degrees)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(error > 0, drop / np.where(error > 0, error, 1.0), np.where(drop < 0, -np.inf, 0.0))
    p: FloatArray = np.where((t < 0) & (total >= 2), special.stdtr(degrees.astype(np.float64), t), 1.0)
    return p[patterns.inverse]


def per_item_t_test(answers: PairedAnswers, *, threshold: float, alpha: float, block_above_pct: float) -> PerItemTTest:
    """The article's verdict on every item, and what its gate would do."""
    score = np.where(answers.canonical, answers.differences, 0.0)
    flagged = (score > threshold) & (per_item_p_values(answers) < alpha)
    share = 100.0 * float(flagged.mean()) if answers.n else 0.0
    return PerItemTTest(
        flagged_items=tuple(item for item, flag in zip(answers.item_ids, flagged.tolist(), strict=True) if flag),
        flagged_pct=share,
        would_block=share > block_above_pct,
        note=_NOTE,
    )
