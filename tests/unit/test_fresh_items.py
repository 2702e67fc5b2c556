"""Fresh items of a suite, and a panel's answers to them: what is read, and what is refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.suite import Suite
from proctor.formats.beside import ItemsBeside
from proctor.formats.fresh import load_fresh
from proctor.formats.items import load_items
from proctor.formats.panel import panel_notes, parse_panel
from proctor.formats.suites import content_digests
from proctor.gateway.attachments import gather_attached
from proctor.gateway.named_files import named_files
from proctor.router.submit.gathering import gather
from tests.suites.examples import SMALL

BENCHMARK = [{"id": f"q{n}", "question": f"What is {n} plus one?", "answer": str(n + 1)} for n in range(10)]
FRESH = [{"id": f"f{n}", "question": f"What is {n} plus two?", "answer": str(n + 2)} for n in range(8)]


def lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def suite_of(folder: Path, fresh: Iterable[Mapping[str, Any]] = FRESH, panel: str = "", **section: Any) -> Suite:
    (folder / "items.jsonl").write_text(lines(BENCHMARK))
    (folder / "fresh.jsonl").write_text(lines(fresh))
    named = {}
    if panel:
        (folder / "panel.jsonl").write_text(panel)
        named = {"panel_path": "panel.jsonl"}
    return Suite.model_validate(
        {
            **SMALL,
            "dataset_config": {"benchmark_name": "sums", "path": "items.jsonl"},
            "fresh_config": {"path": "fresh.jsonl", **named, **section},
        }
    )


def loaded(folder: Path, fresh: Iterable[Mapping[str, Any]] = FRESH, **section: Any) -> ItemsBeside:
    suite = suite_of(folder, fresh, **section)
    found = load_fresh(suite, folder, load_items(suite.dataset, folder, folder).items)
    assert found is not None
    return found


def test_fresh_items_are_read_under_the_benchmark_s_columns(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert {item.item_id for item in found.items} == {row["id"] for row in FRESH}
    assert {item.target for item in found.items} == {row["answer"] for row in FRESH}
    assert found.available == len(FRESH)


def test_columns_of_their_own_go_first(tmp_path: Path) -> None:
    rows = [{"id": "f", "text": "What is 1 plus two?", "answer": "3"}]
    assert loaded(tmp_path, rows, question_field="text").items[0].question == "What is 1 plus two?"


def test_a_smaller_sample_is_drawn_as_the_benchmark_s_is(tmp_path: Path) -> None:
    few, all_of_them = loaded(tmp_path, sample_size=3), loaded(tmp_path)
    assert few.items == all_of_them.items[:3]


def test_items_without_ids_are_no_namesakes_of_the_benchmark_s(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "id"} for row in FRESH]
    assert {item.item_id for item in loaded(tmp_path, rows).items} == {f"sums-fresh-{n:05d}" for n in range(8)}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({**FRESH[0], "id": "q3"}, "q3 is an id of the benchmark's"),
        ({**BENCHMARK[4], "id": "other", "question": "what is  4 PLUS one?"}, "other asks what the benchmark asks"),
        ({"id": "f", "prompt": "x", "answer": "1"}, "set fresh_config.question_field"),
    ],
)
def test_what_cannot_be_fresh_is_refused_by_name(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        loaded(tmp_path, [row])


def test_a_missing_file_is_named_with_its_field(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    (tmp_path / "fresh.jsonl").unlink()
    with pytest.raises(BadInputError, match=r"fresh\.jsonl"):
        load_fresh(suite, tmp_path, ())


def test_answers_that_would_be_read_in_another_way_cannot_be_compared(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, [{"id": "f", "question": "Which city?", "answer": "Rome"}])
    with pytest.raises(BadInputError, match="read as exact, and those to the benchmark as numeric"):
        gather(suite, tmp_path, tmp_path)


def test_the_files_travel_with_the_suite_and_change_its_card(tmp_path: Path) -> None:
    panel = lines({"model": "a", "item_id": row["id"], "correct": True} for row in (*BENCHMARK, *FRESH))
    suite = suite_of(tmp_path, panel=panel)
    digests = content_digests(suite, tmp_path, tmp_path)
    assert digests.fresh
    assert digests.panel
    assert {"fresh.jsonl", "panel.jsonl"} <= set(named_files(suite))
    here = gather(suite, tmp_path, tmp_path)
    sent = gather_attached(suite, {name: (tmp_path / name).read_bytes() for name in named_files(suite)}, tmp_path)
    assert (sent.fresh, sent.panel, sent.contents) == (here.fresh, here.panel, here.contents)
    assert here.fresh is not None
    assert len(here.fresh.items) == len(FRESH)


def test_a_panel_is_its_models_by_name_with_their_right_and_wrong_items() -> None:
    rows = [
        {"model": "b", "item_id": "q1", "correct": True},
        {"model": "a", "item_id": "q2", "correct": False},
        {"model": "a", "item_id": "q1", "correct": True},
    ]
    panel = parse_panel(lines(rows).encode(), "panel.jsonl")
    assert [(model.name, model.right, model.wrong) for model in panel.models] == [
        ("a", ("q1",), ("q2",)),
        ("b", ("q1",), ()),
    ]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"model": "a", "item_id": "q1"}, "correct is None; true or false is needed"),
        ({"model": "a", "item_id": "q1", "correct": 1}, "correct is 1; true or false is needed"),
        ({"model": " ", "item_id": "q1", "correct": True}, "text is needed"),
        ({"model": "a\x1b[2J", "item_id": "q1", "correct": True}, "printable characters"),
        ({"model": "a", "item_id": 3, "correct": True}, "item_id is 3; text is needed"),
    ],
)
def test_a_row_that_says_no_answer_is_a_fault_with_its_line(row: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError, match=words) as raised:
        parse_panel(lines([{"model": "a", "item_id": "q0", "correct": True}, row]).encode(), "panel.jsonl")
    assert "panel.jsonl:2" in str(raised.value)


def test_a_model_that_answers_both_ways_is_refused() -> None:
    rows = [{"model": "a", "item_id": "q0", "correct": said} for said in (True, False)]
    with pytest.raises(BadInputError, match="both rightly and wrongly"):
        parse_panel(lines(rows).encode(), "panel.jsonl")


def test_items_that_a_model_of_the_panel_did_not_answer_are_said_and_a_panel_without_common_items_is_none() -> None:
    rows = [{"model": model, "item_id": item, "correct": True} for model in "ab" for item in ("q1", "f1")]
    panel = parse_panel(lines([*rows, {"model": "a", "item_id": "q2", "correct": True}]).encode(), "p")
    assert panel_notes(panel, {"q1"}, {"f1"}, "p") == ()
    (note,) = panel_notes(panel, {"q1", "q2"}, {"f1"}, "p")
    assert "1 of the 2 benchmark items" in note
    with pytest.raises(BadInputError, match="no fresh item of the suite was answered by every reference model"):
        panel_notes(panel, {"q1"}, {"f2"}, "p")
