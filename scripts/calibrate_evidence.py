#!/usr/bin/env python3
"""Simulate clean and contaminated models, and publish what every test and interval of Proctor does on them.

Writes one CSV file a study and the plots to --out, and fills the tables of the documents beside it, calibration.md and
sequential.md.
The figures of a cell follow from its name and the seed: other cells, the order and the number of jobs change nothing.

  scripts/calibrate_evidence.py --jobs 2                    # everything, about twenty minutes
  scripts/calibrate_evidence.py --only size,power           # the other studies' tables stay as they are
  scripts/calibrate_evidence.py --quick                     # a look in under a minute; writes nothing without --out
  scripts/calibrate_evidence.py --redraw                    # tables and plots again from the CSV files

Plots need the extra `plots`; without it all else is written.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from calibration import document
from calibration.cells import Cell, Row
from calibration.judging import Verdict, judge
from calibration.markdown import percent
from calibration.plots import plots
from calibration.running import run
from calibration.studies import CLAIMS, STUDIES, in_quick
from calibration.table import as_csv, read
from proctor.domain.errors import BadInputError

DEFAULT_OUT = Path(__file__).resolve().parents[1] / "docs" / "calibration"
REPLICATIONS, QUICK_REPLICATIONS = 2_000, 200


class Progress:
    """Cells done, on stderr: one line rewritten in place on a terminal, a line every tenth of the way elsewhere."""

    def __init__(self, study: str) -> None:
        self._study, self._live, self._started_s = study, sys.stderr.isatty(), time.monotonic()

    def __call__(self, done: int, cells: int, cell: Cell) -> None:
        """Show one cell more."""
        if not self._live and done != cells and done * 10 // cells == (done - 1) * 10 // cells:
            return
        gone_s = time.monotonic() - self._started_s
        left_s = gone_s / done * (cells - done)
        line = f"{self._study:12}  {done:4}/{cells} cells  {gone_s:5.0f} s gone  about {left_s:5.0f} s left"
        end = "\r" if self._live and done < cells else "\n"
        print(line, end=end, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, judge, write; 1 where a claim fails, 2 for bad input or missing plots, 130 when interrupted."""
    options = _parse(arguments)
    verdicts: list[Verdict] = []
    try:
        tables = read(options.out) if options.out is not None and options.out.is_dir() else {}
        if options.redraw:
            verdicts = _publish(options.out, tables)
        for name in [] if options.redraw else options.only:
            tables[name] = _simulate(name, options)
            # After every study, so that a long run that is interrupted leaves what it has.
            verdicts = _publish(options.out, tables)
    except BadInputError as error:
        print(f"calibrate_evidence: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ncalibrate_evidence: interrupted", file=sys.stderr)
        return 130
    _print(verdicts, output=options.format)
    drawn = options.out is None or _draw(options.out, tables)
    if not all(verdict.holds for verdict in verdicts):
        return 1
    return 0 if drawn else 2


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, metavar="N", help=f"simulated audits a cell [{REPLICATIONS:,}]")
    parser.add_argument("--seed", type=int, default=0, help="[0]")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes [2]")
    parser.add_argument("--only", metavar="A,B", help=f"studies out of {', '.join(STUDIES)}")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="[docs/calibration; nothing with --quick]")
    parser.add_argument("--quick", action="store_true", help=f"few cells, {QUICK_REPLICATIONS} audits in each")
    parser.add_argument("--redraw", action="store_true", help="simulate nothing; write tables and plots anew")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args(arguments)
    options.only = list(STUDIES) if options.only is None else options.only.split(",")
    if unknown := [name for name in options.only if name not in STUDIES]:
        parser.error(f"--only {unknown[0]}: there is no such study; choose from {', '.join(STUDIES)}")
    if options.replications is None:
        options.replications = QUICK_REPLICATIONS if options.quick else REPLICATIONS
    if options.replications < 1 or options.jobs < 1 or options.seed < 0:
        parser.error("--replications and --jobs need a number from 1 on, --seed one from 0 on")
    if options.out is None and not options.quick:
        options.out = DEFAULT_OUT
    if options.quick and options.redraw:
        parser.error("--quick simulates and --redraw does not; choose one")
    if options.quick:
        options.only = [name for name in options.only if not STUDIES[name].searches]
        if not options.only:
            parser.error("--quick leaves out the studies that have to search for their cells; run them without it")
    return options


def _simulate(name: str, options: argparse.Namespace) -> list[Row]:
    cells = [cell for cell in STUDIES[name].cells() if not options.quick or in_quick(cell)]
    return run(cells, replications=options.replications, seed=options.seed, jobs=options.jobs, progress=Progress(name))


def _publish(out: Path | None, tables: Mapping[str, Sequence[Row]]) -> list[Verdict]:
    """Judge all tables; write them into the folder, and fill the documents beside it, where there are any.

    Raises:
        BadInputError: where there is no table, and where a document lacks a marker.
    """
    rows = [row for study in STUDIES for row in tables.get(study, ())]
    if not rows:
        raise BadInputError(f"{out}: no table to redraw; run without --redraw first")
    judged, verdicts = judge(rows, CLAIMS)
    if out is None:
        return verdicts
    out.mkdir(parents=True, exist_ok=True)
    for study, of_study in tables.items():
        (out / f"{study}.csv").write_text(as_csv(of_study, judged), encoding="utf-8")
    pages = {
        out.with_name(f"{out.name}.md"): document.sections(tables, verdicts),
        out.with_name("sequential.md"): document.sequential_sections(tables),
    }
    for page, sections in pages.items():
        if page.is_file():
            page.write_text(document.filled(page.read_text(encoding="utf-8"), sections), encoding="utf-8")
    return verdicts


def _draw(out: Path, tables: Mapping[str, Sequence[Row]]) -> bool:
    """Write the plots into the folder, or say what is missing for it."""
    try:
        drawn = plots(tables)
    except BadInputError as error:
        print(f"calibrate_evidence: {error}", file=sys.stderr)
        return False
    for name, picture in drawn.items():
        (out / name).write_text(picture, encoding="utf-8")
    return True


def _print(verdicts: Sequence[Verdict], *, output: str) -> None:
    if output == "json":
        print(json.dumps({"claims": [_as_json(verdict) for verdict in verdicts]}, indent=2, ensure_ascii=False))
        return
    for verdict in verdicts:
        claim, worst = verdict.claim, verdict.worst
        where = f"{worst.measure}; {document.cell_words(worst)}"
        bound = f"{'≥' if claim.at_least else '≤'} {100 * claim.bound:g} %"
        print(f"{'holds' if verdict.holds else 'FAILS':6} {claim.name}")
        print(f"       worst of {verdict.rows:,}: {percent(worst.rate)} % ({where})")
        print(f"       bound {bound}, smallest Holm p {verdict.smallest_p_holm:.2g}")
    failed = [verdict for verdict in verdicts if not verdict.holds]
    print(f"\n{len(verdicts) - len(failed)} of {len(verdicts)} claims hold.")


def _as_json(verdict: Verdict) -> dict[str, object]:
    claim, worst = verdict.claim, verdict.worst
    return {
        "name": claim.name,
        "value": worst.rate,
        "at_least" if claim.at_least else "at_most": claim.bound,
        "holds": verdict.holds,
        "smallest_p_holm": verdict.smallest_p_holm,
        "cells": verdict.rows,
        "worst": {
            **worst.cell._asdict(),
            "measure": worst.measure,
            "hits": worst.hits,
            "trials": worst.trials,
        },
    }


if __name__ == "__main__":
    sys.exit(main())
