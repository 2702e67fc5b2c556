"""Benchmarks from files: mapping, sampling, and every kind of malformed row."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.suite import DatasetSection
from proctor.formats.items import LoadedItems, load_items, select_items
from tests.support import shared_data


def _section(path: str = "items.jsonl", **changes: Any) -> DatasetSection:
    return DatasetSection(benchmark_name="bench", path=path, **changes)


def _write(folder: Path, *rows: Any) -> None:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    (folder / "items.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _load(folder: Path, *rows: Any, **changes: Any) -> LoadedItems:
    _write(folder, *rows)
    return load_items(_section(**changes), folder, folder)


def _refusal(folder: Path, *rows: Any, **changes: Any) -> str:
    with pytest.raises(BadInputError) as refused:
        _load(folder, *rows, **changes)
    return str(refused.value)


GOOD = {"question": "Why?", "answer": "because"}
MALFORMED = [
    ('{"question": "a"', "not JSON at column"),
    ("[1, 2]", "a JSON object is needed, not [1, 2]"),
    ('{"question": "a", "question": "b", "answer": "c"}', "the key 'question' stands twice"),
    ('{"question": "a", "answer": NaN}', "NaN is not a JSON number"),
    ('{"question": "a", "answer": 1e999}', "answer is inf; a finite number is needed"),
    ('{"question": "a\\ud800", "answer": "b"}', "question is 'a\\ud800', which is not valid Unicode"),
    ({"question": "  ", "answer": "b"}, "question is empty"),
    ({"question": 5, "answer": "b"}, "question is 5; text is needed"),
    ({"prompt": "a", "answer": "b"}, "has no field 'question' (fields: prompt, answer)"),
    ({"question": "a"}, "has no field 'answer'"),
    ({"question": "a", "answer": ""}, "it holds no answer"),
    ({"question": "a", "answer": True}, "answer is True; text or a number is needed"),
    ({"question": "a", "answer": ["b", "c"]}, "answer is ['b', 'c']; text or a number is needed"),
    ({"question": "a", "choices": ["x", "y"], "answer": 2}, "answer is 2; the 2 options have the indices 0 to 1"),
    ({"question": "a", "choices": ["x", "y"], "answer": "z"}, "answer is 'z', which is no option"),
    ({"question": "a", "choices": ["B", "x"], "answer": "B"}, "the text of one option and the place of another"),
    ({"question": "a", "choices": ["x", "x"], "answer": 0}, "which stands 2 times"),
    ({"question": "a", "choices": ["x"], "answer": 0}, "choices has 1 options"),
    ({"question": "a", "choices": ["x", " "], "answer": 0}, "an option is empty"),
    ({"question": "a", "choices": "x or y", "answer": 0}, "write the options as a JSON list"),
    ("[" * 100_000, "not JSON that can be read"),
    ('{"question": "a", "answer": ' + "9" * 5000 + "}", "not JSON that can be read"),
]


@pytest.mark.parametrize(("row", "fault"), MALFORMED, ids=[fault for _, fault in MALFORMED])
def test_a_malformed_row_is_named_with_its_line_and_value(tmp_path: Path, row: Any, fault: str) -> None:
    message = _refusal(tmp_path, GOOD, row)
    assert "items.jsonl:2: " in message
    assert fault in message
    assert len(message) < 600


def test_all_faults_of_a_file_are_told_at_once_up_to_ten(tmp_path: Path) -> None:
    three = _refusal(tmp_path, {"question": ""}, GOOD, "x", {"question": "a"})
    assert [line.split(":")[1] for line in three.splitlines()[1:]] == ["1", "3", "4"]
    many = _refusal(tmp_path, *(["x"] * 50))
    assert len(many.splitlines()) == 11
    assert "reading stopped at 10" in many


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_bytes(b'{"question": "a\xff", "answer": "b"}\n')
    with pytest.raises(BadInputError, match=r"items\.jsonl:1: byte 16 \(0xff\) is not UTF-8"):
        load_items(_section(), tmp_path, tmp_path)


def test_a_gigantic_line_is_a_fault_and_reading_goes_on(tmp_path: Path) -> None:
    message = _refusal(tmp_path, {"question": "a" * (1 << 20), "answer": "b"}, "x")
    assert "items.jsonl:1: the line is longer than 1048576 bytes" in message
    assert "items.jsonl:2: not JSON" in message


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("items.jsonl", "", "holds no items"),
        ("items.json", '[{"question": "a"}]', "one JSON array"),
        ("items.xlsx", "x", "ends in '.xlsx'"),
        ("items.parquet", "not parquet", "cannot be read as Parquet"),
        ("items.csv", "question,answer\na\n", "1 cells where the header has 2 columns"),
        ("items.csv", "question,question\na,b\n", "stands twice in the header"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path, name: str, content: str, fault: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(BadInputError, match=fault):
        load_items(_section(name), tmp_path, tmp_path)


def test_a_missing_file_and_an_unknown_benchmark_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"absent\.jsonl cannot be read: No such file"):
        load_items(_section("absent.jsonl"), tmp_path, tmp_path)
    with pytest.raises(BadInputError, match="'mmlu', which does not come with Proctor"):
        load_items(DatasetSection(benchmark_name="mmlu"), tmp_path, tmp_path)


@pytest.mark.parametrize("place", ["mmlu.jsonl", "mmlu/test.jsonl", "mmlu/main/test.jsonl"])
def test_a_benchmark_without_a_path_is_found_in_the_operators_folder(tmp_path: Path, place: str) -> None:
    file = tmp_path / "benchmarks" / place
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(GOOD) + "\n")
    loaded = load_items(DatasetSection(benchmark_name="mmlu"), tmp_path, tmp_path, tmp_path / "benchmarks")
    assert loaded.source == str(file)
    assert len(loaded.items) == 1


def test_a_benchmark_that_the_operators_folder_lacks_is_refused_with_the_place_for_it(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"put it at .*/benchmarks/mmlu/main/test\.jsonl"):
        load_items(DatasetSection(benchmark_name="mmlu"), tmp_path, tmp_path, tmp_path / "benchmarks")


@pytest.mark.parametrize("variant", ["../../secret", "..", "/etc"])
def test_a_variant_that_climbs_out_of_the_folder_finds_nothing_there(tmp_path: Path, variant: str) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "test.jsonl").write_text(json.dumps(GOOD) + "\n")
    section = DatasetSection(benchmark_name="mmlu", dataset_variant=variant)
    with pytest.raises(BadInputError, match="does not come with Proctor"):
        load_items(section, tmp_path, tmp_path, tmp_path / "benchmarks")


def test_identifiers_come_from_the_field_the_usual_names_or_the_place(tmp_path: Path) -> None:
    assert [item.item_id for item in _load(tmp_path, GOOD, GOOD).items] == ["bench-00000", "bench-00001"]
    assert [item.item_id for item in _load(tmp_path, {**GOOD, "id": 7}).items] == ["7"]
    assert [item.item_id for item in _load(tmp_path, {**GOOD, "id": 7, "k": "x"}, id_field="k").items] == ["x"]


def test_an_identifier_that_stands_twice_is_refused_and_equal_contents_are_reported(tmp_path: Path) -> None:
    assert "items.jsonl:2: the identifier 'a' stands at 1 already" in _refusal(
        tmp_path, {**GOOD, "id": "a"}, {**GOOD, "id": "a"}
    )
    loaded = _load(tmp_path, {**GOOD, "id": "a"}, {**GOOD, "id": "b"})
    assert loaded.duplicates == (("a", "b"),)
    assert any("repeated items are no independent evidence" in note for note in loaded.notes(_section()))


@pytest.mark.parametrize(
    ("answer", "target"),
    [(1, "blue"), ("B", "blue"), ("b", "blue"), ("blue", "blue"), ("1", "blue")],
)
def test_the_right_option_may_be_an_index_a_letter_or_its_text(tmp_path: Path, answer: Any, target: str) -> None:
    [item] = _load(tmp_path, {"question": "a", "choices": ["red", "blue"], "answer": answer}).items
    assert item.target == target


def test_a_number_as_text_means_the_option_of_that_text_where_values_have_types(tmp_path: Path) -> None:
    [item] = _load(tmp_path, {"question": "1+1", "choices": ["1", "2", "3"], "answer": "2"}).items
    assert item.target == "2"
    (tmp_path / "items.csv").write_text('question,choices,answer\n1+1,"[""1"",""2"",""3""]",2\n')
    with pytest.raises(BadInputError, match="the text of one option and the place of another"):
        load_items(_section("items.csv"), tmp_path, tmp_path)


def test_labels_of_options_are_understood(tmp_path: Path) -> None:
    row = {"question": "a", "choices": {"text": ["x", "y"], "label": ["1", "2"]}, "answer": "1"}
    [item] = _load(tmp_path, row).items
    assert item.target == "x"


@pytest.mark.parametrize(
    ("answer", "target"),
    [("He has <<2*35=70>>70k.\n#### 70,000", "70000"), ("1,234", "1234"), (3, "3"), (2.5, "2.5"), ("a, b", "a, b")],
)
def test_worked_solutions_and_grouped_numbers_become_plain_answers(tmp_path: Path, answer: Any, target: str) -> None:
    [item] = _load(tmp_path, {"question": "a", "answer": answer}).items
    assert item.target == target


def test_jsonl_csv_and_parquet_give_the_same_items(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [
        {"question": "Ä, b\nc?", "choices": ["x", "y"], "answer": "y"},
        {"question": "d", "choices": ["u", "v"], "answer": "A"},
    ]
    _write(tmp_path, *rows)
    cells = [json.dumps(row["choices"]).replace('"', '""') for row in rows]
    body = "".join(f'"{row["question"]}","{cell}",{row["answer"]}\r\n' for row, cell in zip(rows, cells, strict=True))
    (tmp_path / "items.csv").write_bytes(b"\xef\xbb\xbf" + f"question,choices,answer\r\n{body}".encode())
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "items.parquet")
    loaded = [load_items(_section(f"items.{kind}"), tmp_path, tmp_path) for kind in ("jsonl", "csv", "parquet")]
    assert loaded[0].items == loaded[1].items == loaded[2].items
    assert len({each.digest for each in loaded}) == 3


def test_a_csv_row_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_bytes(b"question,answer\ngood,1\nb\xffd,2\n")
    with pytest.raises(BadInputError, match=r"items\.csv:3: question is .* not valid Unicode"):
        load_items(_section("items.csv"), tmp_path, tmp_path)


def _many(count: int) -> list[Item]:
    return [Item(item_id=f"i{n}", question=f"q{n}", target="t") for n in range(count)]


def test_first_takes_the_first_items_in_file_order() -> None:
    assert select_items(_many(9), _section(selection="first", sample_size=3)) == tuple(_many(3))


def test_the_same_seed_draws_the_same_items_whatever_the_files_order() -> None:
    section = _section(sample_size=5, sampling_seed=3)
    drawn = select_items(_many(50), section)
    assert drawn == select_items(_many(50)[::-1], section)
    # The draw is part of every fingerprint, so it may never move.
    assert [item.item_id for item in drawn] == ["i42", "i44", "i24", "i21", "i37"]


def test_another_seed_draws_others_and_every_item_comes_up_as_often() -> None:
    counts = Counter(
        item.item_id
        for seed in range(2000)
        for item in select_items(_many(10), _section(sample_size=2, sampling_seed=seed))
    )
    # Mean 400, standard deviation 17.9: five of them either way.
    assert all(310 < counts[f"i{n}"] < 490 for n in range(10))


def test_a_sample_larger_than_the_file_is_the_file_and_is_reported(tmp_path: Path) -> None:
    section = _section(sample_size=500)
    loaded = _load(tmp_path, {**GOOD, "id": "a"}, {"question": "b", "answer": "c", "id": "b"})
    assert {item.item_id for item in select_items(loaded.items, section)} == {"a", "b"}
    assert "2 items: all are asked" in loaded.notes(section)[0]


def test_gsm8k_loads_as_it_is_published() -> None:
    loaded = load_items(DatasetSection(benchmark_name="gsm8k", path="gsm8k/test.jsonl"), shared_data(), Path())
    assert len(loaded.items) == 1319
    assert loaded.items[2].target == "70000"
    assert all(item.target.lstrip("-").isdigit() for item in loaded.items)


def test_the_shipped_benchmark_loads_without_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "proctor-facts"
    folder.mkdir()
    row = {"item_id": "f1", "question": "q", "choices": ["x", "y"], "target": 1}
    row |= {"dimension": "d", "metadata": {"entity": "E"}}
    (folder / "items.jsonl").write_text(json.dumps(row))
    [item] = load_items(DatasetSection(benchmark_name="proctor-facts"), tmp_path / "else", tmp_path).items
    assert (item.item_id, item.target, item.dimension, item.metadata) == ("f1", "y", "d", {"entity": "E"})


def clusters_of(folder: Path, *rows: Any, **changes: Any) -> list[str | None]:
    return [item.cluster for item in _load(folder, *rows, **{"cluster_field": "passage", **changes}).items]


def test_a_row_names_its_cluster_and_one_that_names_none_is_its_own(tmp_path: Path) -> None:
    rows = [{**GOOD, "passage": name} for name in ("p", 7, " p ", "7", 7.0, None, "", "  ")]
    assert clusters_of(tmp_path, *rows, GOOD) == ["p", "7", "p", "7", "7", None, None, None, None]
    assert clusters_of(tmp_path, *rows, cluster_field=None) == [None] * 8


def test_a_passage_itself_may_name_the_cluster_and_no_label_can_act_on_a_terminal(tmp_path: Path) -> None:
    passage, hostile = "The railway came. " * 200, "\x1b[31mred\u202e<script>"
    long, again, other, red = clusters_of(
        tmp_path, *({**GOOD, "passage": text} for text in (passage, passage, f"{passage}And went.", hostile))
    )
    assert long == again
    assert len({long, other, red}) == 3
    assert all(label is not None and label.isalnum() and len(label) == 16 for label in (long, other, red))


@pytest.mark.parametrize("value", [True, [1], {"id": 1}, 2.5])
def test_what_names_nothing_is_refused(tmp_path: Path, value: Any) -> None:
    refused = _refusal(tmp_path, {**GOOD, "passage": "p"}, {**GOOD, "passage": value}, cluster_field="passage")
    assert f"items.jsonl:2: passage is {value!r}; a cluster is named by text or a whole number" in refused


def test_a_column_without_any_value_is_refused(tmp_path: Path) -> None:
    refused = _refusal(tmp_path, {**GOOD, "passage": None}, GOOD, cluster_field="passage")
    assert "no row has a value in the column 'passage', which dataset_config.cluster_field names" in refused
    assert '"@context"' in refused


def test_clusters_come_from_csv_as_well(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("question,answer,unit\na,1,u\nb,2,\nc,3,u\n")
    loaded = load_items(_section("items.csv", cluster_field="unit"), tmp_path, tmp_path)
    assert [item.cluster for item in loaded.items] == ["u", None, "u"]


def test_clusters_leave_what_an_item_is_and_how_it_is_stored_as_it_was(tmp_path: Path) -> None:
    [alone] = _load(tmp_path, GOOD).items
    [clustered] = _load(tmp_path, {**GOOD, "passage": "p"}, cluster_field="passage").items
    assert "cluster" not in alone.plain()
    assert clustered.plain() == {**alone.plain(), "cluster": "p"}
    assert clustered.content_hash == alone.content_hash


def test_the_reserved_name_takes_the_passages_that_are_found(tmp_path: Path) -> None:
    passages = [" ".join(f"word{seed}x{place}" for place in range(30)) for seed in range(2)]
    rows = [{"question": f"{passages[place % 2]}. Question {place}?", "answer": "x"} for place in range(4)]
    assert clusters_of(tmp_path, *rows, GOOD, cluster_field="@context") == [
        "bench-00000", "bench-00001", "bench-00000", "bench-00001", None,
    ]  # fmt: skip
    assert clusters_of(tmp_path, GOOD, {**GOOD, "question": "How?"}, cluster_field="@context") == [None, None]
