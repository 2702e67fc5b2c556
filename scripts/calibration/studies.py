"""What is simulated: for each study its cells, what is counted in them, and what is claimed of the counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from calibration import grids
from calibration.cells import Cell, Measure, Tally
from calibration.clustering import clustered, future_batch
from calibration.coverage import channel_coverage, comparison_coverage
from calibration.designs import DEFAULT, DESIGNS, FIXED, PROMISED
from calibration.further import control, replicates
from calibration.gates import gate
from calibration.grids import COVERED_FROM, DEFAULT_ITEMS, DEFAULT_VARIANTS, plain
from calibration.judging import Claim
from calibration.layouts import Layout
from calibration.panels import fresh
from calibration.rejection import rejections
from calibration.sequential import designed

#: The size that is allowed at a nominal 0.05, and the coverage that is required at a nominal 0.95.
LARGEST_SIZE, LEAST_COVERAGE = 0.06, 0.93
#: False approvals that are allowed of a sequential design, and the share of the items that the default one may ask.
MOST_FALSELY_APPROVED, MOST_ITEMS_ASKED = 0.05, 0.60


class Study(NamedTuple):
    """A grid of cells, and how one is evaluated."""

    cells: Callable[[], Sequence[Cell]]
    evaluate: Callable[[Cell, np.random.Generator, int], Tally]
    claims: tuple[Claim, ...] = ()
    searches: bool = False
    """Whether finding the cells takes a simulation itself."""


def in_quick(cell: Cell) -> bool:
    """Whether a quick look takes in this cell: 200 and 500 items in the default number of variants, or 50 clusters, and
    of the sequential designs the default."""
    if cell.clusters:
        return cell.clusters == 50 and cell.layout == Layout.UNEVEN
    sized = cell.items in (COVERED_FROM, DEFAULT_ITEMS) and cell.variants <= DEFAULT_VARIANTS
    return sized and cell.design in ("", DEFAULT)


def _clean(cell: Cell) -> bool:
    return cell.leaked_share == 0


def _covered(cell: Cell) -> bool:
    return cell.items >= COVERED_FROM


def _looked_at(cell: Cell) -> bool:
    """Whether it is a sequential design that suites can have; of the peers beside nothing is claimed."""
    return cell.design in DESIGNS and cell.design != FIXED


def _saves(cell: Cell) -> bool:
    """Whether the default sequential design promises to ask fewer items in this cell."""
    independent = not cell.clusters and not cell.control_items
    return cell.design == DEFAULT and independent and cell.items >= DEFAULT_ITEMS and plain(cell)


def _power_claim(name: str, family: str, least: float) -> Claim:
    where = Cell("power", family, DEFAULT_ITEMS, DEFAULT_VARIANTS, leaked_share=0.10)
    return Claim(name, "power", (Measure.DEFAULT_P,), least, at_least=True, concerns=lambda cell: cell == where)


STUDIES: Final[Mapping[str, Study]] = {
    "size": Study(
        grids.size_cells,
        rejections,
        (Claim("the default p rejects a clean model in at most 6 %", "size", (Measure.DEFAULT_P,), LARGEST_SIZE),),
    ),
    "power": Study(
        grids.power_cells,
        rejections,
        (
            _power_claim("10 % leaked independently of difficulty is found, Beta(1, 1)", "beta_1_1", 0.65),
            _power_claim("10 % leaked among unknown items is found, consistent answerers", "consistent", 0.95),
        ),
    ),
    "coverage": Study(
        grids.coverage_cells,
        channel_coverage,
        (
            Claim(
                "every 95 % interval of the channel covers at least 93 % from 200 items up",
                "coverage",
                (Measure.INFLATION, Measure.SCORE, Measure.CANONICAL, Measure.REWORDED, Measure.LEAKED_SHARE),
                LEAST_COVERAGE,
                at_least=True,
                concerns=_covered,
            ),
        ),
    ),
    "comparison": Study(
        grids.comparison_cells,
        comparison_coverage,
        (
            Claim(
                "both 95 % intervals of `proctor compare` cover at least 93 % from 200 items up",
                "comparison",
                (Measure.PAIRED_DIFFERENCE, Measure.PAIRED_BOOTSTRAP),
                LEAST_COVERAGE,
                at_least=True,
                concerns=_covered,
            ),
            Claim(
                "McNemar's exact test of two equal models rejects in at most 6 %",
                "comparison",
                (Measure.MCNEMAR_P,),
                LARGEST_SIZE,
                concerns=_clean,
            ),
        ),
    ),
    "gate": Study(grids.gate_cells, gate),
    "approval": Study(grids.approval_cells, gate, searches=True),
    "sensitivity": Study(grids.sensitivity_cells, rejections, searches=True),
    "control": Study(
        grids.control_cells,
        control,
        (
            Claim(
                "difference-in-differences rejects a clean model in at most 6 % where a rewording costs two points",
                "control",
                (Measure.CONTROLLED_P,),
                LARGEST_SIZE,
                concerns=_clean,
            ),
            Claim(
                "the 95 % intervals of difference-in-differences cover at least 93 %",
                "control",
                (Measure.EXCESS, Measure.EXCESS_SCORE),
                LEAST_COVERAGE,
                at_least=True,
            ),
        ),
    ),
    "replicates": Study(
        grids.replicates_cells,
        replicates,
        (
            Claim(
                "the p over wordings asked several times rejects a clean model in at most 6 %",
                "replicates",
                (Measure.DEFAULT_P,),
                LARGEST_SIZE,
                concerns=_clean,
            ),
            Claim(
                "the 95 % intervals over wordings asked several times cover at least 93 %",
                "replicates",
                (Measure.INFLATION, Measure.SCORE),
                LEAST_COVERAGE,
                at_least=True,
            ),
        ),
    ),
    "clusters": Study(
        grids.cluster_cells,
        clustered,
        (
            Claim(
                "the default p rejects a clean model in at most 6 % where items come in clusters",
                "clusters",
                (Measure.DEFAULT_P,),
                LARGEST_SIZE,
                concerns=_clean,
            ),
            Claim(
                "every 95 % interval of the channel covers at least 93 % where items come in clusters",
                "clusters",
                (Measure.INFLATION, Measure.SCORE, Measure.CANONICAL, Measure.REWORDED),
                LEAST_COVERAGE,
                at_least=True,
            ),
        ),
    ),
    "sequential": Study(
        grids.sequential_cells,
        designed,
        (
            Claim(
                "a sequential design rejects a clean model at any look until its stop in at most 6 %",
                "sequential",
                (Measure.ANY_LOOK_P,),
                LARGEST_SIZE,
                concerns=lambda cell: _looked_at(cell) and _clean(cell),
            ),
            Claim(
                "the intervals at the stop of a sequential design, and at all its looks together, cover at least 93 %",
                "sequential",
                (
                    Measure.INFLATION,
                    Measure.SCORE,
                    Measure.EXCESS,
                    Measure.EXCESS_SCORE,
                    Measure.INFLATION_AT_LOOKS,
                    Measure.SCORE_AT_LOOKS,
                ),
                LEAST_COVERAGE,
                at_least=True,
                concerns=_looked_at,
            ),
            Claim(
                "a sequential design approves a model whose D is past the limit in at most 5 %",
                "sequential",
                (Measure.FALSELY_APPROVED,),
                MOST_FALSELY_APPROVED,
                concerns=lambda cell: cell.design in PROMISED,
            ),
            Claim(
                "the default sequential design asks at most 60 % of 500 items or more where a model is plain",
                "sequential",
                (Measure.ITEMS_ASKED,),
                MOST_ITEMS_ASKED,
                concerns=_saves,
            ),
        ),
    ),
    "conformal": Study(
        grids.conformal_cells,
        future_batch,
        (
            Claim(
                "the 95 % split-conformal interval holds the next batch's accuracy in at least 93 %",
                "conformal",
                (Measure.FUTURE_ACCURACY,),
                LEAST_COVERAGE,
                at_least=True,
            ),
        ),
    ),
    "fresh": Study(
        grids.fresh_cells,
        fresh,
        (
            Claim(
                "the fresh channel rejects a clean model in at most 6 %",
                "fresh",
                (Measure.FRESH_P,),
                LARGEST_SIZE,
                concerns=_clean,
            ),
            Claim(
                "the fresh channel's 95 % interval covers at least 93 %",
                "fresh",
                (Measure.FRESH_EXCESS,),
                LEAST_COVERAGE,
                at_least=True,
            ),
        ),
    ),
}
CLAIMS: Final = tuple(claim for study in STUDIES.values() for claim in study.claims)
