"""Rows of a Parquet file, read in a process of its own that may take so much memory and time and no more.

A Parquet file says how large its pages are, how often a value stands in a column, and how long a list is; pyarrow
allocates what it says before anything can be counted: 800 bytes become gigabytes. So a child reads it under limits of
the operating system and writes a line of JSON a row, which are counted here like the lines of any other file.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from proctor.domain.errors import BadInputError
from proctor.formats.faults import Faults, shown
from proctor.formats.json_rows import json_object
from proctor.formats.meter import ITEM_ROWS, Limits, Meter
from proctor.formats.parquet_child import ENDED, FAILED, LONG, NOT_JSON

#: Memory of the child: pyarrow takes a quarter of it, the rest holds a page and a few of the longest rows.
MEMORY_BYTES: Final = 512 << 20
#: Processor time of the child. The largest benchmark takes five seconds.
PROCESSOR_S: Final = 120
#: A line of the names of columns.
MAX_COLUMNS_BYTES: Final = 1 << 20
#: What the child sees of the environment: where Python and its libraries are, and no secret.
_ENVIRONMENT: Final = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL")


class NotJson:
    """A value that no item can hold (a date, bytes, a decimal), by what Python writes for it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


@contextmanager
def open_parquet(path: Path, limits: Limits = ITEM_ROWS) -> Iterator[ParquetRows]:
    """A file under the eyes of a child, which ends with the context.

    Raises:
        BadInputError: when pyarrow is missing, the file cannot be read as Parquet, or it holds or takes more than it
            may; also while rows are read.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise BadInputError(
            f"{path} is a Parquet file, which needs pyarrow: pip install 'proctor[parquet]', or convert it to JSONL"
        )
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror or error}") from None
    # -P: not from the folder in which Proctor was started, where somebody else's json.py may lie.
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "proctor.formats.parquet_child", str(MEMORY_BYTES), str(PROCESSOR_S)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield ParquetRows(path, child.stdin, child.stdout, limits, size)
    finally:
        child.kill()
        # What it did not take of its orders went with it.
        with suppress(BrokenPipeError):
            child.stdin.close()
        child.stdout.close()
        child.wait()


class ParquetRows:
    """The columns of a file, and its rows, which are read once."""

    def __init__(self, path: Path, orders: IO[bytes], answers: IO[bytes], limits: Limits, size: int) -> None:
        self._path = path
        self._orders = orders
        self._answers = answers
        self._limits = limits
        self._size = size
        self._order(str(path.absolute()))
        columns = self._line(MAX_COLUMNS_BYTES)
        if columns is None or not columns.endswith(b"\n"):
            self._refuse(f"the names of its columns take more than {MAX_COLUMNS_BYTES >> 20} MiB")
        self.columns: list[str] = json.loads(columns)

    def rows(self, faults: Faults, columns: Sequence[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows, counted from 1; one that is longer than a row may be is a fault and is left out.

        Args:
            faults: where they are noted.
            columns: those that are read; None for all.

        Raises:
            BadInputError: see `open_parquet`.
        """
        most = self._limits.row_bytes
        self._order({"columns": columns, "rows": self._limits.rows + 1, "row_bytes": most})
        meter = Meter(str(self._path), self._limits, compressed_bytes=self._size)
        position = 0
        while line := self._line(most + 1):
            position += 1
            meter.count(len(line))
            if line.startswith(LONG):
                faults.add(position, f"the row is longer than {most} bytes as JSON; one row holds one item")
            elif (values := json_object(line, position, faults, constant=float, made=_restored)) is not None:
                yield position, values

    def _order(self, order: Any) -> None:
        # A child that has died cannot listen, and `_line` tells of its death.
        with suppress(BrokenPipeError):
            self._orders.write(json.dumps(order).encode() + b"\n")
            self._orders.flush()

    def _line(self, most: int) -> bytes | None:
        """The next line, or None where there is no other."""
        line = self._answers.readline(most)
        if line.startswith(FAILED):
            self._refuse(line.removeprefix(FAILED).decode("utf-8", "replace").strip())
        if not line:
            self._refuse(
                f"it takes more than {MEMORY_BYTES >> 20} MiB or {PROCESSOR_S} s, or the reader breaks down over it"
            )
        return None if line.startswith(ENDED) else line

    def _refuse(self, reason: str) -> NoReturn:
        raise BadInputError(f"{self._path} cannot be read as Parquet: {shown(reason)[1:-1]}")


def _restored(values: dict[str, Any]) -> Any:
    return NotJson(str(values[NOT_JSON])) if values.keys() == {NOT_JSON} else values
