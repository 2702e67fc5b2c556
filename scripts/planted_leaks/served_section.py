"""The section of docs/study.md on audits that ran end to end, beside what follows from the stored grades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from planted_leaks.benchmarks import KINDS
from planted_leaks.cells import Cell
from planted_leaks.document import Situation
from planted_leaks.judging import Judged
from planted_leaks.served import CANONICAL, REWORDED, Interval, Served

_HEAD: Final = ("cell", "asked", "canonical", "reworded", "D", "score", "p", "decision", "grades that differ")
_NONE_YET: Final = "No cell was served yet."


def served_section(found: Mapping[Cell, Served], judged: Sequence[Judged]) -> str:
    """A table with two rows a cell, and what the differing grades come to; a sentence where nothing was served."""
    if not found:
        return _NONE_YET
    stored = {one.cell: one for one in judged}
    rows = [row for cell in _in_order(found) for row in _rows(found[cell], stored.get(cell))]
    table = "\n".join(["| " + " | ".join(row) + " |" for row in (_HEAD, ("---",) * len(_HEAD), *rows)])
    servers = "; ".join(sorted({one.server for one in found.values()}))
    return f"{table}\n\nServed by: {servers}. {_said(found, stored)}"


def _in_order(found: Mapping[Cell, Served]) -> Sequence[Cell]:
    return sorted(found, key=lambda cell: (list(KINDS).index(cell.kind), cell))


def _rows(one: Served, stored: Judged | None) -> Iterator[tuple[str, ...]]:
    cell = f"{KINDS[one.cell.kind].title}, {Situation(*one.cell[:4]).words}, seed {one.cell.seed}"
    differing = "; ".join(f"{arm} {count.differing} of {count.answers}" for arm, count in one.arms.items())
    yield (
        cell, "served", f"{100 * one.canonical:.1f}", f"{100 * one.reworded:.1f}", _interval(one.inflation),
        _score(one.score), f"{one.p_value:.2g}", one.decision, differing,
    )  # fmt: skip
    if stored is not None:
        found = stored.perturbation
        d = found.score_inflation
        yield (
            cell, "in training", _percent(stored.canonical.value), _percent(found.accuracy_perturbed.value),
            _interval(Interval(d.value, d.low, d.high)), _score(found.contamination_score.value),
            f"{found.p_value:.2g}", str(stored.decision.outcome), "",
        )  # fmt: skip


def _said(found: Mapping[Cell, Served], stored: Mapping[Cell, Judged]) -> str:
    """How many grades differ in all, which way, and whether a decision does."""
    arms = [one.arms[name] for one in found.values() for name in (CANONICAL, REWORDED)]
    answers, differing, right = (sum(column) for column in zip(*arms, strict=True))
    both = [(one, stored[cell]) for cell, one in found.items() if cell in stored]
    other = [one.cell.name for one, beside in both if one.decision != beside.decision.outcome]
    decisions = f"The decision is another in {len(other)} of {len(both)}" + (f": {', '.join(other)}." if other else ".")
    if not both:
        decisions = "The stored grades of these cells are not published yet, so that no row stands beside theirs."
    ways = f": {right} where the served model is right, {differing - right} where it is not" if differing else ""
    missing = [kind.title for name, kind in KINDS.items() if name not in {cell.kind for cell in found}]
    absent = f" Not served so far: {'; '.join(missing)}." if missing else ""
    return f"{differing:,} of {answers:,} grades differ{ways}. {decisions}{absent}"


def _interval(estimate: Interval) -> str:
    value, low, high = ("—" if one is None else f"{one:.1f}" for one in estimate)
    return f"{value} [{low}, {high}]"


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{100 * value:.1f}"


def _score(value: float | None) -> str:
    return "—" if value is None else f"{value:.3f}"
