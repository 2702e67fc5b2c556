"""Code that a model wrote: where it stands in an answer, what is tried on it, and whether what came back is right.

Nothing here runs code, and nothing parses it: a parser is a place to attack as well. Whoever runs it is given the calls
alone, so that code which prints whatever it likes passes no test that it does not know the answer to.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NamedTuple

from proctor.domain.canonical import canonical_json
from proctor.domain.program import Failed, Fault, Ran, RunProgram
from proctor.domain.trial import Outcome

#: The key by which a target is known to be tests.
TESTS: Final = "proctor_tests"
MAX_TESTS: Final = 200
#: Of a target, and of the code that is taken out of an answer. Longer code passes nothing.
MAX_TESTS_CHARACTERS: Final = 256 * 1024
MAX_CODE_CHARACTERS: Final = 64 * 1024
_MAX_READ: Final = 400_000
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_FENCE: Final = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[ \t]*([A-Za-z0-9_+-]{0,20})[^\n]{0,80}$", re.MULTILINE)
_PYTHON: Final = frozenset({"", "python", "python3", "py"})
_DEFINES: Final = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]", re.MULTILINE)
_BEGINS: Final = re.compile(r"^(?:from[ \t]+[\w.]+[ \t]+import\b|import[ \t]|def[ \t]|class[ \t]|@\w)", re.MULTILINE)


class CodeTests(NamedTuple):
    """Calls of a function, and what each must give back."""

    entry: str
    """The function's name."""
    calls: tuple[tuple[Any, ...], ...]
    expected: tuple[Any, ...]


class Tried(NamedTuple):
    """How a program did."""

    passed: int
    total: int
    detail: str
    """Why not all passed; empty where they did."""
    fault: Fault | None = None

    @property
    def outcome(self) -> Outcome:
        """Right where every test passed.

        A program that did not end in time is invalid and not wrong: on a machine that is busy the time may be over for
        a good one as well. What it used of the processor is its own doing, whatever the machine does.
        """
        if self.passed == self.total:
            return Outcome.CORRECT
        return Outcome.INVALID if self.fault is Fault.WALL else Outcome.INCORRECT


def written_tests(tests: CodeTests) -> str:
    """Tests as an item's target. Raises ValueError where a value is not plain JSON."""
    pairs = [[list(call), value] for call, value in zip(tests.calls, tests.expected, strict=True)]
    return canonical_json({TESTS: {"entry": tests.entry, "tests": pairs}}).decode()


def is_tests(target: str) -> bool:
    """Whether a target says that it is tests, right or wrong."""
    return target.startswith(f'{{"{TESTS}"')


def parse_tests(target: str) -> CodeTests:
    """The tests that a target is.

    Raises:
        ValueError: with what is wrong.
    """
    if len(target) > MAX_TESTS_CHARACTERS:
        raise ValueError(f"the tests are longer than {MAX_TESTS_CHARACTERS:,} characters")
    try:
        said = json.loads(target)
    except (ValueError, RecursionError):
        said = None
    body = said.get(TESTS) if isinstance(said, dict) else None
    if not isinstance(body, dict) or set(body) != {"entry", "tests"}:
        raise ValueError(f'no tests: {{"{TESTS}": {{"entry": NAME, "tests": [[[ARGUMENT, …], RESULT], …]}}}} is needed')
    entry, tests = body["entry"], body["tests"]
    if not isinstance(entry, str) or not _NAME.fullmatch(entry):
        raise ValueError(f"entry is {str(entry)[:80]!r}, which is not the name of a function")
    if not isinstance(tests, list) or not 1 <= len(tests) <= MAX_TESTS:
        raise ValueError(f"tests must be a list of 1 to {MAX_TESTS} pairs of arguments and a result")
    for number, pair in enumerate(tests, 1):
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], list)):
            raise ValueError(f"test {number} is not [[ARGUMENT, …], RESULT]")
    return CodeTests(entry, tuple(tuple(call) for call, _ in tests), tuple(value for _, value in tests))


def code_in(text: str) -> str | None:
    """The Python code of an answer; None where there is none.

    The first fenced block that defines something, else the first fenced block; a fence that is not closed goes to the
    end, as in an answer that was cut. Without a fence, the text from the first line on that begins a definition or an
    import, which is how base models complete.
    """
    blocks = _blocks(text[:_MAX_READ])
    if blocks:
        return next((block for block in blocks if _DEFINES.search(block)), blocks[0]).strip("\n") or None
    begin = _BEGINS.search(text[:_MAX_READ])
    return None if begin is None or not _DEFINES.search(text) else text[begin.start() : _MAX_READ].rstrip()


def _blocks(text: str) -> list[str]:
    found, open_at, fence = list[str](), -1, ""
    for match in _FENCE.finditer(text):
        if open_at < 0:
            fence = match[1]
            open_at = match.end() + 1 if match[2].lower() in _PYTHON else 0
        elif match[1].startswith(fence) and not match[2]:
            if open_at:
                found.append(text[open_at : match.start()])
            open_at = -1
    if open_at > 0:
        found.append(text[open_at:])
    return found


def tried(tests: CodeTests, ran: Ran) -> Tried:
    """Hold what came back against what is right."""
    right = [_same(value, wanted) for value, wanted in zip(ran.values, tests.expected, strict=False)]
    passed, total = sum(right), len(tests.expected)
    if passed == total:
        return Tried(passed, total, "")
    detail = f"{passed} of {total} tests passed"
    first = right.index(False) if False in right else None
    if first is not None:
        value = ran.values[first]
        what = value.error[:80] if isinstance(value, Failed) else "gave another result"
        detail += f"; test {first + 1}: {what}"
    if ran.fault is not None:
        detail += f"; {ran.fault.value}"
    return Tried(passed, total, detail, ran.fault)


def try_answer(code: str, target: str, run: RunProgram) -> Tried:
    """Try code on the tests of a target. Raises as `run`, and ValueError for a target that is no tests."""
    tests = parse_tests(target)
    if len(code) > MAX_CODE_CHARACTERS:
        return tried(tests, Ran((), Fault.TOO_LONG))
    return tried(tests, run(code, tests.entry, tests.calls))


def _same(value: Any, wanted: Any) -> bool:
    """Whether two plain values are equal: true is not 1, 2.0 is 2, and other numbers may differ by rounding."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, float) or isinstance(wanted, float):
        if not (isinstance(value, int | float) and isinstance(wanted, int | float)):
            return False
        try:
            return value == wanted or math.isclose(value, wanted, rel_tol=1e-9, abs_tol=1e-12)
        except OverflowError:
            return False
    if isinstance(wanted, list):
        alike = isinstance(value, list) and len(value) == len(wanted)
        return alike and all(_same(one, other) for one, other in zip(value, wanted, strict=True))
    if isinstance(wanted, dict):
        alike = isinstance(value, dict) and value.keys() == wanted.keys()
        return alike and all(_same(value[key], one) for key, one in wanted.items())
    return type(value) is type(wanted) and bool(value == wanted)
