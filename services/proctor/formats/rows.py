"""Rows of JSONL, CSV and Parquet files with the place where each stands. Values are checked by whoever maps them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn

from proctor.domain.errors import BadInputError
from proctor.formats.faults import Faults, shown

#: A row beyond this is a mistake (a whole file in one line), not a benchmark problem.
MAX_ROW_BYTES: Final = 1 << 20
_HASH_CHUNK_BYTES: Final = 1 << 20
_BOM: Final = b"\xef\xbb\xbf"
SUFFIXES: Final = (".jsonl", ".ndjson", ".json", ".csv", ".parquet")


class Row(NamedTuple):
    """One record and its line (JSONL, CSV) or row number (Parquet), from 1."""

    position: int
    values: dict[str, Any]


class _DuplicateKeyError(ValueError):
    pass


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

    Raises:
        BadInputError: when the file is missing or as a whole not what its suffix says.
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        yield from _parquet_rows(path)
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


def jsonl_rows(stream: BinaryIO, faults: Faults) -> Iterator[Row]:
    """Objects of a JSONL stream, one a line; blank lines are passed over."""
    position = 0
    # By readline with a limit, so that a file without line ends is not taken into memory.
    while line := stream.readline(MAX_ROW_BYTES + 1):
        position += 1
        if len(line) > MAX_ROW_BYTES and not line.endswith(b"\n"):
            faults.add(position, f"the line is longer than {MAX_ROW_BYTES} bytes; one line holds one item")
            while (rest := stream.readline(MAX_ROW_BYTES)) and not rest.endswith(b"\n"):
                pass
            continue
        if position == 1:
            line = line.removeprefix(_BOM)
            if line.lstrip().startswith(b"["):
                faults.add(1, "the file is one JSON array; write one object a line (jq -c '.[]')")
                return
        if line.strip():
            values = _json_object(line, position, faults)
            if values is not None:
                yield Row(position, values)


def _json_object(line: bytes, position: int, faults: Faults) -> dict[str, Any] | None:
    try:
        value = json.loads(line.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        faults.add(position, f"byte {error.start + 1} ({line[error.start]:#04x}) is not UTF-8; convert the file")
    except _DuplicateKeyError as error:
        faults.add(position, str(error))
    except json.JSONDecodeError as error:
        start = shown(line[:60].decode("utf-8", "replace"))
        faults.add(position, f"not JSON at column {error.colno}: {error.msg}: {start}")
    except (ValueError, RecursionError) as error:
        faults.add(position, f"not JSON that can be read: {error}")
    else:
        if isinstance(value, dict):
            return value
        faults.add(position, f"a JSON object is needed, not {shown(value)}")
    return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _DuplicateKeyError(f"the key {shown(twice)} stands twice; keep one")
    return values


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _csv_rows(path: Path, stream: BinaryIO, faults: Faults) -> Iterator[Row]:
    # Bytes that are not UTF-8 become lone surrogates, which the field checks refuse row by row.
    with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        reader = csv.reader(text, strict=True)
        try:
            header = next(reader, None)
            if header is None:
                return
            doubles = sorted({name for name in header if header.count(name) > 1})
            if doubles:
                raise BadInputError(f"{path}:1: the column {shown(doubles[0])} stands twice in the header; rename one")
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(header):
                    faults.add(reader.line_num, f"{len(cells)} cells where the header has {len(header)} columns")
                else:
                    yield Row(reader.line_num, dict(zip(header, cells, strict=True)))
        except csv.Error as error:
            faults.add(reader.line_num, f"not CSV: {error}")


def _parquet_rows(path: Path) -> Iterator[Row]:
    try:
        import pyarrow.lib
        import pyarrow.parquet
    except ImportError:
        raise BadInputError(
            f"{path} is a Parquet file, which needs pyarrow: pip install 'proctor[parquet]', or convert it to JSONL"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            position = 0
            for batch in file.iter_batches(batch_size=1024):
                for values in batch.to_pylist():
                    position += 1
                    yield Row(position, values)
    except (pyarrow.lib.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0][:200]
        raise BadInputError(f"{path} cannot be read as Parquet: {reason}") from None
    except OSError as error:
        unreadable(path, error)
