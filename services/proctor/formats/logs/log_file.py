"""A log as its readers get it: a file of bounded size, and what its beginning tells of its format."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NoReturn

from proctor.domain.errors import BadInputError
from proctor.formats.faults import shown
from proctor.formats.logs.checks import refuse
from proctor.formats.rows import unreadable

#: A log is read into memory; the largest of a benchmark of 10,000 items with long answers is a fifth of it.
MAX_BYTES: Final = 1 << 28
KNOWN: Final = (
    "eval_trust JSON, lm-evaluation-harness --log_samples JSONL, Inspect's .eval or .json, lighteval's details "
    "(Parquet), the JSON report of a Proctor audit, or CSV with the columns id and correct"
)
_CONSTANT: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|-?\b(?:NaN|Infinity)\b', re.DOTALL)


@dataclass(frozen=True)
class LogFile:
    """A log that was read into memory; what is made of its bytes is made once."""

    path: Path
    data: bytes
    """What it holds; never empty."""

    @classmethod
    def of(cls, path: Path) -> LogFile:
        """The log at a path.

        Raises:
            BadInputError: when the file is missing, empty, packed or too large.
        """
        try:
            if path.stat().st_size > MAX_BYTES:
                raise BadInputError(f"{path} is larger than {MAX_BYTES >> 20} MiB; is it a log of one run?")
            data = path.read_bytes()
        except OSError as error:
            unreadable(path, error)
        if data.startswith(b"\x1f\x8b"):
            refuse(str(path), 1, f"a gzip archive, which is not read; unpack it, a log is {KNOWN}")
        if not data.strip():
            refuse(str(path), 1, f"the file is empty; a log is {KNOWN}")
        return cls(path, data)

    @property
    def source(self) -> str:
        """The file as the user named it, for messages."""
        return str(self.path)

    @cached_property
    def text(self) -> str:
        """The file as text.

        Raises:
            BadInputError: with the line, where it is not UTF-8.
        """
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            refuse(self.source, line, f"byte {self.data[error.start]:#04x} is not UTF-8; save the file as UTF-8")

    @property
    def first(self) -> str:
        """The first character that is no white space."""
        return self.text.lstrip()[:1]

    @cached_property
    def head(self) -> dict[str, Any] | None:
        """The object on the first line; None where none stands there."""
        try:
            row = json.loads(self.text.lstrip().partition("\n")[0])
        except (ValueError, RecursionError):
            return None
        return row if isinstance(row, dict) else None

    @cached_property
    def document(self) -> dict[str, Any]:
        """The whole file as one object. Only for a file that begins with a brace.

        Raises:
            BadInputError: with the line, where it is none.
        """
        try:
            document = json.loads(self.text, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            if self.head is not None:
                refuse(
                    self.source,
                    1,
                    f"an object with {shown(sorted(self.head)[:6])} on the first line; a log is {KNOWN}",
                )
            refuse(self.source, error.lineno, f"not JSON at column {error.colno}: {error.msg}")
        except RecursionError:
            refuse(self.source, 1, "nests too deep to be a log")
        except ValueError as error:
            refuse(self.source, _line_of_constant(self.text), str(error))
        assert isinstance(document, dict)
        return document


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number; write a grade as true or false, and null where there is none")


def _line_of_constant(text: str) -> int:
    start = next((match.start() for match in _CONSTANT.finditer(text) if not match[0].startswith('"')), 0)
    return text.count("\n", 0, start) + 1
