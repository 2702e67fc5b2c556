"""Code in an answer, the tests that are tried on it, and the grader that has it run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.errors import BadInputError, CodeExecutionError
from proctor.domain.item import Item
from proctor.domain.program import Failed, Fault, Ran
from proctor.domain.trial import Arm, Completion, Outcome, Trial
from proctor.grading import EXTRACTORS, executing, grade, read_answer, resolve_extractor
from proctor.grading.programs import (
    MAX_CODE_CHARACTERS,
    CodeTests,
    code_in,
    is_tests,
    parse_tests,
    tried,
    try_answer,
    written_tests,
)
from proctor.runtime.settings import CodeExecution
from proctor.scorer.grading.programs import Programs

_DEFINED = "def f(x):\n    return x"
TESTS = CodeTests("f", ((1,), (2,)), (1, 2))
TARGET = written_tests(TESTS)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"Here:\n```python\n{_DEFINED}\n```\nDone.", _DEFINED),
        (f"```\n{_DEFINED}\n```", _DEFINED),
        (f"~~~py\n{_DEFINED}\n~~~", _DEFINED),
        (f"```python\n{_DEFINED}", _DEFINED),
        (
            f"First\n```bash\npip install x\n```\nthen\n```python\n{_DEFINED}\n```\n```python\nprint(f(1))\n```",
            _DEFINED,
        ),
        (f"```python\nimport math\n```\n```python\n{_DEFINED}\n```", _DEFINED),
        ("```python\nprint(1)\n```", "print(1)"),
        (f"Sure. The function is:\n{_DEFINED}\n", _DEFINED),
        (f"from math import sqrt\n{_DEFINED}", f"from math import sqrt\n{_DEFINED}"),
        (_DEFINED, _DEFINED),
        ("I cannot do that.", None),
        ("import this", None),
        ("```python\n```", None),
        ("", None),
    ],
)
def test_the_code_of_an_answer_is_found(text: str, code: str | None) -> None:
    assert code_in(text) == code


@pytest.mark.parametrize(
    "text", ["`" * 100_000, "```\n" * 100_000, "~~~~python x\n" * 50_000, " " * 1_000_000, "@a" * 100_000]
)
@pytest.mark.timeout(10)
def test_hostile_answers_are_looked_through_in_little_time(text: str) -> None:
    code_in(text)


def test_tests_survive_being_written() -> None:
    assert is_tests(TARGET)
    assert parse_tests(TARGET) == TESTS


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ("18", "no tests"),
        ('{"proctor_tests": 1}', "no tests"),
        ('{"proctor_tests": {"entry": "f"}}', "no tests"),
        ('{"proctor_tests": {"entry": "f()", "tests": [[[], 1]]}}', "not the name of a function"),
        ('{"proctor_tests": {"entry": "f", "tests": []}}', "list of 1 to"),
        ('{"proctor_tests": {"entry": "f", "tests": [[[], 1], [1, 1]]}}', "test 2 is not"),
        ("[" * 100_000, "no tests"),
        ("x" * 300_000, "longer than"),
    ],
)
def test_what_is_no_tests_is_said(target: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_tests(target)


@pytest.mark.parametrize(
    ("value", "wanted", "right"),
    [
        (1, 1, True), (1, True, False), (True, 1, False), (2.0, 2, True), (0.1 + 0.2, 0.3, True), (0.31, 0.3, False),
        ("1", 1, False), ([1, [2]], [1, [2]], True), ([1], [1, 2], False), ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"b": 1}, False), (None, None, True), (Failed("ValueError"), None, False), (10**400, 1.5, False),
    ],
)  # fmt: skip
def test_values_are_compared_as_python_would_but_for_truth(value: Any, wanted: Any, right: bool) -> None:
    assert (tried(CodeTests("f", ((),), (wanted,)), Ran((value,))).passed == 1) is right


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(st.lists(json_values, max_size=2), json_values), min_size=1, max_size=4))
def test_what_gives_back_what_is_right_passes(pairs: list[tuple[list[Any], Any]]) -> None:
    tests = CodeTests("f", tuple(tuple(call) for call, _ in pairs), tuple(value for _, value in pairs))
    read = parse_tests(written_tests(tests))
    assert tried(read, Ran(read.expected)).outcome is Outcome.CORRECT


def test_a_program_has_to_pass_every_test_and_says_which_it_did_not() -> None:
    assert tried(TESTS, Ran((1, 2))).outcome is Outcome.CORRECT
    half = tried(TESTS, Ran((1, 5)))
    assert (half.outcome, half.passed, half.detail) == (
        Outcome.INCORRECT, 1, "1 of 2 tests passed; test 2: gave another result",
    )  # fmt: skip
    assert "test 1: KeyError" in tried(TESTS, Ran((Failed("KeyError"), 2))).detail


def test_a_program_that_did_not_end_in_time_is_invalid_and_one_that_used_its_time_up_is_wrong() -> None:
    assert tried(TESTS, Ran((1,), Fault.WALL)).outcome is Outcome.INVALID
    for fault in set(Fault) - {Fault.WALL}:
        assert tried(TESTS, Ran((1,), fault)).outcome is Outcome.INCORRECT
        assert fault.value in tried(TESTS, Ran((1,), fault)).detail


def never(code: str, entry: str, calls: Sequence[Sequence[Any]], /) -> Ran:
    raise AssertionError("nothing is to be run")


def test_code_longer_than_is_run_is_wrong_and_not_run() -> None:
    assert try_answer("x" * (MAX_CODE_CHARACTERS + 1), TARGET, never).fault is Fault.TOO_LONG


def test_without_something_that_runs_it_code_gets_no_grade() -> None:
    trial = Trial(arm=Arm.CANONICAL, item_id="i", prompt="?")
    with pytest.raises(CodeExecutionError, match="PROCTOR_CODE_EXECUTION=sandbox"):
        grade(trial, Completion(trial_id=trial.trial_id, text=_DEFINED), TARGET, EXTRACTORS["execution"])


def test_an_answer_without_code_is_invalid_and_nothing_is_run() -> None:
    trial = Trial(arm=Arm.CANONICAL, item_id="i", prompt="?")
    extractor = executing(EXTRACTORS["execution"], lambda code, target: try_answer(code, target, never).outcome)
    assert read_answer(trial, "I cannot.", TARGET, extractor).outcome is Outcome.INVALID


def test_other_extractors_judge_as_they_did() -> None:
    assert executing(EXTRACTORS["numeric"], Programs(lambda: CodeExecution.OFF)) is EXTRACTORS["numeric"]


def test_the_extractor_of_tests_is_told_from_the_items() -> None:
    items = [Item(item_id=str(n), question="?", target=TARGET) for n in range(3)]
    assert resolve_extractor("auto", items).name == "execution"
    assert resolve_extractor("execution", items).name == "execution"
    with pytest.raises(BadInputError, match="3 items have tests, 0 constraints and 1 plain answers"):
        resolve_extractor("auto", [*items, Item(item_id="x", question="?", target="5")])
    with pytest.raises(BadInputError, match="the target of item 'x' cannot be used: no tests"):
        resolve_extractor("execution", [*items, Item(item_id="x", question="?", target="5")])


class Counted:
    """Runs nothing, and counts."""

    def __init__(self, *rans: Ran) -> None:
        self.rans, self.n = list(rans), 0

    def __call__(self, code: str, entry: str, calls: Sequence[Sequence[Any]], /) -> Ran:
        self.n += 1
        return self.rans[min(self.n, len(self.rans)) - 1]


def test_the_same_code_has_one_outcome() -> None:
    run = Counted(Ran((1, 2)), Ran((1,), Fault.WALL))
    programs = Programs(lambda: CodeExecution.SANDBOX, opened=lambda: run)
    assert [programs(_DEFINED, TARGET) for _ in range(3)] == [Outcome.CORRECT] * 3
    assert run.n == 1
    assert programs(_DEFINED + "\n", TARGET) is Outcome.INVALID


def test_where_it_is_switched_off_nothing_is_opened() -> None:
    def opened() -> Any:
        raise AssertionError("nothing is to be opened")

    programs = Programs(lambda: CodeExecution.OFF, opened=opened)
    with pytest.raises(CodeExecutionError, match="PROCTOR_CODE_EXECUTION=sandbox"):
        programs(_DEFINED, TARGET)
