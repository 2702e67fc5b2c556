"""The days on which datasets are due, as metrics tell them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

from prometheus_client import CollectorRegistry

from proctor.domain.item import Item
from proctor.domain.rotation import Every
from proctor.runtime.metrics.rotations import RotationsCollector
from proctor.runtime.rotations import MAX_DATASETS
from proctor.studies.datasets.rotating import begun

ITEMS = [Item(item_id=str(n), question=f"What is {n} and one?", target="1") for n in range(5)]
STATE = begun(ITEMS[:2], ITEMS[2:], every=Every.QUARTERLY, seed=1, today=date(2026, 11, 24)).model_dump_json()


def registry(folder: Path, fresh_s: float = 0.0) -> CollectorRegistry:
    made = CollectorRegistry()
    made.register(RotationsCollector(folder, fresh_s=fresh_s))
    return made


def test_each_dataset_of_the_folder_has_its_day_and_its_pool(tmp_path: Path) -> None:
    (tmp_path / "own.rotation.json").write_text(STATE)
    found = registry(tmp_path)
    due = found.get_sample_value("proctor_dataset_rotation_due_timestamp_seconds", {"dataset": "own"})
    assert due == datetime(2027, 2, 24, tzinfo=UTC).timestamp()
    assert found.get_sample_value("proctor_dataset_held_out", {"dataset": "own"}) == 3


def test_what_cannot_be_read_costs_itself_alone(tmp_path: Path) -> None:
    (tmp_path / "broken.rotation.json").write_text("{")
    (tmp_path / "folder.rotation.json").mkdir()
    (tmp_path / "own.rotation.json").write_text(STATE)
    samples = [sample.labels for family in registry(tmp_path).collect() for sample in family.samples]
    assert samples == [{"dataset": "own"}] * 2


def test_without_a_folder_nothing_is_told(tmp_path: Path) -> None:
    assert [family.samples for family in registry(tmp_path / "none").collect()] == [[], []]


def test_there_are_only_so_many(tmp_path: Path) -> None:
    for n in range(MAX_DATASETS + 5):
        (tmp_path / f"d{n:03}.rotation.json").write_text(STATE)
    assert len([sample for family in registry(tmp_path).collect() for sample in family.samples]) == 2 * MAX_DATASETS


def test_a_rotation_is_told_once_the_last_look_is_old(tmp_path: Path) -> None:
    path = tmp_path / "own.rotation.json"
    path.write_text(STATE)
    name, label = "proctor_dataset_held_out", {"dataset": "own"}
    kept, anew = registry(tmp_path, fresh_s=3_600), registry(tmp_path)
    assert kept.get_sample_value(name, label) == anew.get_sample_value(name, label) == 3
    path.write_text(begun(ITEMS[:2], ITEMS[2:3], every=Every.YEARLY, seed=1, today=date(2026, 1, 1)).model_dump_json())
    assert (kept.get_sample_value(name, label), anew.get_sample_value(name, label)) == (3, 1)
