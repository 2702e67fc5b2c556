"""The one-sided studentised mean of D per item."""

from __future__ import annotations

import math

from scipy import special

from proctor.evidence.answers import PairedAnswers


def studentised_test(answers: PairedAnswers) -> float:
    """p-value of the one-sided t-test that the mean difference over items is at most 0.

    Assumes independent items and nothing about the dependence of an item's rewordings on each other; the size is
    asymptotic in the number of items.

    Degenerate cases: fewer than two items give 1 (no spread can be estimated); all differences equal give 0 where
    they are above 0, the limit of an infinite t, and 1 otherwise.
    """
    n, counts, differences = answers.n, answers.patterns.counts, answers.patterns.differences
    if n < 2:
        return 1.0
    if bool((differences == differences[0]).all()):
        return 0.0 if differences[0] > 0 else 1.0
    mean = float((counts * differences).sum()) / n
    variance = float((counts * (differences - mean) ** 2).sum()) / (n - 1)
    return float(special.stdtr(n - 1, -mean / math.sqrt(variance / n)))
