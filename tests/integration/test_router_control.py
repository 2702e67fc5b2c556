"""Control items in the router: reworded with the benchmark's, asked in both wordings beside it, and scored apart."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import BadInputError
from proctor.domain.manifest import AuditManifest, CompletionSet
from proctor.domain.messages import BuildVariants, EndpointProbed, Reconcile, RunShards, ScoreAudit, StartAudit
from proctor.domain.trial import CONTROL_ARMS, Arm, Completion, Shard, Trial
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.awaited import request_of
from proctor.runtime.artifacts.chunks import get_items
from proctor.runtime.artifacts.store import get_model, put_model
from proctor.scorer import tasks as scoring
from tests.integration.router_support import PINNED, Bench, router_bench

N_CONTROL = 60
BOTH = (Arm.PERTURBED, Arm.CONTROL_PERTURBED)


def write_control(home: Path, n: int = N_CONTROL, first: str = "c") -> None:
    rows = [{"id": f"{first}{number}", "question": f"What is {number} plus six?", "answer": str(number + 6)}
            for number in range(n)]  # fmt: skip
    (home / "control.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    write_control(tmp_path)
    with router_bench(tmp_path, valkey_url, monkeypatch, control_config={"path": "control.jsonl"}) as made:
        yield made


def answer_everything(bench: Bench, said: Callable[[Trial], str] = lambda trial: "1") -> list[Trial]:
    """Have every shard answered; returns all trials that were asked."""
    asked = list[Trial]()
    while shards := bench.handed_out():
        for one in shards:
            trials = get_model(bench.artifacts, one.shard, Shard).trials
            asked += trials
            answers = CompletionSet(
                completions=tuple(Completion(trial_id=trial.trial_id, text=said(trial)) for trial in trials)
            )
            bench.answer(one, completions=put_model(bench.artifacts, answers), n_trials=len(trials))
    return asked


def test_every_control_item_is_asked_in_both_wordings_beside_the_others(bench: Bench) -> None:
    bench.to_answering()
    asked = answer_everything(bench)
    assert Counter(trial.arm for trial in asked) == {
        Arm.CANONICAL: 100, Arm.PERTURBED: 100,
        Arm.CONTROL_CANONICAL: N_CONTROL, Arm.CONTROL_PERTURBED: N_CONTROL,
    }  # fmt: skip
    control = {trial.item_id for trial in asked if trial.arm in CONTROL_ARMS}
    assert control == {f"c{n}" for n in range(N_CONTROL)}
    assert len({trial.trial_id for trial in asked}) == len(asked)


def test_they_are_reworded_by_the_same_request(bench: Bench) -> None:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
    (message,) = bench.take(BuildVariants)
    assert isinstance(message, BuildVariants)
    assert message.version == 4
    assert message.control is not None
    assert len(get_items(bench.artifacts, message.control).items) == N_CONTROL
    assert message.contents.control is None


def test_a_worker_of_before_is_not_handed_shards_that_it_could_not_read(bench: Bench) -> None:
    bench.to_answering()
    message = next(one for one in bench.sent if isinstance(one, RunShards))
    assert (message.control, message.version) == (True, 3)


def test_the_manifest_and_the_messages_name_the_control_items(bench: Bench) -> None:
    audit = bench.to_answering()
    answer_everything(bench)
    seen = view(bench.records, audit)
    assert {message.control for message in bench.grading} == {seen.inputs.control}
    assert seen.inputs.manifest is not None
    manifest = get_model(bench.artifacts, seen.inputs.manifest, AuditManifest)
    assert manifest.control is not None
    assert (manifest.control.items, manifest.control.variants) == (seen.inputs.control, seen.inputs.control_variants)
    assert manifest.card.contamination_policy["control"]["content_digest"]
    message = request_of(seen)
    assert isinstance(message, ScoreAudit)
    assert (message.control, message.version) == (True, 3)


def test_more_control_items_than_the_benchmark_has_chunks_make_parts_of_their_own(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_control(tmp_path, 1_100)
    section = {"path": "control.jsonl", "sample_size": 1_100}
    with router_bench(tmp_path, valkey_url, monkeypatch, control_config=section) as bench:
        bench.to_answering()
        asked = Counter(trial.arm for trial in answer_everything(bench))
        assert (asked[Arm.CONTROL_CANONICAL], asked[Arm.CONTROL_PERTURBED], asked[Arm.CANONICAL]) == (1_100, 1_100, 100)


def test_a_suite_without_them_sends_what_it_always_sent(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        audit = bench.to_answering()
        message = next(one for one in bench.sent if isinstance(one, RunShards))
        assert message.version == 1
        assert not {"control", "control_variants"} & set(view(bench.records, audit).inputs.plain())
        assert "control" not in view(bench.records, audit).card.contamination_policy


def test_a_budget_counts_them(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_control(tmp_path)
    section = {"control_config": {"path": "control.jsonl"}, "budget_config": {"max_trials": 319}}
    with router_bench(tmp_path, valkey_url, monkeypatch, **section) as bench:
        audit = bench.to_answering()
        tasks.reconcile(Reconcile())
        assert bench.state(audit).value == "failed"
        assert "it comes to 320 trials" in bench.records.audit(audit).detail


def test_items_of_the_benchmark_put_nothing_on_record(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_control(tmp_path, first="q")
    with (
        router_bench(tmp_path, valkey_url, monkeypatch, control_config={"path": "control.jsonl"}) as bench,
        pytest.raises(BadInputError, match=r"q0, q1, q2 and 57 more are ids of the benchmark's"),
    ):
        bench.submit()


def _losing(share: float, *, leaked: bool = False) -> Callable[[Trial], str]:
    """A model that loses this share of its right answers by rewording, and of a leaked benchmark 30 points more."""

    def said(trial: Trial) -> str:
        number = int(trial.item_id[1:])
        right = str(number + (6 if trial.arm in CONTROL_ARMS else 1))
        lost = trial.arm in BOTH and number % 100 < 100 * share
        lost |= leaked and trial.arm is Arm.PERTURBED and 50 <= number % 100 < 80
        return "no idea: 0" if lost else right

    return said


def _decided(bench: Bench, monkeypatch: pytest.MonkeyPatch, said: Callable[[Trial], str]) -> tuple[Any, dict[str, Any]]:
    """Answer all and score it by the scorer's own task; returns decision and report."""
    audit = bench.to_answering()
    answer_everything(bench, said)
    seen = view(bench.records, audit)
    assert seen.inputs.manifest is not None
    monkeypatch.setattr(scoring, "worker_settings", lambda: bench.settings)
    monkeypatch.setattr(scoring, "worker_records", lambda: bench.records)
    monkeypatch.setattr(scoring, "worker_artifacts", lambda: bench.artifacts)
    event = scoring._decide(audit, get_model(bench.artifacts, seen.inputs.manifest, AuditManifest))
    path = bench.settings.home / "reports" / audit / "report.json"
    return event, json.loads(path.read_text("utf-8"))


def _bench_of(home: Path, url: str, patch: pytest.MonkeyPatch, *, control: int | None) -> Any:
    suite: dict[str, Any] = {
        "scoring_config": {"max_allowed_contaminated_items_pct": 6.0, "contamination_threshold": 0.06},
        "governance": {"block_deployment_above_contaminated_pct": 6.0},
    }
    if control is not None:
        write_control(home, control)
        suite["control_config"] = {"path": "control.jsonl", "sample_size": 2_000}
    return router_bench(home, url, patch, **suite)


def test_a_clean_model_that_loses_as_much_on_control_items_is_not_blocked_where_d_alone_blocks_it(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rewording costs fifteen points on both kinds of items."""
    (tmp_path / "a").mkdir()
    with _bench_of(tmp_path / "a", valkey_url, monkeypatch, control=None) as bench:
        event, _ = _decided(bench, monkeypatch, _losing(0.15))
        assert event.outcome is DecisionOutcome.BLOCK
    (tmp_path / "b").mkdir()
    with _bench_of(tmp_path / "b", valkey_url, monkeypatch, control=1_000) as bench:
        event, report = _decided(bench, monkeypatch, _losing(0.15))
        assert event.outcome is DecisionOutcome.REVIEW
        control = report["evidence"]["perturbation"]["control_items"]
        assert (control["n_selected"], control["n_reworded"], control["n_items"]) == (1_000, 1_000, 1_000)
        assert control["excess"]["inflation_control"]["value"] == pytest.approx(15.0)
        assert control["excess"]["excess_inflation"]["value"] == pytest.approx(0.0)
        assert report["evidence"]["perturbation"]["score_inflation"]["value"] == pytest.approx(15.0)
        assert report["counts"]["trials"] == 2_200
        page = next((bench.settings.home / "reports").glob("*/report.html")).read_text("utf-8")
        assert "The benchmark and control items" in page


def test_a_leaked_model_is_blocked_beside_control_items_as_well(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _bench_of(tmp_path, valkey_url, monkeypatch, control=1_000) as bench:
        event, report = _decided(bench, monkeypatch, _losing(0.15, leaked=True))
        assert event.outcome is DecisionOutcome.BLOCK
        assert "beyond that of the control items" in report["decision"]["reasons"][0]["text"]


def test_control_items_of_which_too_few_could_be_reworded_end_in_a_review(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _bench_of(tmp_path, valkey_url, monkeypatch, control=12) as bench:
        event, report = _decided(bench, monkeypatch, _losing(0.15))
        assert event.outcome is DecisionOutcome.REVIEW
        assert report["decision"]["reasons"][0]["code"] == "too_few_control_items"
        assert report["evidence"]["perturbation"]["verdict"] == "inconclusive"
