"""The graded answers of a cell, and the files that keep them.

An arm is a text of one sign an item, in the order of the benchmark's items: 1 right, 0 wrong, - unreadable, and a space
where the item has no such rewording.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from planted_leaks.cells import Cell
from proctor.domain.trial import Outcome

_SIGNS: Final = {Outcome.CORRECT: "1", Outcome.INCORRECT: "0", Outcome.INVALID: "-"}
_OUTCOMES: Final = {sign: outcome for outcome, sign in _SIGNS.items()}
ABSENT: Final = " "


class Grades(NamedTuple):
    """What a model answered, arm by arm."""

    leaked: str
    """1 for an item that leaks in the runs of this seed; of the control too, where none does."""
    canonical: str
    reworded: tuple[str, ...]
    fresh: str
    routers: Mapping[str, str] = MappingProxyType({})
    """Arms of the router–worker protocol, where they were asked."""


def sign(outcome: Outcome) -> str:
    """How a grade is written."""
    return _SIGNS[outcome]


def outcome(written: str) -> Outcome | None:
    """The grade that was written; None where nothing was asked."""
    return None if written == ABSENT else _OUTCOMES[written]


class GradeStore:
    """Grades by cell, a file a cell in a folder, so that processes can work side by side."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, cell: Cell) -> bool:
        return self._path(cell).exists()

    def add(self, cell: Cell, grades: Grades) -> None:
        """Keep the grades of a cell."""
        path = self._path(cell)
        beside = path.with_suffix(".part")
        beside.write_text(_line(cell, grades), encoding="utf-8")
        beside.replace(path)

    def all(self) -> dict[Cell, Grades]:
        """All that is kept."""
        return dict(_read(path.read_text(encoding="utf-8") for path in self._folder.glob("*.json")))

    def take_in(self, found: Mapping[Cell, Grades]) -> None:
        """Keep what another store had, and this one has not."""
        for cell, grades in found.items():
            if cell not in self:
                self.add(cell, grades)

    def _path(self, cell: Cell) -> Path:
        return self._folder / f"{cell.name}.json"


def write_packed(path: Path, found: Mapping[Cell, Grades]) -> None:
    """Write all grades into one file, whose bytes follow from them."""
    text = "".join(_line(cell, grades) for cell, grades in sorted(found.items()))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def read_packed(path: Path) -> dict[Cell, Grades]:
    """Read what `write_packed` wrote; nothing where there is no file."""
    if not path.exists():
        return {}
    return dict(_read(gzip.decompress(path.read_bytes()).decode().splitlines()))


def _line(cell: Cell, grades: Grades) -> str:
    written: dict[str, Any] = {**cell._asdict(), **grades._asdict(), "routers": dict(grades.routers)}
    return json.dumps(written, sort_keys=True) + "\n"


def _read(lines: Iterable[str]) -> Iterator[tuple[Cell, Grades]]:
    for line in lines:
        row = json.loads(line)
        cell = Cell(*(row[name] for name in Cell._fields))
        row["reworded"] = tuple(row["reworded"])
        yield cell, Grades(*(row[name] for name in Grades._fields))
