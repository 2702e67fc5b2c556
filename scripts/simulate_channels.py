#!/usr/bin/env python3
"""Simulate audits of clean and contaminated models, and count what the channels say of them.

Two studies give the figures of two paragraphs of docs/evidence.md. `control`: what the gate blocks with a clean model
as the control, and without. `noise`: what the noise channel says of workers that noisy routers do not help, and of
workers that they remind. Limits are the suite's defaults. A cell's figures follow from its name and the seed: other
cells and studies change nothing.

  scripts/simulate_channels.py                              # both, as published, in about two minutes
  scripts/simulate_channels.py --study control              # the gate alone
  scripts/simulate_channels.py --audits 20 --seed 7         # a look in seconds
  scripts/simulate_channels.py --format json | jq .rows     # counts, and shares with 95 % intervals (Wilson)
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from channel_studies import control, noise
from channel_studies.cells import Cell, Row, simulate

AUDITS = 1_000


class Study(NamedTuple):
    """A family of situations."""

    cells: Callable[[], Iterator[Cell]]
    conclusion: Callable[[Sequence[Row]], str]


STUDIES = {"control": Study(control.cells, control.conclusion), "noise": Study(noise.cells, noise.conclusion)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate and print; 2 for bad input, 130 when interrupted."""
    options = _parse(arguments)
    found: dict[str, list[Row]] = {}
    try:
        for name in STUDIES if options.study == "all" else [options.study]:
            found[name] = []
            for cell in STUDIES[name].cells():
                print(cell.name, file=sys.stderr, flush=True)
                found[name] += simulate(cell, audits=options.audits, seed=options.seed)
    except KeyboardInterrupt:
        print("simulate_channels: interrupted", file=sys.stderr)
        return 130
    conclusions = {name: STUDIES[name].conclusion(rows) for name, rows in found.items()}
    if options.format == "json":
        every = [_as_json(row) for rows in found.values() for row in rows]
        print(json.dumps({"seed": options.seed, "conclusions": conclusions, "rows": every}, indent=2))
    else:
        print("\n\n".join(f"{_as_table(rows)}\n\n{conclusions[name]}" for name, rows in found.items()))
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", choices=(*STUDIES, "all"), default="all", help="[all]")
    parser.add_argument("--audits", type=int, default=AUDITS, metavar="N", help=f"simulated audits a cell [{AUDITS:,}]")
    parser.add_argument("--seed", type=int, default=0, help="[0]")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    if options.audits < 1:
        parser.error(f"--audits {options.audits}: give a number from 1 on")
    if options.seed < 0:
        parser.error(f"--seed {options.seed}: give a number from 0 on")
    return options


def _as_json(row: Row) -> dict[str, object]:
    share, cell = row.share, row.cell
    return {
        "study": cell.study,
        "model": cell.model,
        "beside": cell.beside,
        "items": cell.items,
        "clean": cell.clean,
        "outcome": row.outcome,
        "hits": row.hits,
        "audits": row.audits,
        "share": share.value,
        "low": share.low,
        "high": share.high,
    }


def _as_table(rows: Sequence[Row]) -> str:
    """One study's rows, a line a cell."""
    outcomes = rows[0].cell.outcomes
    head = (f"{rows[0].cell.study}: model", "beside", "items", "audits", *outcomes)
    lines = [head, ("---",) * len(head)]
    for start in range(0, len(rows), len(outcomes)):
        of_cell = rows[start : start + len(outcomes)]
        cell, audits = of_cell[0].cell, of_cell[0].audits
        shares = [f"{100 * row.hits / audits:.1f} %" for row in of_cell]
        lines.append((cell.model, cell.beside, f"{cell.items}", f"{audits:,}", *shares))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
