"""Which cells each study simulates."""

from __future__ import annotations

import math
from itertools import product
from typing import Final

import numpy as np

from calibration.cells import MODELS, NEARLY_DETERMINISTIC, Cell
from calibration.designs import BETTING, DEFAULT, DESIGNS, FIXED, OPTSTOP
from calibration.layouts import LARGEST, Layout, cluster_sizes
from calibration.panels import RASCH
from proctor.domain.suite import ScoringSection
from proctor.evidence.planning.approval import TARGET, detectable_share, items_for_approval
from proctor.evidence.planning.families import FAMILIES, RECALL
from proctor.evidence.planning.simulated_audits import Limits

ITEMS: Final = (50, 100, 200, 500, 1_000)
VARIANTS: Final = (3, 4, 9, 10)
#: The article's recommendation, and Proctor's default.
DEFAULT_ITEMS, DEFAULT_VARIANTS = 500, 3
POWER_SHARES: Final = (0.02, 0.05, 0.10, 0.20)
#: Besides, at the default size, for the curves.
CURVE_SHARES: Final = (0.01, 0.03, 0.04, 0.075, 0.15, 0.25)
GATE_ITEMS: Final = (50, 100, 200, 300, 500, 750, 1_000)
GATE_SHARES: Final = (0.0, 0.02, 0.05, 0.10, 0.20)
COVERAGE_SHARES: Final = (0.0, 0.02, 0.10)
#: Where coverage is counted, hardly varying answers are the hard case.
COVERAGE_FAMILIES: Final = (*FAMILIES, NEARLY_DETERMINISTIC.name)
#: Clean, and leaked as models of the sequential design's promises are.
SEQUENTIAL_SHARES: Final = (0.0, 0.05, 0.10, 0.20)
#: Items and variants of the design that suites have by default; at the middle one designs are compared.
SEQUENTIAL_SIZES: Final = ((200, 3), (500, 3), (1_000, 3), (500, 9))
#: Besides, at the default size, for the curves.
SEQUENTIAL_CURVE: Final = (0.02, 0.03, 0.075, 0.15)
#: Fixed designs of fewer items, beside designs that ask as many on average.
FEWER_ITEMS: Final = (200, 250, 300)
#: What a rewording costs a clean model where control items are to mend it: two points.
REWORDING_COST = 0.02
#: Seed of the searches that say which cells to simulate; the cells have their own.
_SEARCH = 0
#: Below it coverage is stated, not claimed.
COVERED_FROM = 200


def size_cells() -> list[Cell]:
    """Clean models of every family."""
    return [Cell("size", family, items, variants) for family, items, variants in product(FAMILIES, ITEMS, VARIANTS)]


def power_cells() -> list[Cell]:
    """Contaminated models of every family, and a finer curve at the default size."""
    grid = [
        Cell("power", family, items, variants, leaked_share=share)
        for family, items, variants, share in product(FAMILIES, ITEMS, VARIANTS, POWER_SHARES)
    ]
    curves = [
        Cell("power", family, DEFAULT_ITEMS, DEFAULT_VARIANTS, leaked_share=share)
        for family, share in product(FAMILIES, CURVE_SHARES)
    ]
    return grid + curves


def coverage_cells() -> list[Cell]:
    """Clean and contaminated models, near-deterministic ones too."""
    return [
        Cell("coverage", family, items, variants, leaked_share=share)
        for family, items, variants, share in product(COVERAGE_FAMILIES, ITEMS, VARIANTS, COVERAGE_SHARES)
    ]


def gate_cells() -> list[Cell]:
    """The gate's table: items by leaked share by family."""
    return [
        Cell("gate", family, items, DEFAULT_VARIANTS, leaked_share=share)
        for family, items, share in product(FAMILIES, GATE_ITEMS, GATE_SHARES)
    ]


def comparison_cells() -> list[Cell]:
    """Two runs on the same items; one answer an item each."""
    return [
        Cell("comparison", family, items, 1, leaked_share=share)
        for family, items, share in product(COVERAGE_FAMILIES, ITEMS, COVERAGE_SHARES)
    ]


def approval_cells() -> list[Cell]:
    """As many items as `proctor audit plan` would say that approval of a clean model takes."""
    cells = []
    for name, family in FAMILIES.items():
        items = items_for_approval(family, DEFAULT_VARIANTS, Limits(), np.random.default_rng(_SEARCH), target=TARGET)
        if items is not None:
            cells.append(Cell("approval", name, items, DEFAULT_VARIANTS))
    return cells


def sensitivity_cells() -> list[Cell]:
    """The smallest leaked share that `proctor audit plan` would promise to find with 80 % power."""
    cells = []
    for name, items, variants in product(FAMILIES, (200, DEFAULT_ITEMS, 1_000), (DEFAULT_VARIANTS, 9)):
        share = detectable_share(FAMILIES[name], items, variants, np.random.default_rng(_SEARCH))
        if share is not None:
            cells.append(Cell("sensitivity", name, items, variants, leaked_share=round(share, 4)))
    return cells


def control_cells() -> list[Cell]:
    """A rewording that costs a clean model two points, with control items that cannot have leaked."""
    return [
        Cell("control", family, items, variants, leaked_share=share, cost=REWORDING_COST, control_items=controls)
        for family, items, controls, variants, share in product(
            FAMILIES, (200, 500, 1_000), (200, 500), (3, 9), (0.0, 0.10)
        )
    ]


def replicates_cells() -> list[Cell]:
    """Wordings that are asked once and three times."""
    return [
        Cell("replicates", family, items, variants, times, leaked_share=share)
        for family, items, variants, times, share in product(FAMILIES, (200, 500), (3, 9), (1, 3), (0.0, 0.10))
    ]


def cluster_cells() -> list[Cell]:
    """Few and many clusters, small and large, even and not: half of the items in common, and everything."""
    laid_out = [(Layout.EVEN, each) for each in (2, 10, LARGEST)] + [(Layout.UNEVEN, 1), (Layout.SKEWED, 1)]
    cells = []
    for (layout, each), clusters, family in product(laid_out, (20, 50, 200), COVERAGE_FAMILIES):
        items = int(cluster_sizes(layout, clusters, each).sum())
        usual = Cell(
            "clusters", family, items, DEFAULT_VARIANTS, cluster_items=each, clusters=clusters, layout=layout.value
        )
        cells += [usual, usual._replace(shared=1.0), usual._replace(leaked_share=0.10)]
        if each == 1:
            # One reworded answer an item, as behind a clean and a noisy router.
            cells.append(usual._replace(variants=1))
    return cells


def conformal_cells() -> list[Cell]:
    """Graded items before a batch to come."""
    return [Cell("conformal", family, items, 1) for family, items in product(COVERAGE_FAMILIES, (COVERED_FROM, 1_000))]


def fresh_cells() -> list[Cell]:
    """As many fresh items as benchmark ones, without and with a panel."""
    return [
        Cell("fresh", RASCH, items, 0, leaked_share=share, reference_models=models)
        for items, models, share in product((COVERED_FROM, DEFAULT_ITEMS), (0, 5, 20), (0.0, 0.10))
        # The bootstrap of a large panel over many items is slow, and shows nothing that the smaller ones do not.
        if (items, models) != (DEFAULT_ITEMS, 20)
    ]


def sequential_cells() -> list[Cell]:
    """The default sequential design at every size, in clusters and with control items; others at the default size."""
    sized = [
        Cell("sequential", family, items, variants, leaked_share=share, design=DEFAULT)
        for (items, variants), family in product(SEQUENTIAL_SIZES, COVERAGE_FAMILIES)
        for share in (*SEQUENTIAL_SHARES, share_at_limit(family))
    ]
    curves = [
        Cell("sequential", family, DEFAULT_ITEMS, DEFAULT_VARIANTS, leaked_share=share, design=DEFAULT)
        for family, share in product(FAMILIES, SEQUENTIAL_CURVE)
    ]
    others = [
        Cell("sequential", family, items, DEFAULT_VARIANTS, leaked_share=share, design=design)
        for design, items in _other_designs()
        for family in COVERAGE_FAMILIES
        for share in (*SEQUENTIAL_SHARES, share_at_limit(family))
    ]
    clustered = [cell._replace(study="sequential", design=DEFAULT) for cell in cluster_cells() if cell.variants > 1]
    at_limit = [
        cell._replace(leaked_share=share_at_limit(cell.family)) for cell in clustered if cell.leaked_share == 0.10
    ]
    controlled = [cell._replace(study="sequential", design=DEFAULT) for cell in control_cells()]
    return sized + curves + others + clustered + at_limit + controlled


def _other_designs() -> list[tuple[str, int]]:
    names = [name for name in (*DESIGNS, *BETTING, *OPTSTOP) if name not in (DEFAULT, FIXED)]
    return [(name, DEFAULT_ITEMS) for name in names] + [(FIXED, items) for items in FEWER_ITEMS]


def share_at_limit(family: str) -> float:
    """The leaked share, to four digits, at which the true D is just past the limit within which a suite approves."""
    model, limit = MODELS[family], ScoringSection().max_allowed_contaminated_items_pct / 100
    otherwise = model.accuracy if model.unknown_chance is None else model.unknown_chance
    share = math.ceil(10_000 * limit / (RECALL - otherwise)) / 10_000
    return share if model.inflation(share) > limit else share + 0.0001


def plain(cell: Cell) -> bool:
    """Whether a sequential design is to save its share here: a plainly clean family, or a leak of 10 % or more."""
    clean = cell.family in ("consistent", "guessers") and not cell.leaked_share
    return cell.leaked_share in SEQUENTIAL_SHARES and (clean or cell.leaked_share >= 0.10)
