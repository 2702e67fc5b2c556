"""The published plots, from the table's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from calibration.cells import MODELS, Cell, Measure, Row
from calibration.coverage_tables import CLAIMED
from calibration.designs import DEFAULT
from calibration.forms import Scale, Series, Strip, line_chart, strip_chart
from calibration.grids import DEFAULT_ITEMS, DEFAULT_VARIANTS, SEQUENTIAL_CURVE, SEQUENTIAL_SHARES
from calibration.studies import LARGEST_SIZE, LEAST_COVERAGE, MOST_ITEMS_ASKED
from proctor.evidence.planning.families import FAMILIES
from proctor.studies.charts import chart_style

_COVERAGE_LINES: Final = {
    "Proctor's intervals, the worst of five": CLAIMED,
    "D, plain t interval": (Measure.PLAIN_INFLATION,),
    "Contamination Score, plain Fieller interval": (Measure.PLAIN_SCORE,),
    "D, percentile bootstrap": (Measure.BOOTSTRAP_INFLATION,),
}
_PERCENT_TICKS: Final = (0.0, 20.0, 40.0, 60.0, 80.0, 100.0)


def plots(tables: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    """File name to SVG document, for the studies that are there.

    Raises:
        BadInputError: where matplotlib is not installed.
    """
    with chart_style():
        return {name: draw(tables[study]) for study, name, draw in _PLOTS if study in tables}


def size(rows: Sequence[Row]) -> str:
    """Rejections of clean models, a mark for each cell."""
    kinds = (Measure.DEFAULT_P, Measure.EXACT_P, Measure.STUDENTISED_P)
    strips = [
        Strip(
            family,
            tuple(100 * row.rate for row in rows if row.cell.family == family and row.measure is measure),
            kind,
        )
        for family in _families(rows)
        for kind, measure in enumerate(kinds)
    ]
    return strip_chart(
        "How often a clean model is rejected at alpha 0.05",
        "one mark for each number of items (50–1,000) and variants (3, 4, 9, 10); dashed: the 6 % that are allowed",
        strips,
        ("larger of both (default)", "exact test alone", "studentised mean alone"),
        "rejected, %",
        limit=100 * LARGEST_SIZE,
    )


def power(rows: Sequence[Row]) -> str:
    """Power of the default p against the leaked share, at the default size."""
    series = []
    for family in _families(rows):
        points = sorted(
            (100 * row.cell.leaked_share, 100 * row.rate)
            for row in rows
            if (row.cell.family, row.cell.items, row.cell.variants) == (family, DEFAULT_ITEMS, DEFAULT_VARIANTS)
            and row.measure is Measure.DEFAULT_P
        )
        series.append(Series(MODELS[family].title, tuple(points)))
    return line_chart(
        f"Power of the default p by leaked share: {DEFAULT_ITEMS} items, {DEFAULT_VARIANTS} variants",
        "dashed: 80 %",
        series,
        Scale("leaked items, %", (0.0, 5.0, 10.0, 15.0, 20.0, 25.0)),
        Scale("models found, %", _PERCENT_TICKS),
        limit=80.0,
    )


def coverage(rows: Sequence[Row]) -> str:
    """Worst coverage of each interval over families, variants and leaked shares, against the number of items."""
    items = sorted({row.cell.items for row in rows})
    series = []
    for name, measures in _COVERAGE_LINES.items():
        seen = [row for row in rows if row.measure in measures]
        points = [(n, 100 * min(row.rate for row in seen if row.cell.items == n)) for n in items if seen]
        series.append(Series(name, tuple(points)))
    return line_chart(
        "Worst coverage of 95 % intervals by number of items",
        "over families, near-deterministic ones too, variants and leaked shares; dashed: the 93 % that are claimed",
        series,
        Scale("items", tuple(map(float, items)), log=True),
        Scale("covered in the worst cell, %", _PERCENT_TICKS),
        limit=100 * LEAST_COVERAGE,
    )


def approval(rows: Sequence[Row]) -> str:
    """Chance that a clean model is approved, against the number of items."""
    series = []
    for family in _families(rows):
        points = sorted(
            (row.cell.items, 100 * row.rate)
            for row in rows
            if row.cell.family == family and row.cell.leaked_share == 0 and row.measure is Measure.APPROVED
        )
        series.append(Series(MODELS[family].title, tuple(points)))
    items = sorted({row.cell.items for row in rows})
    return line_chart(
        f"Clean models that the gate approves: {DEFAULT_VARIANTS} variants, the suite's default limits",
        "dashed: 90 %",
        series,
        Scale("items", tuple(map(float, items)), log=True),
        Scale("approved, %", _PERCENT_TICKS),
        limit=90.0,
    )


def sequential(rows: Sequence[Row]) -> str:
    """Items that the default sequential design asks, against the leaked share, at the default size."""
    series = []
    for family in [family for family in _families(rows) if family in FAMILIES]:
        points = sorted(
            (100 * row.cell.leaked_share, 100 * row.rate)
            for row in rows
            if row.cell == _default(family, row.cell.leaked_share)
            and row.measure is Measure.ITEMS_ASKED
            and row.cell.leaked_share in (*SEQUENTIAL_SHARES, *SEQUENTIAL_CURVE)
        )
        series.append(Series(MODELS[family].title, tuple(points)))
    return line_chart(
        f"Items that a sequential audit asks on average, of {DEFAULT_ITEMS}: the default design",
        "dashed: the 60 % that are promised of plain models",
        series,
        Scale("leaked items, %", (0.0, 5.0, 10.0, 15.0, 20.0)),
        Scale("items asked, %", _PERCENT_TICKS),
        limit=100 * MOST_ITEMS_ASKED,
    )


def _default(family: str, share: float) -> Cell:
    return Cell("sequential", family, DEFAULT_ITEMS, DEFAULT_VARIANTS, leaked_share=share, design=DEFAULT)


def _families(rows: Sequence[Row]) -> list[str]:
    present = {row.cell.family for row in rows}
    return [family for family in MODELS if family in present]


_PLOTS: Final = (
    ("size", "size.svg", size),
    ("power", "power.svg", power),
    ("coverage", "coverage.svg", coverage),
    ("gate", "approval.svg", approval),
    ("sequential", "sequential.svg", sequential),
)
