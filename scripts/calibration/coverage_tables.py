"""The document's tables of intervals, and of the estimators beside the channel's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from calibration.cells import Measure, Row
from calibration.grids import DEFAULT_ITEMS
from calibration.layouts import by_layout
from calibration.markdown import families, largest, percent, rows_of, span, table

Tables = Mapping[str, Sequence[Row]]
#: The channel's intervals, of which coverage is claimed.
CLAIMED: Final = (
    Measure.INFLATION,
    Measure.SCORE,
    Measure.LEAKED_SHARE,
    Measure.CANONICAL,
    Measure.REWORDED,
)
_PLAIN: Final = (Measure.PLAIN_INFLATION, Measure.BOOTSTRAP_INFLATION, Measure.PLAIN_SCORE)


def coverage(tables: Tables) -> str:
    """Smallest and largest coverage of each interval, by items."""
    rows = tables["coverage"]
    items = sorted({row.cell.items for row in rows})
    lines = [(measure.value, *_coverages(rows_of(rows, measure), items)) for measure in (*CLAIMED, *_PLAIN)]
    return table(("interval", *(f"{n:,} items" for n in items)), lines)


def _coverages(rows: Sequence[Row], items: Sequence[int]) -> list[str]:
    """Smallest and largest coverage at each number of items."""
    found = []
    for n in items:
        rates = [row.rate for row in rows if row.cell.items == n]
        found.append(f"{percent(min(rates))}–{percent(max(rates))}" if rates else "")
    return found


def comparison(tables: Tables) -> str:
    """Coverage and size of `proctor compare`, by items."""
    rows = tables["comparison"]
    items = sorted({row.cell.items for row in rows})
    lines = [
        (measure.value, *_coverages(rows_of(rows, measure), items))
        for measure in (Measure.PAIRED_DIFFERENCE, Measure.PAIRED_BOOTSTRAP)
    ]
    clean = [row for row in rows_of(rows, Measure.MCNEMAR_P) if row.cell.leaked_share == 0]
    lines.append((f"two equal models: {Measure.MCNEMAR_P.value}", *_coverages(clean, items)))
    return table(("", *(f"{n:,} items" for n in items)), lines)


def control(tables: Tables) -> str:
    """Clean models rejected where a rewording costs two points, by family."""
    rows = tables["control"]
    items = sorted({row.cell.items for row in rows})
    lines = []
    for family in families(rows):
        own = [row for row in rows if row.cell.family == family]
        clean = [row for row in own if row.cell.leaked_share == 0]
        uncontrolled = [span(clean, Measure.DEFAULT_P, _at(n)) for n in items]
        controlled = [percent(largest([row for row in clean if _at(n)(row)], Measure.CONTROLLED_P)) for n in items]
        leaked = [row for row in own if row.cell.leaked_share and row.cell.items == row.cell.control_items]
        power = span(leaked, Measure.CONTROLLED_P, _at(DEFAULT_ITEMS))
        lines.append((family, *uncontrolled, *controlled, power))
    return table(
        (
            "family",
            *(f"D alone, {n:,} items" for n in items),
            *(f"difference-in-differences, worst, {n:,} items" for n in items),
            f"found with it at 10 % leaked, {DEFAULT_ITEMS} items and {DEFAULT_ITEMS} control items",
        ),
        lines,
    )


def _at(items: int) -> Callable[[Row], bool]:
    return lambda row: row.cell.items == items


def replicates(tables: Tables) -> str:
    """Size, power and coverage by answers to each wording."""
    rows = tables["replicates"]
    lines = []
    for times in sorted({row.cell.replicates for row in rows}):
        own = [row for row in rows if row.cell.replicates == times]
        clean = [row for row in own if row.cell.leaked_share == 0]
        leaked = [row for row in own if row.cell.leaked_share == 0.10 and row.cell.items == DEFAULT_ITEMS]
        lines.append(
            (
                f"{times}",
                percent(largest(clean, Measure.DEFAULT_P)),
                span(leaked, Measure.DEFAULT_P),
                span(own, Measure.INFLATION),
                span(own, Measure.SCORE),
            )
        )
    headings = (
        "answers to each wording",
        "clean models rejected, worst cell",
        f"10 % leaked found, {DEFAULT_ITEMS} items",
        "coverage of D",
        "coverage of the Contamination Score",
    )
    return table(headings, lines)


def clusters(tables: Tables) -> str:
    """Coverage, size and power where items come in clusters, by how many and how large they are."""
    rows = tables["clusters"]
    intervals = (Measure.INFLATION, Measure.SCORE, Measure.CANONICAL, Measure.REWORDED)
    lines = []
    for named, own in by_layout(rows):
        clean = [row for row in own if row.cell.leaked_share == 0]
        leaked = [row for row in own if row.cell.leaked_share]
        lines.append(
            (
                *named,
                f"{own[0].cell.items:,}",
                percent(largest(clean, Measure.DEFAULT_P)),
                percent(largest(clean, Measure.UNCLUSTERED_P)),
                *(span(own, measure) for measure in intervals),
                span(own, Measure.UNCLUSTERED_INFLATION),
                span(leaked, Measure.DEFAULT_P),
            )
        )
    headings = (
        "clusters",
        "items in each",
        "items",
        "default p rejects clean models, worst",
        "taken as independent, worst",
        *(measure.value for measure in intervals),
        Measure.UNCLUSTERED_INFLATION.value,
        "10 % leaked found",
    )
    return table(headings, lines)


def fresh(tables: Tables) -> str:
    """Size, power and coverage of the fresh channel."""
    rows = tables["fresh"]
    lines = []
    for items, models in sorted({(row.cell.items, row.cell.reference_models) for row in rows}):
        own = [row for row in rows if (row.cell.items, row.cell.reference_models) == (items, models)]
        clean = [row for row in own if row.cell.leaked_share == 0]
        leaked = [row for row in own if row.cell.leaked_share == 0.10]
        tested = (span(clean, Measure.FRESH_P), span(leaked, Measure.FRESH_P))
        lines.append((f"{items:,}", f"{models}", *tested, span(own, Measure.FRESH_EXCESS)))
    headings = ("items in each set", "reference models", "clean models rejected", "10 % leaked found", "coverage")
    return table(headings, lines)


def conformal(tables: Tables) -> str:
    """Coverage of the next batch's accuracy."""
    rows = tables["conformal"]
    items = sorted({row.cell.items for row in rows})
    lines = [(f"{n:,}", span([row for row in rows if row.cell.items == n], Measure.FUTURE_ACCURACY)) for n in items]
    return table(("graded items", "next batch held by the interval"), lines)
