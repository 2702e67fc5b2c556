"""Prompts that are asked several times: each by a seed of its own, counted by plan and budget, weighed by item."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.manifest import AuditManifest
from proctor.domain.messages import GradeShards, Reconcile, RunShards, ScoreAudit
from proctor.domain.trial import CONTROL_ARMS, Arm, Shard, Trial
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.awaited import request_of
from proctor.runtime.artifacts.store import get_model
from proctor.scorer import tasks as scoring
from proctor.scorer.grading.ahead import grade_and_store
from tests.integration.router_support import Bench, router_bench
from tests.integration.test_router_control import answer_everything, write_control
from tests.integration.test_router_fresh import N_FRESH, write_fresh

N_CONTROL = 40
DRAWN = {"decoding_config": {"temperature": 0.7, "seed": 5, "replicates": 3}}
ARMS = {"fresh_config": {"path": "fresh.jsonl"}, "control_config": {"path": "control.jsonl"}}


def write_arms(home: Path) -> None:
    write_fresh(home)
    write_control(home, N_CONTROL)


def test_every_prompt_is_asked_as_often_as_the_suite_says_and_fresh_items_once(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_arms(tmp_path)
    with router_bench(tmp_path, valkey_url, monkeypatch, **DRAWN, **ARMS) as bench:
        bench.to_answering()
        asked = answer_everything(bench)
    assert Counter(trial.arm for trial in asked) == {
        Arm.CANONICAL: 300, Arm.PERTURBED: 300, Arm.FRESH: N_FRESH,
        Arm.CONTROL_CANONICAL: 3 * N_CONTROL, Arm.CONTROL_PERTURBED: 3 * N_CONTROL,
    }  # fmt: skip
    assert len({trial.trial_id for trial in asked}) == len(asked)
    numbers = defaultdict(set)
    for trial in asked:
        numbers[trial.arm, trial.item_id, trial.variant_id].add(trial.replicate)
    assert {arm: seen for (arm, _, _), seen in numbers.items()} == {
        **{arm: {0, 1, 2} for arm in (Arm.CANONICAL, Arm.PERTURBED, *CONTROL_ARMS)}, Arm.FRESH: {0},
    }  # fmt: skip


def test_a_shard_has_one_replicate_alone_because_it_is_asked_by_one_seed(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with router_bench(tmp_path, valkey_url, monkeypatch, **DRAWN) as bench:
        bench.to_answering()
        messages = [one for one in bench.sent if isinstance(one, RunShards)]
        assert {(message.replicates, message.version) for message in messages} == {(3, 3)}
        assert {message.decoding.plain().get("replicates") for message in messages} == {None}
        for message in messages:
            for one in message.shards:
                trials = get_model(bench.artifacts, one.shard, Shard).trials
                assert len({trial.replicate for trial in trials}) == 1


def test_a_budget_counts_them(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_arms(tmp_path)
    n = 3 * (200 + 2 * N_CONTROL) + N_FRESH
    section = {**DRAWN, **ARMS, "budget_config": {"max_trials": n - 1}}
    with router_bench(tmp_path, valkey_url, monkeypatch, **section) as bench:
        audit = bench.to_answering()
        tasks.reconcile(Reconcile())
        assert bench.state(audit).value == "failed"
        assert f"it comes to {n:,} trials" in bench.records.audit(audit).detail


def _decided(
    home: Path, url: str, patch: pytest.MonkeyPatch, said: Callable[[Trial], str], **suite: Any
) -> tuple[DecisionOutcome, dict[str, Any]]:
    home.mkdir(exist_ok=True)
    write_arms(home)
    with router_bench(home, url, patch, **suite) as bench:
        audit = bench.to_answering()
        answer_everything(bench, said)
        seen = view(bench.records, audit)
        assert seen.inputs.manifest is not None
        message = request_of(seen)
        assert isinstance(message, ScoreAudit)
        assert message.replicates == seen.suite.decoding.replicates
        patch.setattr(scoring, "worker_settings", lambda: bench.settings)
        patch.setattr(scoring, "worker_records", lambda: bench.records)
        patch.setattr(scoring, "worker_artifacts", lambda: bench.artifacts)
        _grade_ahead(bench)
        event = scoring._decide(audit, get_model(bench.artifacts, seen.inputs.manifest, AuditManifest))
        assert isinstance(event, DecisionEvent)
        path = bench.settings.home / "reports" / audit / "report.json"
        return event.outcome, json.loads(path.read_text("utf-8"))


def _grade_ahead(bench: Bench) -> None:
    """Half of what came in, so that both ways into the rows are gone."""
    for message in bench.grading[::2]:
        assert isinstance(message, GradeShards)
        scoring._recent.note(
            grade_and_store(
                bench.artifacts,
                message.shards,
                scoring._targets.get(bench.artifacts, message.items, message.extractor, message.fresh, message.control),
            )
        )


def _right(trial: Trial) -> str:
    plus = 6 if trial.arm in CONTROL_ARMS else 2 if trial.arm is Arm.FRESH else 1
    return str(int(trial.item_id[1:]) + plus)


def _luck(trial: Trial) -> str:
    """Right twice of three times, whatever the wording, of every other item."""
    lucky = int(trial.item_id[1:]) % 2 == 0 or trial.replicate != int(trial.item_id[1:]) // 2 % 3
    return _right(trial) if lucky else "0 or so: -7"


def test_answers_are_weighed_by_item_and_the_report_says_where_the_spread_is(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, report = _decided(tmp_path, valkey_url, monkeypatch, _luck, **DRAWN)
    found = report["evidence"]["perturbation"]
    assert (found["n_items"], found["n_variants"]) == (100, 1)
    assert found["accuracy_canonical"]["value"] == pytest.approx(0.5 + 0.5 * 2 / 3)
    assert found["score_inflation"]["value"] == pytest.approx(0.0)
    assert report["counts"]["trials"] == report["counts"]["graded"] == 600
    repeated = found["replicates"]
    assert (repeated["n_replicates"], repeated["n_answers"]) == (3, 600)
    # Of an item that is right twice of three times: 2/3 · 1/3 · 3/2, of half of the items.
    assert repeated["variance_of_answers"] == pytest.approx(0.5 * 1 / 3)
    assert repeated["variance_of_wordings"] == 0.0
    assert repeated["lottery"]["greedy_wrong"] == repeated["lottery"]["rescued"] == 17
    assert found["items"][0]["canonical_asked"] == 3


def test_three_answers_that_agree_say_what_one_says(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No pseudo-replication: the interval of three equal answers an item is that of one."""

    def loses(trial: Trial) -> str:
        lost = trial.arm in (Arm.PERTURBED, Arm.CONTROL_PERTURBED) and int(trial.item_id[1:]) % 10 == 0
        return "-7" if lost else _right(trial)

    once_decoding = {"decoding_config": {"temperature": 0.7, "seed": 5}}
    control = {"control_config": {"path": "control.jsonl"}}
    several, thrice = _decided(tmp_path / "a", valkey_url, monkeypatch, loses, **DRAWN, **control)
    single, once = _decided(tmp_path / "b", valkey_url, monkeypatch, loses, **once_decoding, **control)
    assert several is single
    for name in ("score_inflation", "contamination_score"):
        first, second = (report["evidence"]["perturbation"][name] for report in (thrice, once))
        for bound in ("value", "low", "high"):
            assert first[bound] == pytest.approx(second[bound])
    excesses = [
        one["evidence"]["perturbation"]["control_items"]["excess"]["excess_inflation"] for one in (thrice, once)
    ]
    assert excesses[0]["high"] == pytest.approx(excesses[1]["high"])
    ps = [one["evidence"]["perturbation"]["p_value"] for one in (thrice, once)]
    assert ps[0] == pytest.approx(ps[1])
