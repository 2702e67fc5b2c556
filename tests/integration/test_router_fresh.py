"""Fresh items in the router: each is asked once, in the hours of the benchmark's, and follows the audit to its end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.domain.errors import BadInputError
from proctor.domain.manifest import AuditManifest, CompletionSet
from proctor.domain.messages import BuildVariants, EndpointProbed, Reconcile, RunShards, ScoreAudit, StartAudit
from proctor.domain.panel import Panel
from proctor.domain.trial import Arm, Completion, Shard, Trial
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.awaited import request_of
from proctor.runtime.artifacts.chunks import get_items
from proctor.runtime.artifacts.store import get_model, put_model
from tests.integration.router_support import PINNED, Bench, router_bench

N_FRESH = 40


def write_fresh(home: Path, n: int = N_FRESH) -> None:
    rows = [{"id": f"f{number}", "question": f"What is {number} plus two?", "answer": str(number + 2)}
            for number in range(n)]  # fmt: skip
    (home / "fresh.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    write_fresh(tmp_path)
    with router_bench(tmp_path, valkey_url, monkeypatch, fresh_config={"path": "fresh.jsonl"}) as made:
        yield made


def answer_everything(bench: Bench) -> list[Trial]:
    """Have every shard answered; returns all trials that were asked."""
    asked = list[Trial]()
    while shards := bench.handed_out():
        for one in shards:
            trials = get_model(bench.artifacts, one.shard, Shard).trials
            asked += trials
            said = CompletionSet(completions=tuple(Completion(trial_id=trial.trial_id, text="1") for trial in trials))
            bench.answer(one, completions=put_model(bench.artifacts, said), n_trials=len(trials))
    return asked


def test_every_fresh_item_is_asked_once_beside_the_others(bench: Bench) -> None:
    bench.to_answering()
    asked = answer_everything(bench)
    of_arm = Counter(trial.arm for trial in asked)
    assert of_arm == {Arm.CANONICAL: 100, Arm.PERTURBED: 100, Arm.FRESH: N_FRESH}
    assert {trial.item_id for trial in asked if trial.arm is Arm.FRESH} == {f"f{n}" for n in range(N_FRESH)}
    assert len({trial.trial_id for trial in asked}) == len(asked)


def test_a_worker_of_before_is_not_handed_shards_that_it_could_not_read(bench: Bench) -> None:
    bench.to_answering()
    message = next(one for one in bench.sent if isinstance(one, RunShards))
    assert (message.fresh, message.version) == (True, 2)


def test_what_rewords_is_told_nothing_of_them(bench: Bench) -> None:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
    (message,) = bench.take(BuildVariants)
    assert message.version == 1
    assert "fresh" not in json.dumps(message.plain())


def test_the_manifest_and_the_messages_name_the_fresh_items(bench: Bench) -> None:
    audit = bench.to_answering()
    answer_everything(bench)
    assert {message.fresh for message in bench.grading} == {view(bench.records, audit).inputs.fresh}
    seen = view(bench.records, audit)
    assert seen.inputs.manifest is not None
    manifest = get_model(bench.artifacts, seen.inputs.manifest, AuditManifest)
    assert manifest.fresh is not None
    assert len(get_items(bench.artifacts, manifest.fresh).items) == N_FRESH
    assert manifest.card.contamination_policy["fresh"]["content_digest"]
    message = request_of(seen)
    assert isinstance(message, ScoreAudit)
    assert (message.fresh, message.version) == (True, 2)


def test_a_panel_is_kept_with_the_audit(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fresh(tmp_path)
    ids = [*(f"q{n}" for n in range(100)), *(f"f{n}" for n in range(N_FRESH))]
    rows = [{"model": model, "item_id": item, "correct": True} for model in ("a", "b") for item in ids]
    (tmp_path / "panel.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    section = {"path": "fresh.jsonl", "panel_path": "panel.jsonl"}
    with router_bench(tmp_path, valkey_url, monkeypatch, fresh_config=section) as bench:
        digest = view(bench.records, bench.submit()).inputs.panel
        assert digest is not None
        assert [model.name for model in get_model(bench.artifacts, digest, Panel).models] == ["a", "b"]


def test_more_fresh_items_than_the_benchmark_has_chunks_make_parts_of_their_own(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fresh(tmp_path, 1_100)
    section = {"path": "fresh.jsonl", "sample_size": 1_100}
    with router_bench(tmp_path, valkey_url, monkeypatch, fresh_config=section) as bench:
        bench.to_answering()
        asked = answer_everything(bench)
        assert Counter(trial.arm for trial in asked)[Arm.FRESH] == 1_100
        assert Counter(trial.arm for trial in asked)[Arm.CANONICAL] == 100


def test_a_suite_without_them_sends_what_it_always_sent(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        audit = bench.to_answering()
        message = next(one for one in bench.sent if isinstance(one, RunShards))
        assert message.version == 1
        assert not {"fresh", "panel"} & set(view(bench.records, audit).inputs.plain())
        assert "fresh" not in view(bench.records, audit).card.contamination_policy


def test_a_budget_counts_them(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fresh(tmp_path)
    section = {"fresh_config": {"path": "fresh.jsonl"}, "budget_config": {"max_trials": 239}}
    with router_bench(tmp_path, valkey_url, monkeypatch, **section) as bench:
        audit = bench.to_answering()
        tasks.reconcile(Reconcile())
        assert bench.state(audit).value == "failed"
        assert "it comes to 240 trials" in bench.records.audit(audit).detail


def test_an_unreadable_panel_puts_nothing_on_record(
    tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fresh(tmp_path)
    (tmp_path / "panel.jsonl").write_text('{"model": "a", "item_id": "q1"}\n')
    section = {"path": "fresh.jsonl", "panel_path": "panel.jsonl"}
    with (
        router_bench(tmp_path, valkey_url, monkeypatch, fresh_config=section) as bench,
        pytest.raises(BadInputError, match=r"panel\.jsonl:1: correct is None"),
    ):
        bench.submit()
