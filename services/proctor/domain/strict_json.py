"""Reading JSON that a person wrote: every fault has a place, and nothing is guessed.

Python's reader takes NaN, keeps the last of two equal keys without a word, and runs out of stack on deep
nesting. Here each of these is a problem with its path.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from proctor.domain.problems import Fault, Path, Problem, SuiteProblems, path_text, quoted, visible

MAX_BYTES = 1 << 20
#: A suite is three levels deep; this leaves room and stays far from the parser's stack.
MAX_DEPTH = 32
#: Values, lists and objects of a document. A suite with all that it may hold has some thousands.
MAX_VALUES = 20_000
#: 2**63 has 19 digits. Longer numbers are slips of the keyboard, or attacks on the integer parser.
_MAX_INTEGER_DIGITS = 19
_SHOWN_LINE = 80
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
#: UTF-32 first: its little-endian mark begins with UTF-16's.
_BYTE_ORDER_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_WHOLE_FILE = "(the whole file)"


@dataclass(frozen=True)
class Document:
    """A JSON object, the problems of its notation, and the order in which its paths were written."""

    tree: dict[str, Any]
    faults: tuple[Fault, ...]
    """Where they stand, the tree holds null or the last value."""
    order: dict[Path, int]


@dataclass(frozen=True)
class _Unusable:
    text: str
    message: str
    mend: str


class _Pairs(list[tuple[str, Any]]):
    """An object's members as written, equal keys and all."""


def read_document(source: str | bytes) -> Document:
    """Read one JSON object. `$comment` members are left out at every level.

    Raises:
        SuiteProblems: when the text is no JSON object at all (encoding, size, depth, syntax, number of values).
    """
    text = _decode(source) if isinstance(source, bytes) else source
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_BYTES:
        raise _fatal("", f"is larger than {MAX_BYTES >> 20} MiB", "a suite is a few kilobytes; is this the right file?")
    if not text.strip():
        raise _fatal("", "is empty", "start from the example that `proctor suite init` writes")
    _check_depth(text)
    try:
        raw = json.loads(
            text, object_pairs_hook=_Pairs, parse_constant=_constant, parse_float=_float, parse_int=_integer
        )
    except json.JSONDecodeError as error:
        raise SuiteProblems([_syntax_problem(text, error)]) from None
    if not isinstance(raw, _Pairs):
        raise _fatal(quoted(_plain(raw)), "is not a JSON object", "put the suite's sections between { and }")
    builder = _Builder()
    tree = builder.build(raw, ())
    return Document(tree, tuple(builder.faults), builder.order)


def _fatal(value: str, message: str, mend: str) -> SuiteProblems:
    return SuiteProblems([Problem(_WHOLE_FILE, value, message, mend)])


def _decode(data: bytes) -> str:
    for mark, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            raise _fatal("", f"is {name} text", "save it as UTF-8")
    if len(data) > MAX_BYTES:
        raise _fatal("", f"is larger than {MAX_BYTES >> 20} MiB", "a suite is a few kilobytes; is this the right file?")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise SuiteProblems(
            [
                Problem(
                    f"line {line}, byte {column}",
                    f"0x{data[error.start]:02x}",
                    "is not UTF-8",
                    "save the file as UTF-8",
                )
            ]
        ) from None


def _check_depth(text: str) -> None:
    depth = 0
    for match in _BRACKETS.finditer(text):
        first = match[0][0]
        if first in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                line = text.count("\n", 0, match.start()) + 1
                raise _fatal(
                    "",
                    f"nests deeper than {MAX_DEPTH} levels (line {line})",
                    "a suite has sections and values, no more",
                )
        elif first in "]}":
            depth -= 1


def _constant(name: str) -> _Unusable:
    return _Unusable(name, "is not a number that JSON knows", "write a finite number")


def _float(text: str) -> float | _Unusable:
    value = float(text)
    if not math.isfinite(value):
        return _Unusable(text[:40], "is too large for a number", "write a finite number")
    # Minus zero is zero, but prints otherwise and would change the fingerprint.
    return value + 0.0


def _integer(text: str) -> int | _Unusable:
    digits = len(text.lstrip("-"))
    if digits > _MAX_INTEGER_DIGITS:
        return _Unusable(
            text[:_MAX_INTEGER_DIGITS] + "…",
            f"has {digits} digits",
            f"write a whole number of at most {_MAX_INTEGER_DIGITS} digits",
        )
    return int(text)


def _plain(value: Any) -> Any:
    if isinstance(value, _Unusable):
        return value.text
    if isinstance(value, _Pairs):
        return {key: _plain(member) for key, member in value}
    return [_plain(member) for member in value] if isinstance(value, list) else value


class _Builder:
    """Turns members as written into plain objects, and keeps account of what was wrong with them."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.order: dict[Path, int] = {}

    def build(self, value: Any, path: Path) -> Any:
        self.order.setdefault(path, len(self.order))
        if len(self.order) > MAX_VALUES:
            raise _fatal(
                "", f"holds more than {MAX_VALUES:,} values", "a suite has some hundred; is this the right file?"
            )
        if isinstance(value, _Pairs):
            return self._object(value, path)
        if isinstance(value, list):
            return [self.build(member, (*path, index)) for index, member in enumerate(value)]
        if isinstance(value, _Unusable):
            return self._fault(path, value.text, value.message, value.mend)
        if isinstance(value, str) and _SURROGATE.search(value):
            return self._fault(path, quoted(value), "holds half of a surrogate pair", "write the character itself")
        return value

    def _object(self, pairs: _Pairs, path: Path) -> dict[str, Any]:
        written: dict[str, list[Any]] = {}
        for key, value in pairs:
            if key != "$comment":
                written.setdefault(key, []).append(value)
        built: dict[str, Any] = {}
        for key, values in written.items():
            place = (*path, key)
            if _SURROGATE.search(key):
                self._fault(place, "", "is a key with half of a surrogate pair", "write the character itself")
                continue
            built[key] = self.build(values[-1], place)
            if len(values) > 1:
                times = "twice" if len(values) == 2 else f"{len(values)} times"
                shown = " and ".join(quoted(_plain(value)) for value in values[:3])
                self._fault(place, shown, f"stand under one key that is written {times}", "keep one of them")
        return built

    def _fault(self, path: Path, value: str, message: str, mend: str) -> None:
        self.faults.append(Fault(path, Problem(path_text(path), value, message, mend), (path,)))


def _syntax_problem(text: str, error: json.JSONDecodeError) -> Problem:
    line = text.split("\n")[error.lineno - 1].rstrip("\r")
    # Keep the fault in view on a long line.
    start = max(0, error.colno - 1 - _SHOWN_LINE // 2)
    shown = visible(line[start : start + _SHOWN_LINE].strip())
    message, mend = _syntax_words(text, error)
    return Problem(
        f"line {error.lineno}, column {error.colno}", f"`{shown}`" if shown else "", f"is not JSON: {message}", mend
    )


def _syntax_words(text: str, error: json.JSONDecodeError) -> tuple[str, str]:
    here, before = text[error.pos : error.pos + 8], text[: error.pos].rstrip()
    if here.startswith(("//", "/*", "#")):
        return "it has no comments", 'put the remark into a "$comment" key'
    if here.startswith("'"):
        return "text stands in single quotes", 'use double quotes: "…"'
    if error.msg.startswith(("Illegal trailing comma", "Expecting property name", "Expecting value")):
        if (before.endswith(",") and here[:1] in ("}", "]")) or error.msg.startswith("Illegal trailing"):
            return "a comma stands before the closing bracket", "remove the comma"
        if error.pos >= len(text.rstrip()):
            return "the file ends too early", "close every bracket that is open"
        if error.msg.startswith("Expecting property name"):
            return "a key without double quotes", 'write the key as "key"'
        if here.startswith(("True", "False", "None")):
            return "a Python constant", "write true, false or null"
        return "a value is expected here", "write a number, true, false, null, text in double quotes, […] or {…}"
    if error.msg.startswith("Expecting ',' delimiter"):
        if error.pos >= len(text.rstrip()):
            return "the file ends too early", "close every bracket that is open"
        return "a comma is missing, or a bracket closes too late", "put a comma between the members"
    if error.msg.startswith("Expecting ':' delimiter"):
        return "a colon is missing after the key", 'write "key": value'
    if error.msg.startswith("Unterminated string"):
        return "text has no closing quote", "close it on the same line"
    if error.msg.startswith("Invalid control character"):
        return "text holds a raw control character or line break", "write it as an escape, e.g. \\n"
    if error.msg.startswith(("Invalid \\", "Invalid \\u")):
        return "an unknown backslash escape", "write \\\\ for a backslash"
    if error.msg.startswith("Extra data"):
        return "something follows the closing bracket", "keep one object in the file"
    return "it cannot be read here", "compare with the example that `proctor suite init` writes"
