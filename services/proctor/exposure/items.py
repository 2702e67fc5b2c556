"""Items as they are looked for: their parts apart, from a benchmark's file or from a suite's items."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

from proctor.domain.errors import BadInputError
from proctor.formats.faults import Faults, TooManyFaults, shown
from proctor.formats.rows import position_unit, read_rows


class Part(StrEnum):
    """A part of an item, which is looked for by itself."""

    QUESTION = "question"
    CHOICES = "choices"
    ANSWER = "answer"
    PASSAGE = "passage"


#: Where each part stands in files of the field, the first that a file has.
COLUMNS: Final[Mapping[Part, tuple[str, ...]]] = {
    Part.QUESTION: ("question", "prompt", "problem", "goal", "text", "input"),
    Part.CHOICES: ("choices", "options", "endings"),
    Part.ANSWER: ("answer", "target", "solution", "canonical_solution", "code"),
    Part.PASSAGE: ("passage", "context", "article", "support"),
}
_TEMPLATE_COLUMN: Final = "prompt_template"
_ID_COLUMNS: Final = ("item_id", "id", "task_id", "index")
_KINDS: Final = (str, int, float)


class ScannedItem(NamedTuple):
    """One item, with the texts of the parts that it has."""

    item_id: str
    parts: Mapping[Part, str]
    template: str | None = None
    """The name of the template by which it was asked, where its row says so."""


def read_items(path: Path) -> list[ScannedItem]:
    """The items of a file, in its order, one for each of its rows.

    Columns are found by their usual names (`COLUMNS`). A row without an identifier has its number in the file, from 0.

    Raises:
        BadInputError: when the file is missing, empty, or has rows that are no items, each with its line and value.
    """
    faults = Faults(str(path), unit=position_unit(path))
    items: list[ScannedItem] = []
    with suppress(TooManyFaults):
        for ordinal, row in enumerate(read_rows(path, faults)):
            question = _first(COLUMNS[Part.QUESTION], row.values)
            if question is None or not isinstance(row.values[question], str) or not row.values[question].strip():
                faults.add(
                    row.position,
                    f"no question: one of the columns {', '.join(COLUMNS[Part.QUESTION])} must hold text; the row has "
                    f"{', '.join(map(shown, list(row.values)[:8])) or 'no columns'}",
                )
                continue
            template = row.values.get(_TEMPLATE_COLUMN)
            items.append(
                ScannedItem(
                    _identifier(row.values, ordinal),
                    _parts(row.values, question),
                    template if isinstance(template, str) else None,
                )
            )
    if faults:
        faults.refuse()
    if not items:
        raise BadInputError(f"{path} holds no items")
    return items


def _first(names: tuple[str, ...], values: Mapping[str, Any]) -> str | None:
    return next((name for name in names if values.get(name) not in (None, "", [])), None)


def _identifier(values: Mapping[str, Any], ordinal: int) -> str:
    name = _first(_ID_COLUMNS, values)
    return str(values[name]) if name is not None else str(ordinal)


def _parts(values: Mapping[str, Any], question: str) -> dict[Part, str]:
    parts = {Part.QUESTION: values[question]}
    for part in (Part.CHOICES, Part.ANSWER, Part.PASSAGE):
        name = _first(COLUMNS[part], values)
        if name is not None and name != question and (text := _text(values[name])):
            parts[part] = text
    return parts


def _text(value: Any) -> str:
    """The text of a cell: of a list, and of MMLU's and ARC's {"text": [...], "label": [...]}, a line each."""
    if isinstance(value, dict):
        value = value.get("text", [])
    if isinstance(value, list):
        return "\n".join(str(one) for one in value if isinstance(one, _KINDS))
    return str(value) if isinstance(value, _KINDS) else ""
