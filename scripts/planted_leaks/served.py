"""Audits of the study's models behind a server, from `proctor audit run` to the decision, and the file of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from planted_leaks.cells import Cell
from planted_leaks.grades import ABSENT, Grades

CANONICAL: Final = "canonical"
REWORDED: Final = "reworded"


class Interval(NamedTuple):
    """An estimate and its interval."""

    value: float | None
    low: float | None
    high: float | None


class Compared(NamedTuple):
    """Grades of an arm, held against those that the process gave which trained the model."""

    answers: int
    """That both have graded."""
    differing: int
    """Of these, with another grade."""
    right: int
    """Of the differing ones, those that the served model got right."""


class Served(NamedTuple):
    """What an audit of a served cell said."""

    cell: Cell
    weights: str
    """Digest of the safetensors that were served."""
    server: str
    """Name, version, and the numbers that it computes with."""
    canonical: float
    """Accuracy of the audit's own report, as a fraction."""
    reworded: float
    inflation: Interval
    """D, in points."""
    score: float | None
    p_value: float
    decision: str
    reasons: tuple[str, ...]
    """Their codes."""
    arms: Mapping[str, Compared]
    """`CANONICAL` and `REWORDED`."""


def served(cell: Cell, result: Mapping[str, Any], *, weights: str, server: str, arms: Mapping[str, Compared]) -> Served:
    """From what `proctor audit run --format json` printed."""
    return Served(
        cell=cell,
        weights=weights,
        server=server,
        canonical=float(result["accuracy_canonical"]),
        reworded=float(result["accuracy_perturbed"]),
        inflation=Interval(result["score_inflation_points"], *result["score_inflation_points_ci"]),
        score=result["contamination_score"],
        p_value=float(result["p_value"]),
        decision=str(result["decision"]),
        reasons=tuple(result["reason_codes"]),
        arms=arms,
    )


def compared(answered: Grades, stored: Grades) -> Mapping[str, Compared]:
    """The grades of a served model beside the stored ones, for each arm.

    Raises:
        ValueError: they are of other items or rewordings.
    """
    if len(answered.reworded) != len(stored.reworded):
        raise ValueError(f"{len(answered.reworded)} rewordings an item were asked, and {len(stored.reworded)} stored")
    return {
        CANONICAL: _compared([(answered.canonical, stored.canonical)]),
        REWORDED: _compared(zip(answered.reworded, stored.reworded, strict=True)),
    }


def _compared(arms: Iterable[tuple[str, str]]) -> Compared:
    answers = differing = right = 0
    for ours, theirs in arms:
        if len(ours) != len(theirs):
            raise ValueError(f"{len(ours)} items were asked, and {len(theirs)} are stored")
        for one, other in zip(ours, theirs, strict=True):
            if (one == ABSENT) != (other == ABSENT):
                raise ValueError("a rewording was asked of one, and not of the other")
            answers += one != ABSENT
            differing += one != other
            right += one != other and one == "1"
    return Compared(answers, differing, right)


def write_served(path: Path, found: Iterable[Served]) -> None:
    """A line a cell, in the cells' order."""
    lines = [json.dumps(_row(one), sort_keys=True) + "\n" for one in sorted(found, key=lambda one: one.cell)]
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text("".join(lines), encoding="utf-8")
    beside.replace(path)


def read_served(path: Path) -> dict[Cell, Served]:
    """What `write_served` wrote; nothing where there is no file."""
    if not path.exists():
        return {}
    found = map(_of_row, map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    return {one.cell: one for one in found}


def _row(one: Served) -> dict[str, Any]:
    row = one._asdict() | {"cell": one.cell._asdict(), "inflation": one.inflation._asdict()}
    return row | {"arms": {name: arm._asdict() for name, arm in one.arms.items()}}


def _of_row(row: dict[str, Any]) -> Served:
    return Served(**{
        **row,
        "cell": Cell(**row["cell"]),
        "inflation": Interval(**row["inflation"]),
        "reasons": tuple(row["reasons"]),
        "arms": {name: Compared(**arm) for name, arm in row["arms"].items()},
    })  # fmt: skip
