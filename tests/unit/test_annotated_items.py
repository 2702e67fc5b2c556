"""Items that people wrote: every fault of every row is told, with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.errors import BadInputError
from proctor.grading import resolve_extractor
from proctor.studies.datasets.annotated import read_annotated
from proctor.studies.datasets.dimensions import DIMENSIONS
from proctor.studies.datasets.item_files import read_items, written_items

_GOOD = {"item_id": "a", "question": "Who wrote the first letter?", "answer": "Ilsa"}


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def fault(folder: Path, *rows: dict[str, Any], dimension: str = "factual_recall", scoring: str = "exact") -> str:
    path = write(folder, *rows)
    with pytest.raises(BadInputError) as raised:
        read_annotated(path, DIMENSIONS[dimension], scoring)
    return str(raised.value)


def test_rows_become_items_with_their_dimension_and_scoring(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        _GOOD,
        {"item_id": "b", "question": "And who the second one?", "answer": 7, "metadata": {"by": "me"}},
    ]
    first, second = read_annotated(write(tmp_path, *rows), DIMENSIONS["factual_recall"], "exact")
    assert (first.item_id, first.target, first.dimension) == ("a", "Ilsa", "factual_recall")
    assert first.metadata == {"scoring": "exact", "template": "annotated"}
    assert (second.target, second.metadata["by"]) == ("7", "me")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({**_GOOD, "question": "Who wrote it first?"}, "2: the identifier 'a' stands at 1 already"),
        ({**_GOOD, "item_id": "b", "question": "who  wrote THE first letter?"}, "2: asks what 1 asks"),
        ({"item_id": "b", "question": "Who?", "answer": "x"}, "2: question is 'Who?', which asks nearly nothing"),
        ({"item_id": "b", "question": "Who wrote it then?"}, "2: has no field 'answer'"),
        ({"item_id": "b", "question": "Who wrote it then?", "answer": "  "}, "holds no answer"),
        (
            {**_GOOD, "item_id": "b", "question": "Which other one?", "dimension": "reasoning"},
            "one file, one dimension",
        ),
        ({**_GOOD, "item_id": "b", "question": "Which other one?", "dimension": "wit"}, "dimension is 'wit'"),
        ({"question": "Who wrote it then?", "answer": "x"}, "has no field 'item_id'"),
    ],
)
def test_each_fault_is_told_with_its_line(tmp_path: Path, row: dict[str, Any], said: str) -> None:
    assert said in fault(tmp_path, _GOOD, row)


def test_what_items_share_is_kept(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {**_GOOD, "cluster": "letters"},
        {"item_id": "b", "question": "And who the second one?", "answer": "7"},
    ]
    items = read_annotated(write(tmp_path, *rows), DIMENSIONS["factual_recall"], "exact")
    assert [item.cluster for item in items] == ["letters", None]
    (tmp_path / "out.jsonl").write_bytes(written_items(items))
    assert list(read_items(tmp_path / "out.jsonl")) == items


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    said = fault(
        tmp_path, _GOOD, {"item_id": "b", "question": "Who?", "answer": "x"}, {**_GOOD, "question": "Who is it?"}
    )
    assert "has 2 faults" in said
    assert "own.jsonl:2:" in said
    assert "own.jsonl:3:" in said


def test_rows_without_a_name_are_refused(tmp_path: Path) -> None:
    assert "neither item_id nor id" in fault(tmp_path, {"question": "Who wrote it?", "answer": "x"})
    assert "holds no items" in fault(tmp_path)


@pytest.mark.parametrize(
    ("scoring", "answer", "choices"),
    [
        ("numeric", "eighteen", None),
        ("hash_marker", "18 apples", None),
        ("last_number", "many", None),
        ("article", "New York", None),
        ("exact", "!!!", None),
        ("choice_letter", "A", None),
    ],
)
def test_an_answer_that_the_extractor_would_not_read_is_refused(
    tmp_path: Path, scoring: str, answer: str, choices: list[str] | None
) -> None:
    row = {"item_id": "a", "question": "What is it, then?", "answer": answer, "choices": choices}
    said = fault(tmp_path, row, dimension="reasoning", scoring=scoring)
    assert "would not read" in said or "has no choices" in said


@pytest.mark.parametrize(
    ("scoring", "answer", "choices"),
    [
        ("numeric", "1,800", None),
        ("numeric", "worked\n#### 18", None),
        ("hash_marker", 18, None),
        ("last_number", "18", None),
        ("answer_phrase", "New York", None),
        ("boxed", "x+1", None),
        ("article", "Paris", None),
        ("choice_letter", "B", ["Rome", "Oslo"]),
    ],
)
def test_an_answer_that_it_reads_is_taken(tmp_path: Path, scoring: str, answer: Any, choices: list[str] | None) -> None:
    row = {"item_id": "a", "question": "What is it, then?", "answer": answer, "choices": choices}
    (item,) = read_annotated(write(tmp_path, row), DIMENSIONS["reasoning"], scoring)
    assert resolve_extractor(scoring, [item]).name == scoring


def test_tests_and_constraints_are_written_as_objects_or_as_text(tmp_path: Path) -> None:
    tests = {"entry": "f", "tests": [[[1], 2]]}
    rows: list[dict[str, Any]] = [
        {"item_id": "a", "question": "Write f, which adds one.", "answer": tests},
        {"item_id": "b", "question": "Write f, which adds one again.", "answer": {"proctor_tests": tests}},
        {"item_id": "c", "question": "Write f, which adds one still.", "answer": json.dumps({"proctor_tests": tests})},
    ]
    items = read_annotated(write(tmp_path, *rows), DIMENSIONS["code_generation"], "execution")
    assert resolve_extractor("auto", items[:2]).name == "execution"
    row = {"item_id": "a", "question": "Write in lower case.", "answer": [{"kind": "lower_case"}]}
    (item,) = read_annotated(write(tmp_path, row), DIMENSIONS["instruction_following"], "constraints")
    assert resolve_extractor("auto", [item]).name == "constraints"


@pytest.mark.parametrize("answer", [{"entry": "f"}, [1], "def f(): pass", {"entry": "f", "tests": [[1, 2]]}])
def test_tests_that_are_none_are_refused_with_the_line(tmp_path: Path, answer: Any) -> None:
    row = {"item_id": "a", "question": "Write f, which adds one.", "answer": answer}
    assert "own.jsonl:1: answer cannot be used" in fault(
        tmp_path, row, dimension="code_generation", scoring="execution"
    )
