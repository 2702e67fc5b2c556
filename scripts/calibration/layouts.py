"""How many items each cluster of a simulated benchmark has."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from proctor.evidence.answers import IntArray

#: Items of the smallest and of the largest cluster where sizes differ.
SMALLEST, LARGEST = 2, 30


class Layout(StrEnum):
    """How the sizes of a benchmark's clusters differ."""

    EVEN = "even"
    UNEVEN = "uneven"
    """Every size from 2 to 30 as often."""
    SKEWED = "skewed"
    """From 2 to 30 as well, most of them small: a median of 3."""


def cluster_sizes(layout: Layout, clusters: int, each: int) -> IntArray:
    """Sizes of this many clusters, ascending; `each` is the size where they are even. Shape (clusters,)."""
    if layout is Layout.EVEN:
        return np.full(clusters, each)
    place = np.linspace(0.0, 1.0, clusters)
    if layout is Layout.UNEVEN:
        sizes = SMALLEST + place * (LARGEST - SMALLEST)
    else:
        sizes = SMALLEST * (LARGEST / SMALLEST) ** (place**3)
    return np.rint(sizes).astype(np.int64)
