"""Control items of a suite: what is read, what is refused with a reason, and what travels with the suite."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.suite import Suite
from proctor.formats.beside import ItemsBeside
from proctor.formats.control import load_control
from proctor.formats.fresh import load_fresh
from proctor.formats.items import load_items
from proctor.formats.suites import content_digests
from proctor.gateway.attachments import gather_attached
from proctor.gateway.named_files import named_files
from proctor.router.submit.gathering import gather
from tests.suites.examples import SMALL

BENCHMARK = [{"id": f"q{n}", "question": f"What is {n} plus one?", "answer": str(n + 1)} for n in range(10)]
FRESH = [{"id": f"f{n}", "question": f"What is {n} plus two?", "answer": str(n + 2)} for n in range(4)]
CONTROL = [{"id": f"c{n}", "question": f"What is {n} plus six?", "answer": str(n + 6)} for n in range(30)]


def lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def suite_of(folder: Path, control: Iterable[Mapping[str, Any]] = CONTROL, **section: Any) -> Suite:
    (folder / "items.jsonl").write_text(lines(BENCHMARK))
    (folder / "fresh.jsonl").write_text(lines(FRESH))
    (folder / "control.jsonl").write_text(lines(control))
    return Suite.model_validate(
        {
            **SMALL,
            "dataset_config": {"benchmark_name": "sums", "path": "items.jsonl"},
            "fresh_config": {"path": "fresh.jsonl"},
            "control_config": {"path": "control.jsonl", **section},
        }
    )


def loaded(folder: Path, control: Iterable[Mapping[str, Any]] = CONTROL, **section: Any) -> ItemsBeside:
    suite = suite_of(folder, control, **section)
    benchmark = load_items(suite.dataset, folder, folder).items
    fresh = load_fresh(suite, folder, benchmark)
    assert fresh is not None
    found = load_control(suite, folder, benchmark, fresh.items)
    assert found is not None
    return found


def test_control_items_are_read_under_the_benchmark_s_columns(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert {item.item_id for item in found.items} == {row["id"] for row in CONTROL}
    assert {item.cluster for item in found.items} == {None}


def test_what_they_share_is_read_from_a_column_of_their_own(tmp_path: Path) -> None:
    rows = [{**row, "table": f"t{place // 3}"} for place, row in enumerate(CONTROL)]
    clusters = {item.cluster for item in loaded(tmp_path, rows, cluster_field="table").items}
    assert len(clusters) == 10


def test_items_without_ids_are_no_namesakes_of_the_benchmark_s(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "id"} for row in CONTROL]
    assert {item.item_id for item in loaded(tmp_path, rows).items} == {f"sums-control-{n:05d}" for n in range(30)}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({**CONTROL[0], "id": "q3"}, "q3 is an id of the benchmark's"),
        (
            {**BENCHMARK[4], "id": "other", "question": "what is  4 PLUS one?"},
            "other asks what the benchmark asks, so that it may have leaked as well",
        ),
        ({"id": "c", "prompt": "x", "answer": "1"}, "set control_config.question_field"),
        ({**CONTROL[0], "id": "f1"}, "f1 is the id of other fresh items"),
    ],
)
def test_what_cannot_control_is_refused_by_name(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        loaded(tmp_path, [row])


def test_a_fresh_item_may_be_a_control_item_too(tmp_path: Path) -> None:
    assert {item.item_id for item in loaded(tmp_path, FRESH).items} == {row["id"] for row in FRESH}
    gather(suite_of(tmp_path, FRESH), tmp_path, tmp_path)


def test_a_missing_file_is_named_with_its_field(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    (tmp_path / "control.jsonl").unlink()
    with pytest.raises(BadInputError, match=r"control\.jsonl"):
        load_control(suite, tmp_path, ())


def test_answers_that_would_be_read_in_another_way_control_nothing(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, [{"id": "c", "question": "Which city?", "answer": "Rome"}])
    with pytest.raises(BadInputError, match="answers to the control items would be read as exact"):
        gather(suite, tmp_path, tmp_path)


def test_the_file_travels_with_the_suite_and_changes_its_card(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    assert content_digests(suite, tmp_path, tmp_path).control
    assert "control.jsonl" in named_files(suite)
    here = gather(suite, tmp_path, tmp_path)
    sent = gather_attached(suite, {name: (tmp_path / name).read_bytes() for name in named_files(suite)}, tmp_path)
    assert (sent.control, sent.contents) == (here.control, here.contents)
    assert here.control is not None
    assert len(here.control.items) == len(CONTROL)
