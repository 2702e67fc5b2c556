"""The documents' tables of designs that stop when the evidence decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from calibration.cells import Cell, Measure, Row
from calibration.designs import BETTING, DEFAULT, DESIGNS, FIXED, OPTSTOP
from calibration.grids import DEFAULT_ITEMS, DEFAULT_VARIANTS, FEWER_ITEMS, SEQUENTIAL_SHARES, SEQUENTIAL_SIZES, plain
from calibration.layouts import by_layout
from calibration.markdown import families, percent, rows_of, span, table, with_interval
from proctor.evidence.planning.families import FAMILIES

Tables = Mapping[str, Sequence[Row]]
#: D and the Contamination Score, or what of them goes beyond control items'.
_AT_STOP: Final = (Measure.INFLATION, Measure.SCORE, Measure.EXCESS, Measure.EXCESS_SCORE)
_AT_LOOKS: Final = (Measure.INFLATION_AT_LOOKS, Measure.SCORE_AT_LOOKS)
#: Peers look after every item.
_PEERS: Final = (*BETTING, *OPTSTOP)


def decisions(tables: Tables) -> str:
    """What the default design asks and decides at the default size, beside the whole sample on the same answers."""
    rows = {(row.cell, row.measure): row for row in tables["sequential"]}
    lines = []
    for family in families(tables["sequential"]):
        cells = [_cell(family, share) for share in SEQUENTIAL_SHARES]
        lines.append((family, *(_decided(rows, cell) for cell in cells)))
    shares = (f"{100 * share:g} % leaked" if share else "clean" for share in SEQUENTIAL_SHARES)
    return table(("family", *shares), lines)


def _cell(family: str, share: float, items: int = DEFAULT_ITEMS, variants: int = DEFAULT_VARIANTS) -> Cell:
    return Cell("sequential", family, items, variants, leaked_share=share, design=DEFAULT)


def _decided(rows: Mapping[tuple[Cell, Measure], Row], cell: Cell) -> str:
    asked, approved, blocked, whole_approved, whole_blocked = (
        percent(rows[cell, measure].rate)
        for measure in (
            Measure.ITEMS_ASKED,
            Measure.APPROVED,
            Measure.BLOCKED,
            Measure.WHOLE_APPROVED,
            Measure.WHOLE_BLOCKED,
        )
    )
    return f"**{asked}**: {approved}/{blocked} ({whole_approved}/{whole_blocked})"


def items(tables: Tables) -> str:
    """Share of the items that the default design asks, by family, leaked share and size."""
    rows = {row.cell: row for row in rows_of(tables["sequential"], Measure.ITEMS_ASKED)}
    lines = [
        (
            family,
            *(
                " / ".join(percent(rows[_cell(family, share, *size)].rate) for share in SEQUENTIAL_SHARES)
                for size in SEQUENTIAL_SIZES
            ),
        )
        for family in families(tables["sequential"])
    ]
    return table(("family", *(f"{items:,} items, {variants} variants" for items, variants in SEQUENTIAL_SIZES)), lines)


def promises(tables: Tables) -> str:
    """The worst cell of every promise of the default design, by how the items come."""
    rows = [row for row in tables["sequential"] if row.cell.design == DEFAULT]
    kinds = {
        "independent items": [row for row in rows if not row.cell.clusters and not row.cell.control_items],
        "items in clusters": [row for row in rows if row.cell.clusters],
        "beside control items": [row for row in rows if row.cell.control_items],
    }
    lines = [(kind, f"{len({row.cell for row in own}):,}", *_worst(own)) for kind, own in kinds.items()]
    return table(("", "cells", *_PROMISES), lines)


_PROMISES: Final = (
    "clean models rejected at a look until the stop",
    "coverage at the stop",
    "coverage at all looks together",
    "approved with D past the limit",
)


def _worst(rows: Sequence[Row]) -> list[str]:
    """Worst size, coverage at the stop and at all looks, and false approvals; empty where nothing was counted."""
    clean = [row for row in rows_of(rows, Measure.ANY_LOOK_P) if row.cell.leaked_share == 0]
    at_stop, at_looks = ([row for row in rows if row.measure in measures] for measures in (_AT_STOP, _AT_LOOKS))
    false = rows_of(rows, Measure.FALSELY_APPROVED)
    found = (_extreme(clean, most=True), _extreme(at_stop), _extreme(at_looks), _extreme(false, most=True))
    return ["" if row is None else with_interval(row) for row in found]


def _extreme(rows: Sequence[Row], *, most: bool = False) -> Row | None:
    return (max if most else min)(rows, key=lambda row: row.rate, default=None)


def designs(tables: Tables) -> str:
    """Every design at the default size: what it asks and decides on average over families, and its worst cells."""
    rows = [row for row in tables["sequential"] if not row.cell.clusters and not row.cell.control_items]
    names = [(name, DEFAULT_ITEMS) for name in (*DESIGNS, *_PEERS) if name != FIXED]
    lines = []
    for name, n in [*((FIXED, fewer) for fewer in FEWER_ITEMS), *names]:
        own = [
            row for row in rows if (row.cell.design, row.cell.items, row.cell.variants) == (name, n, DEFAULT_VARIANTS)
        ]
        most = (
            ""
            if name == FIXED
            else percent(max(row.rate for row in rows_of(own, Measure.ITEMS_ASKED) if plain(row.cell)))
        )
        lines.append((f"fixed, {n} items" if name == FIXED else name, *_on_average(own), most, *_worst(own)))
        if name == DEFAULT:
            lines.insert(len(FEWER_ITEMS), (f"fixed, {n} items", *_on_average(own, whole=True), *[""] * 5))
    headings = ("asked, clean", "asked, 10 % leaked", "asked, 20 % leaked", "approved, clean", "blocked, 20 % leaked")
    return table(("design", *headings, "asked, worst plain cell", *_PROMISES), lines)


def _on_average(rows: Sequence[Row], *, whole: bool = False) -> list[str]:
    asked = [_mean(rows, Measure.ITEMS_ASKED, share) * rows[0].cell.items / DEFAULT_ITEMS for share in (0.0, 0.1, 0.2)]
    approved, blocked = Measure.APPROVED, Measure.BLOCKED
    if whole:
        asked, approved, blocked = [1.0] * 3, Measure.WHOLE_APPROVED, Measure.WHOLE_BLOCKED
    return [percent(rate) for rate in (*asked, _mean(rows, approved, 0.0), _mean(rows, blocked, 0.2))]


def _mean(rows: Iterable[Row], measure: Measure, share: float) -> float:
    rates = [
        row.rate
        for row in rows
        if row.measure is measure and row.cell.leaked_share == share and row.cell.family in FAMILIES
    ]
    return sum(rates) / len(rates)


def clusters(tables: Tables) -> str:
    """What the default design asks and decides where items come in clusters, by how many and how large they are."""
    rows = [row for row in tables["sequential"] if row.cell.clusters]
    lines = []
    for named, own in by_layout(rows):
        clean = [row for row in own if row.cell.leaked_share == 0]
        leaked = [row for row in own if row.cell.leaked_share]
        lines.append(
            (
                *named,
                span(clean, Measure.ITEMS_ASKED),
                f"{span(clean, Measure.APPROVED)} ({span(clean, Measure.WHOLE_APPROVED)})",
                span(leaked, Measure.ITEMS_ASKED),
                *_worst(own),
            )
        )
    headings = ("clusters", "items in each", "asked, clean", "approved, clean (whole sample)", "asked, leaked")
    return table((*headings, *_PROMISES), lines)
