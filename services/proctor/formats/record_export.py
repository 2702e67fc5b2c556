"""An export of the decision log: JSON lines that verify without the store that they come from.

The first line says which log it is and where it ended, in a signed checkpoint; one line an entry follows, in the log's
order, with its attestation and its report. The first line alone is a checkpoint file. docs/record.md has the form.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import StrictInt, StrictStr, ValidationError

from proctor.domain.base import Frozen
from proctor.domain.canonical import canonical_json
from proctor.domain.errors import BadInputError
from proctor.domain.problems import visible
from proctor.domain.record.entry import LoggedEntry
from proctor.formats.faults import Faults, TooManyFaults
from proctor.formats.meter import Limits
from proctor.formats.rows import Row, jsonl_rows, unreadable

FORMAT: Final = "proctor-record/1"
#: A report of a hundred thousand items and all its sections is a tenth of it.
MAX_LINE_BYTES: Final = 64 << 20
#: Entries of a log. At a decision a minute it is full after nineteen years.
MAX_ENTRIES: Final = 10_000_000
MAX_BYTES: Final = 1 << 40
_LIMITS: Final = Limits(row_bytes=MAX_LINE_BYTES, rows=MAX_ENTRIES, total_bytes=MAX_BYTES)


class ExportHead(NamedTuple):
    """What the first line says."""

    sequence: int
    """How many entries the log had."""
    digest: str | None
    """Of the last one."""
    time: str
    envelope: dict[str, Any]
    """The checkpoint as it was signed, from which the three are read."""


class ExportedEntry(NamedTuple):
    """One entry of an export, and what travels with it."""

    logged: LoggedEntry
    envelope: dict[str, Any] | None
    report: bytes | None


def head_line(checkpoint: Mapping[str, Any], keys: list[dict[str, str]]) -> bytes:
    """The first line of an export.

    Args:
        checkpoint: a DSSE envelope of `checkpoint_bytes`.
        keys: public keys as `key_id` and `public_key` in PEM, for whoever has no other source of them.
    """
    return canonical_json({"format": FORMAT, "checkpoint": dict(checkpoint), "keys": keys}) + b"\n"


def entry_line(logged: LoggedEntry, envelope: Mapping[str, Any] | None, report: bytes | None) -> bytes:
    """One entry of an export. Its text is the one that is kept: an edited one is exported as it was found."""
    return (
        canonical_json(
            {
                "sequence": logged.sequence,
                "entry": logged.text,
                "digest": logged.digest,
                "signature": logged.signature,
                "envelope": None if envelope is None else dict(envelope),
                "report": None if report is None else report.decode(),
            }
        )
        + b"\n"
    )


def read_export(path: Path) -> tuple[ExportHead, Iterator[ExportedEntry]]:
    """The head of an export, and its entries as they are read.

    Raises:
        BadInputError: the file is no export, or as a whole none that can be read; while the entries are gone through,
            too.
    """
    rows = _rows(path)
    first = next(rows, None)
    if first is None or first.values.get("format") != FORMAT:
        raise BadInputError(f"{path} is no export of Proctor's record: `proctor record export` writes one")
    return _head(path, first), (_entry(path, row) for row in rows)


def _rows(path: Path) -> Iterator[Row]:
    faults = Faults(str(path))
    try:
        with path.open("rb") as stream:
            for row in jsonl_rows(stream, faults, _LIMITS):
                if faults:
                    faults.refuse()
                yield row
    except TooManyFaults:
        faults.refuse()
    except OSError as error:
        unreadable(path, error)
    if faults:
        faults.refuse()


def _head(path: Path, row: Row) -> ExportHead:
    envelope = row.values.get("checkpoint")
    try:
        if not isinstance(envelope, dict):
            raise ValueError
        said = json.loads(base64.b64decode(envelope["payload"], validate=True))
        sequence, digest, time = said["sequence"], said["digest"], said["time"]
        whole = isinstance(sequence, int) and isinstance(digest, str | None) and isinstance(time, str)
        if not whole or isinstance(sequence, bool) or sequence < 0:
            raise ValueError
    except (ValueError, TypeError, LookupError, binascii.Error, RecursionError):
        raise BadInputError(f"{path}:{row.position}: its checkpoint cannot be read; is the file damaged?") from None
    return ExportHead(sequence, digest, time, envelope)


class _Line(Frozen):
    """One entry of an export as its line has it."""

    sequence: StrictInt
    entry: StrictStr
    digest: StrictStr
    signature: StrictStr | None
    envelope: dict[str, Any] | None
    report: StrictStr | None


def _entry(path: Path, row: Row) -> ExportedEntry:
    try:
        line = _Line.model_validate(row.values)
        for text in (line.entry, line.digest, line.signature or "", line.report or ""):
            # Half of a surrogate pair, which JSON can spell, is no text.
            text.encode()
    except ValueError as error:
        why = error.errors()[0]["loc"] if isinstance(error, ValidationError) else "text that is no Unicode"
        raise BadInputError(
            f"{path}:{row.position}: this is no entry of a record; is the file damaged? ({visible(str(why)[:80])})"
        ) from None
    logged = LoggedEntry(line.sequence, line.entry, line.digest, line.signature)
    return ExportedEntry(logged, line.envelope, None if line.report is None else line.report.encode())
