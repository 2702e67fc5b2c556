"""How many items each cluster of a simulated benchmark has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

import numpy as np

from calibration.cells import Row
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


def by_layout(rows: Sequence[Row]) -> Iterator[tuple[tuple[str, str], list[Row]]]:
    """Rows of cells with clusters by how many and how large these are, fewest first; each with both in words."""

    def layout_of(row: Row) -> tuple[int, str, int]:
        return row.cell.clusters, row.cell.layout, row.cell.cluster_items

    for clusters, layout, each in dict.fromkeys(map(layout_of, sorted(rows, key=lambda row: row.cell.clusters))):
        sizes = f"{each}" if layout == Layout.EVEN else f"{SMALLEST} to {LARGEST}, {layout}"
        yield (f"{clusters:,}", sizes), [row for row in rows if layout_of(row) == (clusters, layout, each)]
