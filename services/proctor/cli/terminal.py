"""Printing what may be hostile: nothing that is printed can move the cursor, retitle the window or reorder text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import click

# C0 but tab and newline, DEL, C1, and the bidirectional overrides that make text read as what it is not. Escape
# sequences go whole first, so that none leaves its letters behind.
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]?"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: object) -> str:
    """Text without terminal control sequences, control characters other than tab and newline, and lone surrogates."""
    return _CONTROL.sub("", _SEQUENCE.sub("", str(text)))


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Aligned columns under headings, each cell cleaned and on one line."""
    cells = [list(headings), *([" ".join(clean(cell).split()) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join(lines)


def say(text: object, *, err: bool = False) -> None:
    """Print cleaned text; `err` for progress and logs."""
    click.echo(clean(text), err=err)


def print_json(value: Any) -> None:
    """Print one JSON document, in ASCII, on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=True, default=str))
