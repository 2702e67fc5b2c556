"""`proctor audit run` with an answering check, by real workers, on GSM8K's labelled rewordings.

The solvers are servers that answer from a table: no model runs here that can do GSM8K. The one that is named after the
labels gives to each rewording the answer that its label calls for, so that what the check finds of it is known. That
says nothing of how much a real model would find.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from draw_labelled_pairs import LABELS
from tests.replay_server import MODEL, Replay, replay_server
from tests.standing_stack import standing_stack
from tests.support import shared_data

pytestmark = pytest.mark.timeout(420)

MOCK_SOLVER = "tests/mock-solver-of-the-labels"


class Labelled(NamedTuple):
    """A question of GSM8K, GPT-4's rewording of it, and whether a careful reader takes it for the same problem."""

    item_id: str
    question: str
    rewording: str
    answer: str
    good: bool


@pytest.fixture(scope="module")
def labelled() -> list[Labelled]:
    folder = shared_data() / "gsm8k"
    test, reworded = (
        [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]
        for name in ("test.jsonl", "rephrased.jsonl")
    )
    with LABELS.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [
        Labelled(
            f"gsm8k-{row['index']}",
            test[place]["question"],
            reworded[place]["rephrased"],
            test[place]["answer"].rpartition("#### ")[2].replace(",", ""),
            row["label"] == "acceptable",
        )
        for row in rows
        for place in [int(row["index"])]
        # Three of GPT-4's are empty, which the gate turns away.
        if reworded[place]["rephrased"]
    ]


def knows_every_answer(labelled: list[Labelled]) -> dict[str, str]:
    """The model under audit: right in either wording, also where another problem is asked."""
    return {text: f"#### {one.answer}" for one in labelled for text in (one.question, one.rewording)}


def as_the_labels_say(labelled: list[Labelled]) -> dict[str, str]:
    """A solver to which a rewording that is not acceptable has another answer."""
    other = {one.rewording: f"So it is {one.answer}7." for one in labelled if not one.good}
    return knows_every_answer(labelled) | other


class Served(NamedTuple):
    """Three servers, and a stack whose operator has named the solvers among them."""

    audited: Replay
    mock: Replay
    silent: Replay
    home: Path

    def proctor(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "proctor", *arguments, "--home", str(self.home), "--format", "json"]
        return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, labelled: list[Labelled]) -> Iterator[Served]:
    right = knows_every_answer(labelled)
    with (
        replay_server(right) as audited,
        replay_server(as_the_labels_say(labelled)) as mock,
        replay_server(dict.fromkeys(right, "I would rather not say.")) as silent,
    ):
        endpoints = json.dumps({"mock": mock.url, "silent": silent.url})
        home = tmp_path_factory.mktemp("stack") / "home"
        options = {"PROCTOR_OUTAGE_S": "5", "PROCTOR_ENDPOINTS": endpoints}
        with standing_stack(home, "--no-triton", "--no-metrics", "--no-gateway", **options):
            yield Served(audited, mock, silent, home)


def written(folder: Path, labelled: list[Labelled], audited: str, **check: Any) -> Path:
    """A suite of the labelled pairs, which are its items and their only rewordings."""
    rows = [{"id": one.item_id, "question": one.question, "answer": one.answer} for one in labelled]
    said = [{"item_id": one.item_id, "question": one.rewording} for one in labelled]
    for name, lines in (("items.jsonl", rows), ("rewordings.jsonl", said)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = folder / "suite.json"
    path.write_text(
        json.dumps(
            {
                "audit_suite_id": "labelled-gsm8k",
                "model_config": {
                    "model_id": f"tests/{MODEL}", "model_version": "sha256:" + "5" * 64, "endpoint": audited,
                },
                "dataset_config": {"benchmark_name": "gsm8k", "path": "items.jsonl", "sample_size": len(labelled)},
                "perturbation_config": {
                    "perturbation_strategy": "imported",
                    "rewordings_path": "rewordings.jsonl",
                    "num_variants_per_item": 1,
                    "min_semantic_distance": 0.005,
                    "answering_check": {
                        "solvers": [{"model": MOCK_SOLVER, "endpoint": "mock", "served_name": MODEL}],
                        **check,
                    },
                },
            }
        )
    )  # fmt: skip
    return path


def report_of(run: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert run.returncode in (0, 3), run.stderr
    path = Path(json.loads(run.stdout)["report_path"]).with_suffix(".json")
    report: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return report


def test_bad_rewordings_are_held_and_good_ones_asked(tmp_path: Path, served: Served, labelled: list[Labelled]) -> None:
    suite = written(tmp_path, labelled, served.audited.url)
    before, before_mock = len(served.audited.asked), len(served.mock.asked)
    report = report_of(served.proctor("audit", "run", str(suite)))
    prompts = set(served.audited.asked[before:])
    shown = served.proctor("variants", "show", str(suite))
    asked = {one.item_id for one in labelled if any(one.rewording in prompt for prompt in prompts)}
    bad = {one.item_id for one in labelled if not one.good}
    variants = report["variants"]
    check = variants["answering_check"]
    held = {one["item_id"] for one in check["listed"]}
    # Every bad rewording that the gate let pass is held, and no good one.
    assert not asked & bad
    assert held <= bad
    assert check["held"] == len(held) == variants["rejected"]["answers_disagree"]
    assert len(held) >= 10
    assert check["findings"] == {"agree": len(asked), "answers_disagree": len(held)}
    assert len(served.mock.asked) - before_mock == 2 * 5 * (len(asked) + len(held))
    assert (check["solvers"][0]["heard"], check["solvers"][0]["skill"]) == (True, 1.0)
    reasons = {one["item_id"]: one["reason"] for one in variants["items_left_out"]}
    assert all("answers_disagree" in reasons[item_id] for item_id in held)
    assert "rewordings_held" in {limit["code"] for limit in report["limits"]}
    assert report["counts"]["items_audited"] == len(asked)
    listed = json.loads(shown.stdout)["held"]
    assert {one["item_id"] for one in listed} == held
    assert all(one["item_question"] and one["answers"] for one in listed)
    assert report["card"]["contamination_policy"]["perturbation"]["answering_check"]["samples"] == 5


@pytest.mark.faults
def test_what_a_person_allows_is_asked_again_and_a_solver_that_knows_nothing_holds_nothing(
    tmp_path: Path, served: Served, labelled: list[Labelled]
) -> None:
    def audited(**check: Any) -> dict[str, Any]:
        return report_of(served.proctor("audit", "run", str(written(tmp_path, some, served.audited.url, **check))))

    some = labelled[:60]
    first = audited()
    listed = first["variants"]["answering_check"]["listed"]
    assert listed
    second = audited(allowed=[one["variant_id"] for one in listed])
    again = second["variants"]["answering_check"]
    assert (again["held"], [one["kept"] for one in again["listed"]]) == (0, [True] * len(listed))
    assert second["counts"]["items_audited"] == first["counts"]["items_audited"] + len(listed)
    third = audited(solvers=[{"model": "tests/silent", "endpoint": "silent", "served_name": MODEL}])
    unheard = third["variants"]["answering_check"]
    assert (unheard["held"], unheard["solvers"][0]["heard"]) == (0, False)
    assert "answering_check_silent" in {limit["code"] for limit in third["limits"]}


@pytest.mark.faults
def test_a_solver_that_is_down_leaves_the_audit_open_and_it_goes_on_when_it_is_back(
    tmp_path: Path, served: Served, labelled: list[Labelled]
) -> None:
    suite = written(tmp_path, labelled[60:72], served.audited.url)
    before = len(served.audited.asked)
    served.mock.dies_after = len(served.mock.asked)
    try:
        first = served.proctor("audit", "run", str(suite))
    finally:
        served.mock.dies_after = 10**9
    assert first.returncode == 1, first.stderr
    assert f"the solver {MOCK_SOLVER}" in " ".join(first.stderr.split())
    assert len(served.audited.asked) == before
    second = report_of(served.proctor("audit", "run", str(suite)))
    assert set(second["variants"]["answering_check"]["findings"]) <= {"agree", "answers_disagree"}
    assert second["counts"]["items_audited"] > 0
