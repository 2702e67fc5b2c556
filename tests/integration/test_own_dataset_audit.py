"""An audit of a dataset of one's own, from the file that was made to the decision, with a stand-in for the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.main import main
from proctor.domain.errors import BadInputError
from proctor.domain.item import Item
from proctor.domain.manifest import CompletionSet, GradeSet
from proctor.domain.messages import AuditScored, GradeShards, Message, ScoreAudit, ShardsGraded
from proctor.domain.trial import Arm, Completion, Outcome, Shard, Trial
from proctor.perturbation.strategies.draws import Draws
from proctor.router.audit import view
from proctor.router.awaited import request_of
from proctor.runtime.artifacts.store import get_model, put_model
from proctor.runtime.settings import CodeExecution
from proctor.scorer import tasks as scorer
from proctor.scorer.grading.ahead import RecentGrades
from proctor.scorer.grading.programs import Programs
from proctor.scorer.grading.targets import TargetsCache
from proctor.studies.datasets.dimensions import DIMENSIONS
from proctor.studies.datasets.item_files import read_items
from proctor.studies.datasets.making import METHOD
from tests.integration.router_support import Bench, router_bench
from tests.sandboxes import sandbox

N = 24
_NOTHING = {
    "code_generation": "```python\ndef f(x):\n    return None\n```",
    "instruction_following": "I would rather not, thank you.",
    "reasoning": "The answer is -1",
    "factual_recall": "Nobody knows",
}


def known_good(item: Item) -> str:
    """The answer that the template made with the item."""
    draws = Draws(METHOD, item.dimension, item.metadata["seed"], item.metadata["draw"])
    made = draws.one_of(DIMENSIONS[item.dimension].templates).make(draws)
    assert made is not None
    return made.known_good


@contextmanager
def audited(
    dimension: str, home: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Bench]:
    """A router whose suite asks a dataset that was made."""
    path = home / "own.jsonl"
    made = ("new", dimension, "--out", path, "--count", N, "--seed", 11, "--format", "json")
    assert main(["dataset", *map(str, made)]) == 0
    sections = json.loads(capsys.readouterr().out)["suite"]
    with router_bench(home, valkey_url, monkeypatch, **sections) as bench:
        bench.settings = bench.settings.model_copy(update={"code_execution": CodeExecution.SANDBOX})
        monkeypatch.setattr(scorer, "worker_artifacts", lambda: bench.artifacts)
        monkeypatch.setattr(scorer, "worker_records", lambda: bench.records)
        monkeypatch.setattr(scorer, "worker_settings", lambda: bench.settings)
        programs = Programs(lambda: bench.settings.code_execution)
        monkeypatch.setattr(scorer, "_targets", TargetsCache(programs=programs))
        monkeypatch.setattr(scorer, "_recent", RecentGrades())
        yield bench


def ask(bench: Bench, says: Callable[[Trial], str]) -> str:
    """Audit a model that says this; the audit's id, every trial of which is answered."""
    audit = bench.to_answering()
    while shards := bench.handed_out():
        for one in shards:
            trials = get_model(bench.artifacts, one.shard, Shard).trials
            said = tuple(Completion(trial_id=trial.trial_id, text=says(trial)) for trial in trials)
            bench.answer(
                one, completions=put_model(bench.artifacts, CompletionSet(completions=said)), n_trials=len(said)
            )
    return audit


def grade_and_score(bench: Bench, audit: str, monkeypatch: pytest.MonkeyPatch) -> tuple[list[GradeSet], dict[str, Any]]:
    """What the scorer makes of it: the grades while answers came in, and the report."""
    sent: list[Message] = []
    monkeypatch.setattr(scorer, "send", sent.append)
    monkeypatch.setattr(scorer, "publish_decision", lambda event: None)
    for message in bench.grading:
        assert isinstance(message, GradeShards)
        scorer.grade_shards(message)
    graded = [one for message in sent if isinstance(message, ShardsGraded) for one in message.graded]
    request = request_of(view(bench.records, audit))
    assert isinstance(request, ScoreAudit)
    scorer.score_audit(request)
    assert any(isinstance(message, AuditScored) and message.error is None for message in sent)
    report = json.loads((bench.settings.home / "reports" / audit / "report.json").read_text())
    return [get_model(bench.artifacts, str(one.grades), GradeSet) for one in graded], report


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_who_knows_every_answer_is_right_in_both_arms_and_who_knows_the_published_wording_alone_is_blocked(
    dimension: str, tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if dimension == "code_generation":
        sandbox()
    with audited(dimension, tmp_path, valkey_url, monkeypatch, capsys) as bench:
        good = {item.item_id: known_good(item) for item in read_items(tmp_path / "own.jsonl")}
        grades, report = grade_and_score(bench, ask(bench, lambda trial: good[trial.item_id]), monkeypatch)
        assert {outcome for one in grades for outcome in one.outcomes} == {Outcome.CORRECT}
        assert {one.extractor for one in grades} == {DIMENSIONS[dimension].scoring}
        assert report["decision"]["outcome"] != "block"
        bench.grading.clear()
        bench.another_suite("again")
        audit = ask(bench, lambda trial: good[trial.item_id] if trial.arm is Arm.CANONICAL else _NOTHING[dimension])
        grades, report = grade_and_score(bench, audit, monkeypatch)
        right = {one.arm: sum(outcome is Outcome.CORRECT for outcome in one.outcomes) for one in grades}
        assert right == {Arm.CANONICAL: N, Arm.PERTURBED: 0}
        assert report["decision"]["outcome"] == "block"


def test_the_same_answers_keep_their_grades_though_nothing_is_run_any_more(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was graded is not run again, neither for the report nor when the scorer was started anew."""
    sandbox()
    with audited("code_generation", tmp_path, valkey_url, monkeypatch, capsys) as bench:
        good = {item.item_id: known_good(item) for item in read_items(tmp_path / "own.jsonl")}
        audit = ask(bench, lambda trial: good[trial.item_id])
        sent: list[Message] = []
        monkeypatch.setattr(scorer, "send", sent.append)
        for message in bench.grading:
            scorer.grade_shards(message)

        def never(*arguments: object) -> Any:
            raise AssertionError("run again")

        monkeypatch.setattr(
            scorer, "_targets", TargetsCache(programs=Programs(lambda: CodeExecution.SANDBOX, opened=lambda: never))
        )
        bench.grading.clear()
        _, report = grade_and_score(bench, audit, monkeypatch)
        assert report["decision"]["outcome"] != "block"


def test_where_no_code_is_run_the_audit_is_refused_before_a_model_is_asked(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with audited("code_generation", tmp_path, valkey_url, monkeypatch, capsys) as bench:
        bench.settings = bench.settings.model_copy(update={"code_execution": CodeExecution.OFF})
        with pytest.raises(BadInputError, match="PROCTOR_CODE_EXECUTION=sandbox"):
            bench.submit()
        assert bench.records.audits() == []


def test_a_scorer_that_runs_no_code_says_so_and_grades_nothing(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    with audited("code_generation", tmp_path, valkey_url, monkeypatch, capsys) as bench:
        ask(bench, lambda trial: "def f(x):\n    return x")
        bench.settings = bench.settings.model_copy(update={"code_execution": CodeExecution.OFF})
        sent: list[Message] = []
        monkeypatch.setattr(scorer, "send", sent.append)
        for message in bench.grading:
            scorer.grade_shards(message)
        assert sent == []
        assert "switched off here" in caplog.text
