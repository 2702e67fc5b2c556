"""Corrections of a family of tests.

Holm's bounds the chance of a single false rejection, however the tests depend on each other; Benjamini and Hochberg's
the share of false ones among the rejections. A family is named beforehand; a test that is left out of it because of its
result makes the bound void.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proctor.evidence.answers import FloatArray


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given (Holm 1979, Scandinavian Journal of Statistics 6, 65–70)."""
    adjusted = [1.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return tuple(adjusted)


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """Adjusted p-values in the order given: those of at most alpha have a false discovery rate of at most alpha.

    For tests that are independent, or depend on each other positively (Benjamini and Hochberg 1995, Journal of the
    Royal Statistical Society B 57, 289–300; Benjamini and Yekutieli 2001, Annals of Statistics 29, 1165–1188).
    """
    order = np.argsort(p_values, kind="stable")
    ranks = np.arange(1, p_values.size + 1)
    raised = p_values[order] * p_values.size / ranks
    adjusted = np.empty(p_values.size)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(raised[::-1])[::-1])
    return adjusted
