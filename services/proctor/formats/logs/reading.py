"""Reading a log of whatever format it is: told by its content, because suffixes are given by people."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any, Final, NoReturn

from proctor.domain.errors import BadInputError
from proctor.domain.run_log import RunLog
from proctor.formats.faults import shown
from proctor.formats.logs.checks import FirstFault, refuse
from proctor.formats.logs.eval_trust import read_eval_trust
from proctor.formats.logs.inspect_log import read_inspect_log
from proctor.formats.logs.lighteval_details import read_lighteval
from proctor.formats.logs.lm_eval import read_lm_eval
from proctor.formats.logs.plain_csv import read_plain_csv
from proctor.formats.meter import LOG_ROWS
from proctor.formats.rows import jsonl_rows, unreadable

#: A log is read into memory; the largest of a benchmark of 10,000 items with long answers is a fifth of it.
MAX_BYTES: Final = 1 << 28
KNOWN: Final = (
    "eval_trust JSON, lm-evaluation-harness --log_samples JSONL, Inspect's .eval or .json, lighteval's details "
    "(Parquet), or CSV with the columns id and correct"
)
#: How Inspect begins a log; it may hold NaN, which its writer means, and is left to Inspect's own reader.
_INSPECT: Final = re.compile(r'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
_CONSTANT: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|-?\b(?:NaN|Infinity)\b', re.DOTALL)


def read_log(path: str | Path) -> tuple[RunLog, ...]:
    """The runs of a log, one for each filter, scorer or metric; the log's own primary one, named first, is first.

    Raises:
        BadInputError: with file and line, when the file is missing, empty or not what it says.
    """
    path = Path(path)
    source = str(path)
    data = _bytes(path)
    if data.startswith(b"PAR1"):
        return read_lighteval(path)
    if data.startswith(b"PK\x03\x04"):
        return read_inspect_log(path, "eval")
    text = _decoded(source, data)
    if _INSPECT.match(text):
        return read_inspect_log(path, "json")
    first = text.lstrip()[:1]
    if first == "[":
        refuse(source, 1, f"one JSON array; a log is {KNOWN}")
    if first != "{":
        header = text.partition("\n")[0]
        if "," not in header:
            refuse(source, 1, f"begins with {shown(header[:60])}; a log is {KNOWN}")
        return (read_plain_csv(source, text),)
    document = _document(source, text)
    if document is None:
        return read_lm_eval(source, jsonl_rows(io.BytesIO(data), FirstFault(source), LOG_ROWS))
    if isinstance(document.get("results"), list):
        return (read_eval_trust(source, text, document),)
    if isinstance(document.get("eval"), dict) and isinstance(document.get("samples"), list):
        return read_inspect_log(path, "json")
    refuse(source, 1, f"a JSON object with {shown(sorted(document)[:6])}; a log is {KNOWN}")


def _bytes(path: Path) -> bytes:
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
    return data


def _decoded(source: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        refuse(source, line, f"byte {data[error.start]:#04x} is not UTF-8; save the file as UTF-8")


def _document(source: str, text: str) -> dict[str, Any] | None:
    """The whole file as one object; None where it is rows, an object on each line."""
    head = text.lstrip().partition("\n")[0]
    try:
        row = json.loads(head)
    except (ValueError, RecursionError):
        row = None
    if isinstance(row, dict) and "doc_id" in row:
        return None
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        if isinstance(row, dict):
            refuse(source, 1, f"an object with {shown(sorted(row)[:6])} on the first line; a log is {KNOWN}")
        refuse(source, error.lineno, f"not JSON at column {error.colno}: {error.msg}")
    except RecursionError:
        refuse(source, 1, "nests too deep to be a log")
    except ValueError as error:
        refuse(source, _line_of_constant(text), str(error))
    assert isinstance(document, dict)
    return document


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number; write a grade as true or false, and null where there is none")


def _line_of_constant(text: str) -> int:
    start = next((match.start() for match in _CONSTANT.finditer(text) if not match[0].startswith('"')), 0)
    return text.count("\n", 0, start) + 1
