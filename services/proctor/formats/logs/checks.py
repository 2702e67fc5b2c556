"""What every reader of logs checks: ids, grades, and that the first fault is told with its file and line."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NoReturn

from proctor.domain.errors import BadInputError
from proctor.formats.faults import Faults, shown

_WORDS: Final = {"true": True, "false": False}


def refuse(source: str, line: int, text: str) -> NoReturn:
    """Raise BadInputError with file and line."""
    raise BadInputError(f"{source}:{line}: {text}")


class FirstFault(Faults):
    """Faults of a log, of which the first ends the reading: a log is written by a program, and is wrong as a whole."""

    def add(self, position: int, text: str) -> NoReturn:
        """Raise BadInputError."""
        refuse(self.source, position, text)


class Grades:
    """Reads right and wrong from one file's scores, which must all be on one scale: 0–1 or 0–100."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._unit_line: int | None = None
        self._percent_line: int | None = None

    def read(self, value: Any, line: int, field: str) -> bool:
        """Right or wrong. Raises BadInputError for what is neither."""
        if isinstance(value, str):
            value = self._from_text(value, line, field)
        if isinstance(value, bool):
            self._unit(line)
            return value
        if not isinstance(value, int | float):
            refuse(self._source, line, f"{field} is {shown(value)}; write true, false, 1 or 0")
        if not math.isfinite(value):
            refuse(self._source, line, f"{field} is {value}, which is no grade; write 1 or 0, or nothing for an error")
        if not 0 <= value <= 100:
            refuse(self._source, line, f"{field} is {shown(value)}; a grade is 0 or 1 (or 0 or 100 throughout)")
        if value > 1:
            self._percent(line)
        elif value > 0:
            self._unit(line)
        if value not in (0, 1, 100):
            refuse(
                self._source,
                line,
                f"{field} is {shown(value)}, a part of the marks; a paired comparison needs right (1) or wrong (0)",
            )
        return value > 0

    def _from_text(self, text: str, line: int, field: str) -> bool | float:
        word = text.strip().lower()
        if word in _WORDS:
            return _WORDS[word]
        try:
            return float(word)
        except ValueError:
            refuse(self._source, line, f"{field} is {shown(text)}; write true, false, 1 or 0")

    def _unit(self, line: int) -> None:
        self._unit_line = self._unit_line or line
        self._one_scale(line)

    def _percent(self, line: int) -> None:
        self._percent_line = self._percent_line or line
        self._one_scale(line)

    def _one_scale(self, line: int) -> None:
        if self._unit_line is not None and self._percent_line is not None:
            unit, percent = self._unit_line, self._percent_line
            refuse(
                self._source,
                line,
                f"scores on two scales, 0–1 (line {unit}) and 0–100 (line {percent}); write all of them as 0 or 1",
            )


class Ids:
    """Refuses an item that stands twice in a log, or twice within a part of it."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines: dict[tuple[str, str], int] = {}

    def read(self, value: Any, line: int, field: str, *, within: str = "") -> str:
        """The id as text, unique within a part of the log: a filter, an epoch. Raises BadInputError."""
        if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).strip():
            refuse(self._source, line, f"{field} is {shown(value)}; every row needs its item's id, a text or a number")
        item_id = str(value).strip()
        first = self._lines.setdefault((within, item_id), line)
        if first != line:
            under = f" under {within}" if within else ""
            refuse(
                self._source, line, f"the id {shown(item_id)} stands twice{under}, first on line {first}; keep one row"
            )
        return item_id


def text_or_none(value: Any, source: str, line: int, field: str) -> str | None:
    """Text; a number becomes text; None stays. Raises BadInputError for anything else."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    refuse(source, line, f"{field} is {shown(value)}; a text is needed")


def tokens_or_none(value: Any, source: str, line: int, field: str) -> int | None:
    """A count of tokens, or None where it is missing. Raises BadInputError for anything else."""
    if value is None or value == "":
        return None
    try:
        count = int(value)
    except (TypeError, ValueError, OverflowError):
        count = -1
    if isinstance(value, bool) or count < 0 or (isinstance(value, float) and count != value):
        refuse(source, line, f"{field} is {shown(value)}; a whole number of tokens is needed")
    return count


def told(value: Any) -> str | None:
    """A target or a question, which tools write in many shapes: text or a number as text, a list of one as its one
    member, and None for whatever else stands there, because a run can be compared without it."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, int | float):
        return str(value)
    return value if isinstance(value, str) and value.strip() else None


def graded_columns(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """The names of the metrics that say right or wrong, of all that a log has for each answer.

    Marks, counts and texts are left out. NaN is not: it stands where a grade should, and reading it says so. Where no
    metric says right or wrong the first is returned, because reading that says best what is the matter.
    """
    graded = [
        name
        for name, values in columns.items()
        if any(value is not None for value in values) and all(map(_may_be_grade, values))
    ]
    return graded or list(columns)[:1]


def _may_be_grade(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and (value in (0, 1, 100) or not math.isfinite(value)))


def one_limit(limits: Iterable[Any]) -> int | None:
    """The token limit under which every answer was written; None where it differs or is not a positive count."""
    found = set()
    for limit in limits:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0:
            return None
        found.add(limit)
    return found.pop() if len(found) == 1 else None


def question_digest(question: str) -> str:
    """Digest of a question, for pairing; white space does not count, because tools trim it differently."""
    return "question:" + hashlib.sha256(" ".join(question.split()).encode("utf-8", "backslashreplace")).hexdigest()
