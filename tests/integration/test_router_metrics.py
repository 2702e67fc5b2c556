"""What the router counts: each trial once, whatever was delivered twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from proctor.domain.errors import StoreError
from proctor.domain.messages import Reconcile
from proctor.domain.trial import ANSWER_STAGE
from proctor.router import tasks
from proctor.router.ledger.store import MAX_FAILURES
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.metrics.recording import Instruments
from tests.integration.router_support import Bench, router_bench


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        yield bench


@pytest.fixture
def registry() -> Iterator[CollectorRegistry]:
    fresh = CollectorRegistry()
    metrics.record_in(Instruments(fresh))
    yield fresh
    metrics.record_in(None)


def trials(registry: CollectorRegistry, state: str) -> dict[str, float]:
    """Trials counted in a state, by arm."""
    return {
        sample.labels["arm"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "proctor_trials_total" and sample.labels["state"] == state
    }


def test_every_trial_is_planned_once_and_answered_once_though_every_answer_comes_twice(
    bench: Bench, registry: CollectorRegistry
) -> None:
    audit = bench.to_answering()
    tasks.reconcile(Reconcile())
    assert trials(registry, "planned") == {"canonical": 100, "perturbed": 100}
    while handed_out := bench.shards():
        for shard in handed_out:
            bench.answer(shard, completions="sha256:c")
            bench.answer(shard, completions="sha256:c")
    assert bench.ledger.is_complete(audit, ANSWER_STAGE)
    assert trials(registry, "answered") == {"canonical": 100, "perturbed": 100}
    assert registry.get_sample_value("proctor_duplicates_suppressed_total") == 4
    assert registry.get_sample_value("proctor_dead_lettered_trials_total") == 0


def test_a_failed_shard_is_redelivered_and_its_trials_are_dead_lettered_with_its_last_attempt(
    bench: Bench, registry: CollectorRegistry
) -> None:
    bench.to_answering()
    first, _ = bench.shards()
    for attempt in range(1, MAX_FAILURES + 1):
        for _ in range(2):
            bench.answer(first._replace(attempt=attempt), error="endpoint gone")
        tasks.reconcile(Reconcile())
    assert registry.get_sample_value("proctor_shard_redeliveries_total", {"cause": "failed"}) == MAX_FAILURES - 1
    assert registry.get_sample_value("proctor_dead_lettered_trials_total") == 64
    assert sum(trials(registry, "dead_lettered").values()) == 64
    assert registry.get_sample_value("proctor_duplicates_suppressed_total") == MAX_FAILURES


def test_an_overdue_shard_is_redelivered_for_that_cause(
    bench: Bench, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.to_answering()
    first, _ = bench.shards()
    monkeypatch.setattr(bench.ledger, "overdue", lambda audit, stage, **_: [(first.shard_id, first.attempt)])
    tasks.reconcile(Reconcile())
    assert registry.get_sample_value("proctor_shard_redeliveries_total", {"cause": "overdue"}) == 1


def test_a_shard_that_cannot_be_read_is_left_out_and_the_audit_goes_on(
    bench: Bench, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    audit = bench.to_answering()
    first, _ = bench.shards()
    tasks._dispatcher().counting._arms.clear()  # as in another router than the one that planned
    before = bench.ledger.progress(audit, ANSWER_STAGE).done
    monkeypatch.setattr(bench.artifacts, "get", _gone)
    bench.answer(first, completions="sha256:c")
    assert bench.ledger.progress(audit, ANSWER_STAGE).done == before + 64
    assert trials(registry, "answered") == {}
    assert "is not counted" in caplog.text
    assert bench.shards()


def _gone(digest: str) -> bytes:
    raise StoreError(f"{digest} is gone")


def test_nothing_is_read_for_the_metrics_where_they_are_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.to_answering()
    first, _ = bench.shards()
    monkeypatch.setattr(bench.ledger, "entry", lambda *_: pytest.fail("was read"))
    bench.answer(first, completions="sha256:c")
