"""What a router says waits for each service: read from real stores, at every state of an audit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from prometheus_client import CollectorRegistry

from proctor.domain.manifest import AnsweredShard
from proctor.domain.messages import (
    AuditScored,
    DecisionWritten,
    EndpointProbed,
    ShardsGraded,
    StartAudit,
    VariantsBuilt,
)
from proctor.domain.trial import ANSWER_STAGE
from proctor.router import tasks
from proctor.router.collectors import WorkCollector
from proctor.router.control import pause
from proctor.router.ledger.store import PlannedShard
from proctor.router.states import RUNNING, TABLE
from proctor.runtime.records.audit_state import AuditState
from tests.integration.router_support import PINNED, Bench, router_bench

QUIET = {"inference": 0, "perturbation": 0, "scorer": 0, "registry": 0}


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        bench.settings = bench.settings.model_copy(update={"broker_url": f"{valkey_url}/3"})
        yield bench
        with redis.Redis.from_url(bench.settings.broker_url) as client:
            client.flushdb()


def samples(bench: Bench, name: str, label: str, **settings: Any) -> dict[str, float]:
    """The values of a metric by its one label, as they are scraped now."""
    registry = CollectorRegistry()
    registry.register(WorkCollector(bench.settings.model_copy(update=settings)))
    return {
        sample.labels[label]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def work(bench: Bench, **settings: Any) -> dict[str, float]:
    return samples(bench, "proctor_scaling_work", "service", **settings)


def shards(bench: Bench) -> dict[str, float]:
    return samples(bench, "proctor_shards", "state")


def test_every_state_that_runs_names_who_must_be_there_but_the_first_which_is_the_routers() -> None:
    assert [state for state in RUNNING if TABLE[state].service is None] == [AuditState.CREATED]
    assert {row.service for state, row in TABLE.items() if state not in RUNNING} == {None}


def test_without_an_audit_nothing_waits_and_it_is_said(bench: Bench) -> None:
    assert work(bench) == QUIET
    assert shards(bench) == {"queued": 0, "leased": 0, "unplanned": 0}


def test_an_audit_is_waited_for_by_one_service_after_the_other_until_nothing_is_left(bench: Bench) -> None:
    audit = bench.submit()
    assert work(bench) == QUIET
    tasks.start(StartAudit(audit_id=audit))
    assert work(bench) == QUIET | {"inference": 1}, "its endpoint's probe wakes a worker"
    tasks.endpoint_probed(EndpointProbed(audit_id=audit, ok=True, model_digest=PINNED, server="test"))
    assert work(bench) == QUIET | {"perturbation": 1}
    bench.sent.clear()
    tasks.variants_built(VariantsBuilt(audit_id=audit, variants=bench.variants(audit)))
    assert work(bench) == QUIET | {"inference": 4}, "two hundred trials, in shards of 64 of either arm"
    assert sum(shards(bench).values()) == 4
    answered = 0
    while handed_out := bench.handed_out():
        for shard in handed_out:
            bench.answer(shard, completions="sha256:c")
            answered += 1
            if answered < 4:
                assert work(bench) == QUIET | {"inference": 4 - answered, "scorer": answered}, "each is to be graded"
    assert bench.state(audit) is AuditState.SCORING
    assert work(bench) == QUIET | {"scorer": 1}
    tasks.scored(AuditScored(audit_id=audit))
    assert work(bench) == QUIET | {"registry": 1}
    tasks.decision_written(DecisionWritten(audit_id=audit, registry_version="m/1"))
    assert work(bench) == QUIET


def test_what_a_worker_holds_is_work_though_no_queue_has_it(bench: Bench) -> None:
    bench.presence.announce("w", "inference", 8)
    bench.to_answering()
    assert shards(bench) == {"queued": 0, "leased": 4, "unplanned": 0}
    assert work(bench)["inference"] == 4


def test_shards_that_are_graded_are_no_longer_the_scorers(bench: Bench) -> None:
    audit = bench.to_answering()
    first, _ = bench.shards()
    bench.answer(first, completions="sha256:c")
    assert work(bench)["scorer"] == 1
    graded = AnsweredShard(shard=first.shard, completions="sha256:c", grades="sha256:g")
    tasks.shards_graded(ShardsGraded(audit_id=audit, graded=(graded,)))
    assert work(bench)["scorer"] == 0


def test_a_paused_audit_counts_what_was_handed_out_and_no_more(bench: Bench) -> None:
    audit = bench.to_answering()
    assert shards(bench) == {"queued": 2, "leased": 2, "unplanned": 0}
    pause(bench.records, audit)
    assert work(bench)["inference"] == 2
    for shard in bench.shards():
        bench.answer(shard, completions="sha256:c")
    assert work(bench)["inference"] == 0
    assert set(samples(bench, "proctor_oldest_unfinished_seconds", "state").values()) == {0.0}


def test_what_is_left_of_a_stage_that_is_not_cut_to_its_end_is_estimated_by_the_shards_that_are(bench: Bench) -> None:
    audit = bench.to_answering()
    bench.ledger.forget(audit)
    first = [PlannedShard(f"s{n}", 50, "sha256:s", n) for n in range(4)]
    bench.ledger.plan(audit, ANSWER_STAGE, first, part=0, parts=3, total_trials=1001)
    assert shards(bench) == {"queued": 4, "leased": 0, "unplanned": 17}
    assert work(bench)["inference"] == 21


def test_an_audit_whose_stage_is_not_planned_yet_keeps_a_worker(bench: Bench) -> None:
    audit = bench.to_answering()
    bench.ledger.forget(audit)
    assert work(bench)["inference"] == 1


def test_audits_of_many_round_trips_are_all_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.router.work._TOGETHER", 2)
    for name in "abcde":
        bench.another_suite(name)
        bench.to_answering()
    assert sum(shards(bench).values()) == 20
    assert work(bench)["inference"] == 20


def test_the_queue_of_a_small_service_counts_where_it_is_longer_than_what_audits_wait_for(bench: Bench) -> None:
    with redis.Redis.from_url(bench.settings.broker_url) as client:
        client.rpush("registry", "an override", "another")
        client.rpush("inference", "what the ledger knows better")
    assert work(bench) == QUIET | {"registry": 2}


@pytest.mark.parametrize("broker", ["amqp://guest@127.0.0.1:9//", "redis://127.0.0.1:9/0"])
def test_without_the_queues_it_is_told_what_audits_wait_for(bench: Bench, broker: str) -> None:
    tasks.start(StartAudit(audit_id=bench.submit()))
    assert work(bench, broker_url=broker) == QUIET | {"inference": 1}


def test_where_the_ledger_is_silent_nothing_is_said_rather_than_nothing_to_do(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.to_answering()
    assert work(bench, ledger_url="redis://127.0.0.1:9/1") == {}
    assert "what waits for the services cannot be told" in caplog.text


def test_where_the_record_store_is_silent_nothing_is_said(bench: Bench) -> None:
    assert work(bench, records_url=f"sqlite:///{bench.home}/no/such/folder.sqlite") == {}


def test_scrapes_that_come_together_share_a_look(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = list[object]()
    monkeypatch.setattr("proctor.router.collectors.look", lambda *_: looks.append(1))
    collector = WorkCollector(bench.settings, fresh_s=timedelta(hours=1).total_seconds())
    list(collector.collect())
    list(collector.collect())
    assert len(looks) == 1
    eager = WorkCollector(bench.settings, fresh_s=-1)
    list(eager.collect())
    list(eager.collect())
    assert len(looks) == 3


def test_the_oldest_audit_of_a_state_is_the_one_that_tells_its_age(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.runtime.records.store._now", lambda: "2026-01-01T00:00:00+00:00")
    bench.to_answering()
    monkeypatch.undo()
    ages = samples(bench, "proctor_oldest_unfinished_seconds", "state")
    assert set(ages) == {state.value for state in RUNNING}
    assert ages["answering"] > timedelta(days=1).total_seconds()
    assert ages["scoring"] == 0
