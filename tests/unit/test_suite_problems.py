"""Malformed suites: every fault is said once, at its place, with what to do, and nothing reaches standard output."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from proctor.cli.suite import suite as command
from proctor.domain.errors import BadInputError
from proctor.domain.suite_problems import SuiteProblems, parse_suite
from proctor.formats.suites import load_suite
from tests.suites.examples import SMALL, with_changes

SUITES = Path(__file__).resolve().parents[1] / "suites"
MALFORMED = sorted((SUITES / "malformed").iterdir())
EXPECTED: dict[str, list[str]] = json.loads((SUITES / "malformed.expected.json").read_text("utf-8"))
#: Words of the validator and of Python's reader; none of them is for the person who wrote the suite.
LEAKS = re.compile(
    r"Input should|Field required|Extra inputs|valid (string|integer|number)|pydantic|Expecting|Value error"
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)
FIELDS = [f"{section}.{key}" for section, value in SMALL.items() if isinstance(value, dict) for key in value]
PATHS = FIELDS + list(SMALL)


def problems_of(text: str | bytes) -> list[str]:
    with pytest.raises(SuiteProblems) as caught:
        parse_suite(text)
    return [str(problem) for problem in caught.value.problems]


def test_there_is_an_expectation_for_every_malformed_suite() -> None:
    assert {path.name for path in MALFORMED} == set(EXPECTED)
    assert len(MALFORMED) >= 10


@pytest.mark.parametrize("path", MALFORMED, ids=lambda path: path.stem)
def test_a_malformed_suite_gives_one_clear_message_per_fault(path: Path) -> None:
    assert problems_of(path.read_bytes()) == EXPECTED[path.name]


@pytest.mark.parametrize("path", MALFORMED, ids=lambda path: path.stem)
@pytest.mark.parametrize("arguments", [["validate"], ["validate", "--format", "json"], ["fingerprint"]], ids=" ".join)
def test_the_command_prints_every_problem_to_standard_error_and_exits_with_2(path: Path, arguments: list[str]) -> None:
    result = CliRunner().invoke(command, [*arguments, str(path)])
    assert (result.exit_code, result.stdout) == (2, "")
    *lines, count = result.stderr.splitlines()
    assert lines == [f"{path}: {expected}" for expected in EXPECTED[path.name]]
    assert count == f"{len(lines)} problem{'s' if len(lines) > 1 else ''}."


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"nowhere\.json cannot be read: No such file"):
        load_suite(tmp_path / "nowhere.json")
    with pytest.raises(BadInputError, match="cannot be read: Is a directory"):
        load_suite(tmp_path)


def test_a_file_without_an_end_is_refused_without_reading_it_all() -> None:
    with pytest.raises(SuiteProblems, match="larger than 1 MiB"):
        load_suite(Path("/dev/zero"))


def test_many_unknown_keys_are_counted_and_not_all_printed() -> None:
    with pytest.raises(SuiteProblems) as caught:
        parse_suite(json.dumps({**SMALL, **{f"key{index}": 1 for index in range(500)}}))
    assert len(caught.value.problems) == 500
    assert len(caught.value.lines()) == 51
    assert caught.value.lines()[-1].endswith("450 more problems")


def test_a_long_value_is_shortened() -> None:
    (line,) = problems_of(json.dumps(with_changes({"model_config.model_version": "v" * 10_000})))
    assert len(line) < 300


def test_the_python_names_of_fields_are_unknown_keys() -> None:
    (line,) = problems_of(json.dumps({**SMALL, "scoring": {}}))
    assert line == "scoring: {} is an unknown key; did you mean scoring_config?"


def test_a_utf8_byte_order_mark_is_passed_over() -> None:
    text = json.dumps(SMALL)
    assert parse_suite(b"\xef\xbb\xbf" + text.encode()) == parse_suite("\ufeff" + text) == parse_suite(text)


def test_problems_come_in_the_order_of_the_file() -> None:
    text = (
        '{"governance": {"audit_owner": 1}, "audit_suite_id": 2, "model_config": {"endpoint": 3}, "dataset_config": 4}'
    )
    paths = [line.split(":")[0] for line in problems_of(text)]
    assert paths == [
        "governance.audit_owner",
        "audit_suite_id",
        "model_config.endpoint",
        "model_config.model_id",
        "model_config.model_version",
        "dataset_config",
    ]


@given(st.dictionaries(st.sampled_from(PATHS), JSON_VALUES, min_size=1, max_size=4))
def test_whatever_stands_in_a_suite_the_answer_is_a_suite_or_words_of_our_own(changes: dict[str, Any]) -> None:
    text = json.dumps(with_changes(changes))
    try:
        parse_suite(text)
    except SuiteProblems as error:
        found = error
    else:
        return
    places = [problem.path for problem in found.problems]
    assert places
    assert len(places) == len(set(places))
    assert not any(LEAKS.search(problem.message + problem.mend) for problem in found.problems)
    assert all(line.isprintable() for line in found.lines())


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("latin-1")))
def test_no_text_at_all_makes_the_reader_stumble(text: str) -> None:
    for source in (text, text.encode("utf-8", errors="surrogatepass"), "{" + text, '{"a": ' + text + "}"):
        with pytest.raises(SuiteProblems):
            parse_suite(source)
