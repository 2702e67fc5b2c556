"""The table of bounds in docs/security.md is complete and true: every module that reads bytes stands in it.

A module reads bytes where it calls what turns them into something: a parser, a decompressor, a file, a connection. Each
such module stands in the table of bounds, or among those that read only what Proctor itself, its package or the kernel
has written, with the reason.
"""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import REPOSITORY

_DOCUMENT = REPOSITORY / "docs" / "security.md"
_PACKAGE = REPOSITORY / "services" / "proctor"
#: Calls by the last part of their name, as in `json.loads(…)` or `path.read_bytes()`.
_READS = frozenset(
    {
        "loads", "raw_decode", "JSONDecoder", "from_json", "model_validate_json", "safe_load",
        "reader", "DictReader", "ParquetFile", "read_table", "iter_batches", "ZipFile", "fromstring", "iterparse",
        "decompress", "decompressobj", "inflated", "FromString", "ParseFromString", "MessageToDict", "ParseDict",
        "text_string_to_metric_families", "parsedate_to_datetime", "load_dataset", "hf_hub_download", "load_file",
        "read_text", "read_bytes", "open", "fdopen", "stream", "aiter_raw", "aiter_bytes", "iter_raw", "recv", "json",
        "unpack", "unpack_from", "iter_unpack", "read_eval_log", "urlopen", "getaddrinfo",
    }
)  # fmt: skip
#: Generated, and walked through where it is called.
_GENERATED = re.compile(r"_pb2(_grpc)?\.py$")


class Bound(NamedTuple):
    """One row of the table of bounds."""

    what: str
    modules: tuple[str, ...]
    bound: str
    constants: tuple[tuple[str, str], ...]
    """Dotted names, each with the value that is stated; none where the bound is a rule and no number."""
    tests: tuple[str, ...]


@cache
def _rows(heading: str) -> tuple[tuple[str, ...], ...]:
    """The rows of the table under a heading, each as its cells."""
    if not _DOCUMENT.is_file():
        pytest.fail("docs/security.md is missing")
    section = _DOCUMENT.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return tuple(
        tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]) for line in lines[2:]
    )


def _names(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`(proctor[\w.]*)`", cell))


@cache
def _bounds() -> tuple[Bound, ...]:
    return tuple(
        Bound(
            what,
            _names(read_by),
            bound,
            tuple(re.findall(r"`(proctor[\w.]+) = ([^`]+)`", bound)),
            tuple(re.findall(r"`(tests/[^`]+)`", tried_by)),
        )
        for what, read_by, bound, _, tried_by in _rows("Bounds")
    )


def _module_of(path: Path) -> str:
    parts = path.relative_to(_PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _calls(tree: ast.AST) -> set[str]:
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in calls}
    return names & _READS


def test_every_module_that_reads_bytes_stands_in_the_table_or_among_those_that_read_our_own() -> None:
    bounded = {name for bound in _bounds() for name in bound.modules}
    ours = {name for read_by, _ in _rows("What is read and is our own") for name in _names(read_by)}
    missing = {}
    for path in sorted(_PACKAGE.rglob("*.py")):
        if _GENERATED.search(path.name):
            continue
        name, calls = _module_of(path), _calls(ast.parse(path.read_text()))
        if calls and name not in bounded | ours:
            missing[name] = sorted(calls)
    assert not missing, "\n".join(f"{name} calls {', '.join(calls)}" for name, calls in missing.items())


def test_what_the_table_says_of_a_bound_is_what_the_code_has() -> None:
    wrong = []
    for bound in _bounds():
        assert bound.bound, f"{bound.what}: no bound is stated"
        assert bound.constants or "proctor." not in bound.bound, f"{bound.what}: a constant without its value"
        for name, stated in bound.constants:
            module, _, constant = name.rpartition(".")
            value = getattr(importlib.import_module(module), constant, None)
            value = getattr(value, "pattern", value)
            if value != ast.literal_eval(stated):
                wrong.append(f"{name} is {value!r}, and the table says {stated}")
    assert not wrong, "\n".join(wrong)


def test_every_bound_is_tried_by_a_test_that_exists() -> None:
    wrong = []
    for bound in _bounds():
        assert bound.tests, f"{bound.what}: no test tries to pass its bound"
        for test in bound.tests:
            path, _, function = test.partition("::")
            file = REPOSITORY / path
            if not file.is_file() or (function and f"def {function}(" not in file.read_text()):
                wrong.append(f"{bound.what}: there is no {test}")
    assert not wrong, "\n".join(wrong)


def test_what_the_table_names_exists() -> None:
    named = {name for bound in _bounds() for name in bound.modules}
    named |= {name for read_by, _ in _rows("What is read and is our own") for name in _names(read_by)}
    gone = [name for name in sorted(named) if importlib.util.find_spec(name) is None]
    assert not gone, gone
