"""Running cells, several at a time. The figures do not depend on how many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial

from calibration.cells import Cell, Row
from calibration.studies import STUDIES

#: Cells done, cells in all, the cell just done.
Progress = Callable[[int, int, Cell], None]


def run(
    cells: Sequence[Cell], *, replications: int, seed: int, jobs: int = 1, progress: Progress = lambda *_: None
) -> list[Row]:
    """Simulate the cells; rows in the order of the cells, whichever was done first."""
    evaluate = partial(run_cell, replications=replications, seed=seed)
    found: dict[int, list[Row]] = {}
    if jobs == 1:
        for place, cell in enumerate(cells):
            found[place] = evaluate(cell)
            progress(len(found), len(cells), cell)
    else:
        # The largest first, so that no worker is left with one when the others are done.
        order = sorted(range(len(cells)), key=lambda place: -cells[place].items)
        with ProcessPoolExecutor(jobs) as pool:
            waiting = {pool.submit(evaluate, cells[place]): place for place in order}
            for done in as_completed(waiting):
                found[waiting[done]] = done.result()
                progress(len(found), len(cells), cells[waiting[done]])
    return [row for place in range(len(cells)) for row in found[place]]


def run_cell(cell: Cell, *, replications: int, seed: int) -> list[Row]:
    """Simulate one cell."""
    return STUDIES[cell.study].evaluate(cell, cell.rng(seed), replications).rows(cell, seed)
