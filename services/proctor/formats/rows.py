"""Rows of JSONL, CSV and Parquet files with the place where each stands. Values are checked by whoever maps them."""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn, TextIO, TypeVar

from proctor.domain.errors import BadInputError
from proctor.formats.faults import Faults, TooManyFaults, shown
from proctor.formats.json_rows import json_object
from proctor.formats.meter import ITEM_ROWS, Limits, Meter
from proctor.formats.parquet_rows import open_parquet

_HASH_CHUNK_BYTES: Final = 1 << 20
_BOM: Final = b"\xef\xbb\xbf"
SUFFIXES: Final = (".jsonl", ".ndjson", ".json", ".csv", ".parquet")

T = TypeVar("T")


class Row(NamedTuple):
    """One record and its line (JSONL, CSV) or row number (Parquet), from 1."""

    position: int
    values: dict[str, Any]


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes. Raises BadInputError when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_HASH_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        unreadable(path, error)
    return "sha256:" + digest.hexdigest()


def unreadable(path: Path, error: OSError) -> NoReturn:
    """Say in one line why a file cannot be read."""
    raise BadInputError(f"{path} cannot be read: {error.strerror or error}") from None


def is_typed(path: Path) -> bool:
    """Whether values of this format carry their type; in CSV everything is text."""
    return path.suffix.lower() != ".csv"


def position_unit(path: Path) -> str:
    """What a position counts where it is not lines."""
    return "row " if path.suffix.lower() == ".parquet" else ""


def read_rows(path: Path, faults: Faults) -> Iterator[Row]:
    """The rows of a file, told apart by its suffix; a row that cannot be read is a fault and is left out.

    Rows, their bytes and the bytes of each are counted as they come, whatever the format: see `meter`.

    Raises:
        BadInputError: when the file is missing, holds more than is read, or is as a whole not what its suffix says.
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        with open_parquet(path) as file:
            for position, values in file.rows(faults):
                yield Row(position, values)
        return
    try:
        with path.open("rb") as stream:
            if suffix in (".jsonl", ".ndjson", ".json"):
                yield from jsonl_rows(stream, faults)
            elif suffix == ".csv":
                yield from _csv_rows(path, stream, faults)
            else:
                raise BadInputError(
                    f"{path} ends in {shown(suffix)}, which says nothing of its format: "
                    f"use one of {', '.join(SUFFIXES)}"
                )
    except OSError as error:
        unreadable(path, error)


def jsonl_rows(stream: BinaryIO, faults: Faults, limits: Limits = ITEM_ROWS) -> Iterator[Row]:
    """Objects of a JSONL stream, one a line; blank lines are passed over.

    Raises:
        BadInputError: when the stream holds more than `limits`.
    """
    position, meter = 0, Meter(faults.source, limits)
    # By readline with a limit, so that a file without line ends is not taken into memory.
    while line := stream.readline(limits.row_bytes + 1):
        position += 1
        meter.count(len(line))
        if len(line) > limits.row_bytes and not line.endswith(b"\n"):
            faults.add(position, f"the line is longer than {limits.row_bytes} bytes; one line holds one item")
            while (rest := stream.readline(limits.row_bytes)) and not rest.endswith(b"\n"):
                pass
            continue
        if position == 1:
            line = line.removeprefix(_BOM)
            if line.lstrip().startswith(b"["):
                faults.add(1, "the file is one JSON array; write one object a line (jq -c '.[]')")
                return
        if line.strip():
            values = json_object(line, position, faults)
            if values is not None:
                yield Row(position, values)


def parsed_rows(data: bytes, source: str, parse: Callable[[Row], T]) -> list[T]:
    """What a JSONL file's rows are, each parsed by itself, so that one fault does not hide the next.

    Args:
        data: the file's bytes.
        source: its name, for messages.
        parse: a row's value; it raises ValueError for a row that is none.

    Raises:
        BadInputError: with up to ten faults, each with its line.
    """
    faults, found = Faults(source), list[T]()
    try:
        for row in jsonl_rows(io.BytesIO(data), faults):
            try:
                found.append(parse(row))
            except ValueError as error:
                faults.add(row.position, str(error))
    except TooManyFaults:
        pass
    if faults:
        faults.refuse()
    return found


class _Lines:
    """The lines of a CSV file, none longer than a row may be, and the bytes of the record that they belong to.

    The csv module asks for a line at a time and keeps what it has of a record: a quote that nothing closes would take
    the whole file into memory, and so would a file without line ends.
    """

    def __init__(self, text: TextIO, path: Path) -> None:
        self._text = text
        self._path = path
        self._line = 0
        self.record = 0
        """Characters since `record` was last set to 0."""

    def __iter__(self) -> Iterator[str]:
        while line := self._text.readline(ITEM_ROWS.row_bytes + 1):
            self._line += 1
            self.record += len(line)
            if self.record > ITEM_ROWS.row_bytes:
                raise BadInputError(
                    f"{self._path}:{self._line}: a row is longer than {ITEM_ROWS.row_bytes} characters; is a quotation "
                    "mark not closed?"
                )
            yield line


def _csv_rows(path: Path, stream: BinaryIO, faults: Faults) -> Iterator[Row]:
    meter = Meter(str(path))
    # Bytes that are not UTF-8 become lone surrogates, which the field checks refuse row by row.
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        lines = _Lines(text, path)
        reader = csv.reader(lines, strict=True)
        try:
            header = next(reader, None)
            if header is None:
                return
            if twice := first_double(header):
                raise BadInputError(f"{path}:1: the column {shown(twice)} stands twice in the header; rename one")
            lines.record = 0
            for cells in reader:
                meter.count(lines.record)
                lines.record = 0
                if not cells:
                    continue
                if len(cells) != len(header):
                    faults.add(reader.line_num, f"{len(cells)} cells where the header has {len(header)} columns")
                else:
                    yield Row(reader.line_num, dict(zip(header, cells, strict=True)))
        except csv.Error as error:
            faults.add(reader.line_num, f"not CSV: {error}")


def first_double(names: list[str]) -> str | None:
    """The first name, by the alphabet, that stands more than once."""
    return min((name for name, times in Counter(names).items() if times > 1), default=None)
