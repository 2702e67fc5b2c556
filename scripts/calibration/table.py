"""The published table: one CSV file a study, one line a cell and measure.

Only the cell, the measure, the counts and the seed are read back; rates and judgements follow from them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from calibration.cells import Cell, Measure, Row
from calibration.judging import Judgement
from proctor.domain.errors import BadInputError

_COUNTED = ("measure", "hits", "trials", "rate", "seed", "bound", "p", "p_holm", "holds")
#: Fields that stand in the tables of those studies alone that set them, so that a field more leaves other tables alone.
_LATER = ("clusters", "layout", "shared", "design")
_TYPES: dict[str, type[Any]] = get_type_hints(Cell)


def as_csv(rows: Sequence[Row], judged: Mapping[Row, Judgement]) -> str:
    """The rows in the order given."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    fields = _fields(rows)
    writer.writerow((*fields, *_COUNTED))
    for row in rows:
        counted = (row.measure.value, row.hits, row.trials, f"{row.rate:.5f}", row.seed)
        cell = (getattr(row.cell, field) for field in fields)
        writer.writerow((*cell, *counted, *_judgement(judged.get(row))))
    return buffer.getvalue()


def _fields(rows: Sequence[Row]) -> tuple[str, ...]:
    used = {field for field in _LATER for row in rows if getattr(row.cell, field) != Cell._field_defaults[field]}
    return tuple(field for field in Cell._fields if field not in _LATER or field in used)


def _judgement(judgement: Judgement | None) -> tuple[str, ...]:
    if judgement is None:
        return ("",) * 4
    claim = judgement.claim
    bound = f"{'>=' if claim.at_least else '<='} {claim.bound:g}"
    return bound, f"{judgement.p_value:.4g}", f"{judgement.p_holm:.4g}", "yes" if judgement.holds else "no"


def read(folder: Path) -> dict[str, list[Row]]:
    """The rows of every study in a folder, by study.

    Raises:
        BadInputError: where a file is not of this kind.
    """
    found: dict[str, list[Row]] = {}
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            lines = csv.DictReader(stream)
            columns = tuple(lines.fieldnames or ())
            if tuple(column for column in columns if column not in _LATER) != (*_fields(()), *_COUNTED):
                raise BadInputError(f"{path}: not a table of this calibration; make it anew")
            found[path.stem] = [_row(line) for line in lines]
    return found


def _row(line: Mapping[str, str]) -> Row:
    cell = Cell(**{field: _TYPES[field](line[field]) for field in Cell._fields if field in line})
    return Row(cell, Measure(line["measure"]), int(line["hits"]), int(line["trials"]), int(line["seed"]))
