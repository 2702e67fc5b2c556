"""`proctor dataset new|draw|grade|rotate` as a person runs them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.main import main
from proctor.domain.errors import BadInputError
from proctor.domain.suite import DatasetSection, Suite
from proctor.formats.items import load_items
from proctor.grading.constraints import parse_constraints
from proctor.perturbation.strategies.draws import Draws
from proctor.runtime.files import write_atomic
from proctor.studies.datasets.dimensions import DIMENSIONS
from proctor.studies.datasets.item_files import read_items
from proctor.studies.datasets.made import Made
from proctor.studies.datasets.making import METHOD
from tests.sandboxes import sandbox

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Give a `proctor dataset` command in a folder of its own; its JSON, or what it says when it fails."""
    monkeypatch.chdir(tmp_path)

    def given(*arguments: object, code: int = 0) -> Any:
        capsys.readouterr()
        assert main(["dataset", *map(str, arguments), *(["--format", "json"] if code == 0 else [])]) == code
        out, err = capsys.readouterr()
        return json.loads(out) if code == 0 else err

    return given


def remade(item_metadata: dict[str, Any], dimension: str) -> Made:
    """The problem that an item was made from: what it records is enough to make it again."""
    draws = Draws(METHOD, dimension, item_metadata["seed"], item_metadata["draw"])
    template = draws.one_of(DIMENSIONS[dimension].templates)
    assert template.name == item_metadata["template"]
    made = template.make(draws)
    assert made is not None
    return made


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_made_dataset_is_asked_by_the_sections_that_are_printed(dimension: str, run: Run, tmp_path: Path) -> None:
    made = run("new", dimension, "--out", "own.jsonl", "--count", 30, "--seed", 3)
    assert (made["items"], made["held_out"], made["seed"], made["rotation_due"]) == (30, 0, 3, None)
    model = {"model_id": "m", "model_version": "sha256:" + "a" * 12, "endpoint": "http://127.0.0.1:9/v1"}
    suite = Suite.model_validate(
        {"audit_suite_id": "own", "model_config": model, **made["suite"],
         "perturbation_config": {"perturbation_strategy": "wordings"}}
    )  # fmt: skip
    loaded = load_items(suite.dataset, tmp_path, tmp_path)
    assert len(loaded.items) == 30
    assert loaded.duplicates == ()
    assert suite.metric.extractor == DIMENSIONS[dimension].scoring
    assert suite.dataset.private


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_known_good_answers_are_right_and_known_bad_ones_are_not(
    dimension: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if dimension == "code_generation":
        sandbox()
        monkeypatch.setenv("PROCTOR_CODE_EXECUTION", "sandbox")
    run("new", dimension, "--out", "own.jsonl", "--count", 8, "--seed", 3)
    items = read_items(tmp_path / "own.jsonl")
    good = {item.item_id: remade(item.metadata, dimension).known_good for item in items}
    bad = {item.item_id: "```python\ndef f(x):\n    return None\n```" for item in items}
    for answers, right in ((good, 8), (bad, 0)):
        rows = [{"item_id": name, "answer": answer} for name, answer in answers.items()]
        (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        graded = run("grade", "own.jsonl", "--answers", "answers.jsonl")
        (score,) = graded["dimensions"]
        assert (score["dimension"], score["items"], score["correct"], score["unanswered"]) == (dimension, 8, right, 0)
        assert score["low"] <= score["accuracy"] <= score["high"]
        assert len(graded["answers"]) == 8
    assert all(one["detail"] for one in graded["answers"])


def test_a_pass_rate_counts_what_was_kept(run: Run, tmp_path: Path) -> None:
    run("new", "instruction_following", "--out", "own.jsonl", "--count", 5, "--seed", 3)
    items = read_items(tmp_path / "own.jsonl")
    (tmp_path / "a.jsonl").write_text(json.dumps({"item_id": items[0].item_id, "answer": "one word"}) + "\n")
    graded = run("grade", "own.jsonl", "--answers", "a.jsonl")
    (answer,), (score,) = graded["answers"], graded["dimensions"]
    assert answer["total"] == len(parse_constraints(items[0].target))
    assert score["pass_rate"] == pytest.approx(answer["passed"] / answer["total"] / 5)
    assert score["unanswered"] == 4


def test_code_is_not_run_unless_it_is_switched_on(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_CODE_EXECUTION", raising=False)
    run("new", "code_generation", "--out", "own.jsonl", "--count", 2, "--seed", 3)
    name = read_items(tmp_path / "own.jsonl")[0].item_id
    (tmp_path / "a.jsonl").write_text(json.dumps({"item_id": name, "answer": "def f(): pass"}) + "\n")
    assert "PROCTOR_CODE_EXECUTION=sandbox" in run("grade", "own.jsonl", "--answers", "a.jsonl", code=1)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"item_id": "x", "answer": "1"}, "a.jsonl:1: item_id is 'x', which is none of the items"),
        ({"answer": "1"}, "item_id is None"),
        (None, "holds no answers"),
    ],
)
def test_answers_to_nothing_are_refused(row: dict[str, Any] | None, said: str, run: Run, tmp_path: Path) -> None:
    run("new", "reasoning", "--out", "own.jsonl", "--count", 2, "--seed", 3)
    (tmp_path / "a.jsonl").write_text("" if row is None else json.dumps(row) + "\n")
    assert said in run("grade", "own.jsonl", "--answers", "a.jsonl", code=2)


def test_the_same_seed_makes_the_same_bytes_and_without_one_it_is_drawn(run: Run, tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        run("new", "reasoning", "--out", name, "--count", 20, "--held-out", 5, "--seed", 9)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert (tmp_path / "a.pool.jsonl").read_bytes() == (tmp_path / "b.pool.jsonl").read_bytes()
    drawn = [run("new", "reasoning", "--out", f"{name}.jsonl", "--count", 2)["seed"] for name in "cd"]
    assert drawn[0] != drawn[1]


def test_what_is_there_is_not_overwritten_without_a_word(run: Run, tmp_path: Path) -> None:
    run("new", "reasoning", "--out", "own.jsonl", "--count", 4, "--held-out", 4, "--seed", 1)
    before = (tmp_path / "own.jsonl").read_bytes()
    assert "is there already" in run("new", "reasoning", "--out", "own.jsonl", code=2)
    assert (tmp_path / "own.jsonl").read_bytes() == before
    run("new", "reasoning", "--out", "own.jsonl", "--count", 4, "--seed", 2, "--force")
    assert (tmp_path / "own.jsonl").read_bytes() != before
    assert not (tmp_path / "own.rotation.json").exists()


def test_items_are_for_their_owner_alone(run: Run, tmp_path: Path) -> None:
    run("new", "reasoning", "--out", "own.jsonl", "--count", 4, "--held-out", 4, "--seed", 1)
    for path in tmp_path.glob("own.*"):
        assert path.stat().st_mode & 0o077 == 0 or path.suffix == ".lock"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("new", "reasoning", "--out", "own.csv"), "does not end in .jsonl"),
        (("new", "reasoning", "--out", "own.jsonl", "--extractor", "execution"), "does not read answers of reasoning"),
        (("new", "wit", "--out", "own.jsonl"), "wit"),
        (("new", "reasoning", "--out", "own.jsonl", "--from", "missing.jsonl"), "cannot be read"),
        (("rotate", "own.jsonl"), "is not there, so own.jsonl is not rotated"),
        (("draw", "own.jsonl", "--model", "m", "--out", "x.jsonl"), "is not rotated"),
        (("rotate", "own.jsonl", "--item", "x"), "say it with --reason"),
        (("grade", "own.jsonl", "--answers", "a.jsonl"), "own.jsonl"),
    ],
)
def test_what_cannot_be_done_is_one_clear_error(arguments: tuple[str, ...], said: str, run: Run) -> None:
    err = run(*arguments, code=2)
    assert said in err
    assert "Traceback" not in err


def test_annotated_rows_are_split_by_a_draw(run: Run, tmp_path: Path) -> None:
    rows = [{"id": f"r{n}", "question": f"Who lived in house number {n}?", "answer": f"Person {n}"} for n in range(20)]
    (tmp_path / "own.src.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = run("new", "factual_recall", "--from", "own.src.jsonl", "--out", "own.jsonl", "--held-out", 12, "--seed", 1)
    assert (made["items"], made["held_out"]) == (8, 12)
    names = [item.item_id for item in read_items(tmp_path / "own.jsonl")]
    assert len(set(names)) == 8
    assert names != [f"r{n}" for n in range(8)]
    assert "leaves nothing" in run(
        "new", "factual_recall", "--from", "own.src.jsonl", "--out", "x.jsonl", "--held-out", 20, code=2
    )


def test_a_dataset_is_drawn_from_and_rotated_until_nothing_is_left(run: Run, tmp_path: Path) -> None:
    run("new", "reasoning", "--out", "own.jsonl", "--count", 10, "--held-out", 10, "--seed", 1)
    first = run("draw", "own.jsonl", "--model", "m@1", "--out", "1.jsonl", "--count", 6)
    assert (first["items"], first["left"]) == (6, 4)
    run("draw", "own.jsonl", "--model", "m@1", "--out", "2.jsonl")
    assert "nothing is shown twice" in run("draw", "own.jsonl", "--model", "m@1", "--out", "3.jsonl", code=2)
    seen = [item.item_id for name in ("1.jsonl", "2.jsonl") for item in read_items(tmp_path / name)]
    assert len(set(seen)) == 10

    early = run("rotate", "own.jsonl")
    assert (early["rotated"], early["active"], early["overdue"]) == (False, 10, False)
    later = (datetime.now(UTC) + timedelta(days=93)).date().isoformat()
    done = run("rotate", "own.jsonl", "--on", later)
    assert (done["rotated"], len(done["retired"]), done["held_out"], done["retired_in_all"]) == (True, 10, 0, 10)
    assert done["last"] == later
    run("draw", "own.jsonl", "--model", "m@1", "--out", "4.jsonl")
    assert not {item.item_id for item in read_items(tmp_path / "4.jsonl")} & set(seen)
    state = json.loads((tmp_path / "own.rotation.json").read_text())
    assert {one["reason"] for one in state["retired"]} == {f"rotation, quarterly, due on {early['due']}"}

    assert "0 are held out; add some with --add" in run("rotate", "own.jsonl", "--early", code=2)
    assert "is one of this dataset's already" in run("rotate", "own.jsonl", "--add", "own.retired.jsonl", code=2)
    run("new", "reasoning", "--out", "more.jsonl", "--count", 10, "--seed", 2)
    done = run("rotate", "own.jsonl", "--add", "more.jsonl", "--early", "--reason", "a log was published")
    assert (done["retired_in_all"], done["held_out"], done["shown"]) == (20, 0, {"m@1": 20})


def test_what_is_held_out_or_spent_is_no_benchmark_that_a_suite_can_name(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks"
    items = folder / "own" / "test.jsonl"
    run("new", "reasoning", "--out", items, "--count", 3, "--held-out", 6, "--seed", 1)
    run("rotate", items, "--early")
    asked = load_items(DatasetSection(benchmark_name="own"), tmp_path, tmp_path, folder)
    assert len(asked.items) == 3
    for split in ("test.pool", "test.retired"):
        assert items.with_name(f"{split}.jsonl").is_file()
        with pytest.raises(BadInputError, match="does not come with Proctor"):
            load_items(DatasetSection(benchmark_name="own", split=split), tmp_path, tmp_path, folder)


def test_one_item_is_retired_at_once(run: Run, tmp_path: Path) -> None:
    run("new", "reasoning", "--out", "own.jsonl", "--count", 3, "--held-out", 3, "--seed", 1)
    name = read_items(tmp_path / "own.jsonl")[0].item_id
    done = run("rotate", "own.jsonl", "--item", name, "--reason", "quoted in a paper")
    assert (done["retired"], done["active"], done["held_out"]) == ([name], 3, 2)
    assert name not in {item.item_id for item in read_items(tmp_path / "own.jsonl")}
    assert [item.item_id for item in read_items(tmp_path / "own.retired.jsonl")] == [name]


def test_what_a_crash_left_half_done_is_finished(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is written, and then nothing else, or only some of the files."""
    for place in range(1, 4):
        folder = tmp_path / str(place)
        folder.mkdir()
        items = folder / "own.jsonl"
        run("new", "reasoning", "--out", items, "--count", 5, "--held-out", 5, "--seed", 1)
        real, written = write_atomic, 0

        def dying(path: Path, data: bytes) -> None:
            nonlocal written
            if written == place:  # noqa: B023
                raise OSError("the machine went away")
            written += 1
            real(path, data)  # noqa: B023

        with monkeypatch.context() as patched:
            patched.setattr("proctor.studies.datasets.store.write_atomic", dying)
            assert "went away" in run("rotate", items, "--early", code=2)
        status = run("rotate", items, "--status")
        assert (status["active"], status["held_out"], status["retired_in_all"]) == (5, 0, 5)
        active, gone = read_items(items), read_items(folder / "own.retired.jsonl")
        assert len({one.item_id for one in (*active, *gone)}) == 10
        assert not (folder / "own.pool.jsonl").read_bytes()


def test_a_state_that_is_none_is_refused_and_nothing_is_changed(run: Run, tmp_path: Path) -> None:
    run("new", "reasoning", "--out", "own.jsonl", "--count", 3, "--held-out", 3, "--seed", 1)
    state = tmp_path / "own.rotation.json"
    good, items = state.read_bytes(), (tmp_path / "own.jsonl").read_bytes()
    for bad in (b"", b"{}", b"[" * 100_000, good.replace(b"quarterly", b"hourly"), b"\xff"):
        state.write_bytes(bad)
        assert "is not the state of a rotation" in run("rotate", "own.jsonl", code=2)
    state.write_bytes(good)
    os.truncate(tmp_path / "own.pool.jsonl", 0)
    assert "names 3 items that are in none of own.jsonl" in run("rotate", "own.jsonl", code=2)
    assert (tmp_path / "own.jsonl").read_bytes() == items
