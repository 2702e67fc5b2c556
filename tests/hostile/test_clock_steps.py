"""Clocks that step hours forth and back in the middle of an audit: of the Redis server, and of a router's machine."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from celery import Celery
from celery.beat import Scheduler

from proctor.domain.manifest import AuditManifest
from proctor.domain.messages import ProbeEndpoint, Reconcile, ScoreAudit, StartAudit
from proctor.domain.trial import ANSWER_STAGE
from proctor.router import tasks
from proctor.router.pools import packs
from proctor.router.pools.store import Pools
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.messaging import steady_schedule
from proctor.runtime.messaging.steady_schedule import Steadily
from proctor.runtime.records.store import AuditState
from proctor.runtime.redis.presence import Held
from proctor.runtime.timing import DEFAULT_TIMING
from tests.integration.router_support import Bench, HandedOut, router_bench
from tests.stepped_clock import step

FORTH, BACK = timedelta(hours=5), timedelta(hours=-5)
LEASE = DEFAULT_TIMING.lease
SILENCE = timedelta(seconds=DEFAULT_TIMING.presence_s)
A_MOMENT = timedelta(seconds=1)


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(packs, "shard_trials", lambda *_: 32)
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        yield bench


@pytest.fixture
def client(bench: Bench) -> Iterator[Any]:
    with redis.Redis.from_url(bench.settings.ledger_url, decode_responses=True) as client:
        yield client


@pytest.fixture
def pools(bench: Bench) -> Pools:
    return bench.pools


def in_hand(shards: list[HandedOut]) -> list[Held]:
    return [Held(one.audit_id, one.stage, one.shard_id, one.attempt) for one in shards]


def end(bench: Bench, audit: str, asked: list[HandedOut]) -> AuditManifest:
    """Answer what was asked, and what is asked then, until the audit is scored."""
    while not (scoring := [message for message in bench.sent if isinstance(message, ScoreAudit)]):
        shards, asked = asked or bench.handed_out(), []
        assert shards, "nothing is asked any more"
        for shard in shards:
            bench.answer(shard, completions=f"sha256:{shard.shard_id}")
    assert bench.ledger.spent(audit).trials == 200
    manifest = get_model(bench.artifacts, scoring[0].manifest, AuditManifest)
    assert not manifest.dead
    return manifest


@pytest.mark.parametrize("by", [FORTH, BACK], ids=["forth", "back"])
def test_an_audit_ends_with_each_trial_counted_once_though_the_servers_clock_steps(
    bench: Bench, client: Any, by: timedelta
) -> None:
    audit = bench.to_answering()
    asked = bench.shards()
    bench.presence.holding("w", in_hand(asked))
    step(client, by)
    tasks.reconcile(Reconcile())
    assert bench.state(audit) is AuditState.ANSWERING
    end(bench, audit, asked)


def test_what_a_dead_worker_had_in_hand_is_asked_again_in_time_though_the_clock_was_put_back(
    bench: Bench, client: Any
) -> None:
    audit = bench.to_answering()
    asked = bench.shards()
    bench.presence.announce("w", "inference", 4)
    bench.presence.holding("w", in_hand(asked))
    step(client, BACK)
    step(client, SILENCE + A_MOMENT)
    tasks.reconcile(Reconcile())
    assert {shard.shard_id for shard in bench.shards()} == {shard.shard_id for shard in asked}
    assert bench.presence.lost() == []
    del audit


def test_a_worker_that_lives_is_known_to_by_its_next_word_though_the_clock_was_put_back(
    bench: Bench, client: Any
) -> None:
    bench.presence.announce("w", "inference", 4)
    step(client, BACK)
    bench.presence.announce("w", "inference", 4)
    assert bench.presence.slots("inference") == 4


def test_a_small_step_back_makes_no_living_worker_lost(bench: Bench, client: Any) -> None:
    held = Held("a", "answer", "s", 1)
    bench.presence.announce("w", "inference", 4)
    bench.presence.holding("w", [held])
    step(client, timedelta(seconds=-2))
    assert bench.presence.lost() == []


def test_a_lost_message_is_asked_again_after_a_lease_though_the_clock_was_put_back(bench: Bench, client: Any) -> None:
    bench.to_answering()
    asked = bench.shards()
    step(client, BACK)
    tasks.reconcile(Reconcile())
    assert bench.shards() == []
    step(client, LEASE + A_MOMENT)
    tasks.reconcile(Reconcile())
    assert {shard.shard_id for shard in bench.shards()} == {shard.shard_id for shard in asked}


def test_a_request_is_sent_again_in_time_though_the_clock_was_put_back(bench: Bench, client: Any) -> None:
    audit = bench.submit()
    tasks.start(StartAudit(audit_id=audit))
    bench.sent.clear()
    tasks.reconcile(Reconcile())
    assert bench.take(ProbeEndpoint) == []
    step(client, BACK)
    tasks.reconcile(Reconcile())
    assert len(bench.take(ProbeEndpoint)) == 1


def test_credits_of_who_died_come_back_after_a_lease_though_the_clock_was_put_back(pools: Pools, client: Any) -> None:
    assert len(pools.claim("p", "dead", "answer", ["s0", "s1"], wanted=2, capacity=2).granted) == 2
    step(client, BACK)
    assert pools.claim("p", "living", "answer", ["t0"], wanted=1, capacity=2).granted == ()
    step(client, LEASE + A_MOMENT)
    assert pools.claim("p", "living", "answer", ["t0"], wanted=1, capacity=2).granted == ("t0",)


def test_credits_that_no_lease_came_of_are_taken_back_though_the_clock_was_put_back(pools: Pools, client: Any) -> None:
    pools.claim("p", "a", "answer", ["s0"], wanted=1, capacity=2)
    step(client, BACK)
    assert pools.sweep("p", "a", "answer", [], older_than=timedelta(seconds=10)) == 1
    assert pools.held("p", "a") == {}


def test_what_a_dead_audit_wanted_is_forgotten_though_the_clock_was_put_back(pools: Pools, client: Any) -> None:
    pools.claim("p", "dead", "answer", [], wanted=9, capacity=4)
    step(client, BACK)
    assert len(pools.claim("p", "living", "answer", ["t0", "t1", "t2", "t3"], wanted=4, capacity=4).granted) == 4


def test_no_audit_waits_for_hours_for_its_turn_because_the_clock_was_put_back(pools: Pools, client: Any) -> None:
    for audit in ("a", "b", "c"):
        pools.claim("p", audit, "answer", [f"{audit}0", f"{audit}1"], wanted=9, capacity=1)
    pools.release("p", "a", "answer", ["a0"])
    pools.claim("p", "a", "answer", [], wanted=9, capacity=1)
    step(client, BACK)
    served = list[str]()
    for _ in range(9):
        for audit in ("a", "b", "c"):
            granted = pools.claim("p", audit, "answer", [f"{audit}0", f"{audit}1"], wanted=9, capacity=1).granted
            if granted:
                served.append(audit)
                pools.release("p", audit, "answer", granted)
    assert set(served) == {"a", "b", "c"}


def test_servers_that_are_away_are_probed_in_time_though_the_clock_was_put_back(pools: Pools, client: Any) -> None:
    pools.claim("p", "a", "answer", ["s0"], wanted=1, capacity=2)
    pools.unreachable("p", "a", "answer", "s0")
    assert not pools.claim("p", "a", "answer", ["s1"], wanted=1, capacity=2).probing
    step(client, BACK)
    assert pools.claim("p", "a", "answer", ["s1"], wanted=1, capacity=2).probing
    assert pools.away_for("p") == 0.0
    assert pools.unreachable("p", "a", "answer", "s1").since_s == 0.0
    step(client, timedelta(seconds=30))
    assert pools.away_for("p") == pytest.approx(30.0, abs=5.0)


def test_a_clock_that_goes_a_week_ahead_takes_the_ledger_with_it_and_the_audit_says_so(
    bench: Bench, client: Any
) -> None:
    audit = bench.to_answering()
    bench.shards()
    step(client, timedelta(days=8))
    tasks.reconcile(Reconcile())
    assert "the ledger lost keys of this audit" in bench.records.audit(audit).detail
    bench.start_again()
    end(bench, audit, [])


class WallClock:
    """Celery's clock of a machine, which a test may put back."""

    def __init__(self) -> None:
        self.wrong_by = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.wrong_by


def beat(schedule: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Scheduler, WallClock, list[str]]:
    wall, sent = WallClock(), list[str]()
    app = Celery("clocks", set_as_current=False, broker="memory://")
    monkeypatch.setattr(app, "now", wall)
    app.conf.update(result_expires=None, beat_schedule={"reconcile": {"task": "r", "schedule": schedule}})
    monkeypatch.setattr(Scheduler, "apply_entry", lambda _, entry, producer=None: sent.append(entry.name))
    scheduler = Scheduler(app, lazy=False)
    return scheduler, wall, sent


@pytest.mark.parametrize("by", [FORTH, BACK], ids=["forth", "back"])
def test_the_reconciler_is_sent_on_time_though_the_routers_clock_steps(
    monkeypatch: pytest.MonkeyPatch, by: timedelta
) -> None:
    passed_s = [0.0]
    monkeypatch.setattr(steady_schedule, "time", SimpleNamespace(monotonic=lambda: passed_s[0]))
    scheduler, wall, sent = beat(Steadily(30.0), monkeypatch)
    scheduler.tick()
    wall.wrong_by = by
    while passed_s[0] < 301.0:
        # As beat does: it sleeps for as long as a tick says.
        passed_s[0] += max(scheduler.tick(), 0.01)
    assert len(sent) >= 9


def test_a_router_that_begins_after_the_clock_was_put_back_sends_the_reconciler_within_its_interval() -> None:
    due, next_s = Steadily(30.0).is_due(datetime.now(UTC) + timedelta(hours=5))
    assert due or next_s <= 30.0
    kept = pickle.loads(pickle.dumps(Steadily(30.0)))
    assert (type(kept), kept.run_every) == (Steadily, timedelta(seconds=30))


def test_the_routers_own_reconciler_goes_by_that_clock(bench: Bench) -> None:
    app = Celery("router", set_as_current=False)
    tasks._reconcile_now_and_then(app)
    schedule = app.conf.beat_schedule["reconcile"]["schedule"]
    assert isinstance(schedule, Steadily)
    assert schedule.seconds == bench.settings.timing.reconcile_interval_s


def test_nothing_is_known_of_an_audit_stage_that_never_was(bench: Bench) -> None:
    assert bench.ledger.standing("nobody", ANSWER_STAGE, 1).lost == ()
