"""Two endpoints and the same workers: a slow one keeps no more of them than its share while a quick one has work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import redis

from proctor.domain.messages import Reconcile
from proctor.domain.trial import ANSWER_STAGE
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.pools.store import Pools
from tests.integration.router_support import Bench, HandedOut, router_bench
from tests.support import wait_until

SLOTS = 4
SLOW, QUICK = "http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1"
FRESH = timedelta(minutes=1)


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # Small parts, of which each is a shard of its own: there are enough for everybody.
    monkeypatch.setattr("proctor.runtime.artifacts.chunks.CHUNK_ITEMS", 3)
    with router_bench(tmp_path, valkey_url, monkeypatch) as bench:
        bench.presence.announce("w", "inference", SLOTS)
        yield bench


def begin(bench: Bench, name: str, url: str, *, seconds_a_trial: float | None) -> tuple[str, list[HandedOut]]:
    """Begin an audit of a model at an endpoint; returns it, and what is handed out of it."""
    model = bench.suite.model.model_copy(update={"endpoint": url})
    bench.suite = bench.suite.model_copy(update={"audit_suite_id": name, "model": model})
    pool = view(bench.records, bench.submit()).inputs.endpoint.pool
    if seconds_a_trial is not None:
        bench.pools.note_pace(pool, n_trials=100, seconds=100 * seconds_a_trial)
    audit = bench.to_answering()
    return audit, bench.shards()


def slow(bench: Bench) -> tuple[str, list[HandedOut]]:
    return begin(bench, "slow", SLOW, seconds_a_trial=1.0)


def quick(bench: Bench) -> tuple[str, list[HandedOut]]:
    # Of its servers, three shards of 64 trials would take a second each, and a pack of them three.
    return begin(bench, "quick", QUICK, seconds_a_trial=1 / 64)


def under_way(bench: Bench, audit: str) -> int:
    return len(bench.ledger.leases(audit, ANSWER_STAGE))


def answer(bench: Bench, shard: HandedOut, *, seconds: float) -> list[HandedOut]:
    """Have a worker answer; returns what is handed out then."""
    bench.answer(shard, completions=f"sha256:{shard.shard_id}", n_trials=3, seconds=seconds)
    return bench.shards()


def test_a_slow_pool_that_is_alone_uses_every_slot(bench: Bench) -> None:
    audit, handed_out = slow(bench)
    assert len(handed_out) == SLOTS
    for _ in range(6):
        handed_out += answer(bench, handed_out.pop(0), seconds=3.0)
        assert under_way(bench, audit) == SLOTS


def test_while_another_has_work_a_slow_pool_holds_no_more_than_its_share(bench: Bench) -> None:
    slow_audit, of_slow = slow(bench)
    quick_audit, of_quick = quick(bench)
    assert {shard.audit_id for shard in of_quick} == {quick_audit}
    for left in (SLOTS - 1, SLOTS // 2, SLOTS // 2, SLOTS // 2):
        of_slow += answer(bench, of_slow.pop(0), seconds=3.0)
        assert under_way(bench, slow_audit) == left
    for _ in range(9):
        of_quick += answer(bench, of_quick.pop(0), seconds=3 / 64)
        assert under_way(bench, quick_audit) >= SLOTS // 2
        assert under_way(bench, slow_audit) == SLOTS // 2


def test_a_slow_pool_that_comes_later_has_its_share_from_the_start(bench: Bench) -> None:
    quick(bench)
    audit, of_slow = slow(bench)
    assert len(of_slow) == under_way(bench, audit) == SLOTS // 2


def test_a_pool_of_which_nothing_is_known_is_no_quick_one(bench: Bench) -> None:
    quick(bench)
    _, handed_out = begin(bench, "new", SLOW, seconds_a_trial=None)
    assert len(handed_out) == SLOTS // 2


def test_a_slow_pool_uses_what_the_other_does_not_need_and_every_slot_when_it_has_ended(bench: Bench) -> None:
    slow_audit, of_slow = slow(bench)
    quick_audit, of_quick = quick(bench)
    while of_quick:
        of_quick += answer(bench, of_quick.pop(0), seconds=3 / 64)
    assert bench.ledger.is_complete(quick_audit, ANSWER_STAGE)
    of_slow += answer(bench, of_slow.pop(0), seconds=3.0)
    assert under_way(bench, slow_audit) == SLOTS


def test_the_reconciler_says_of_a_pool_whose_servers_take_long_that_it_has_work(bench: Bench) -> None:
    slow(bench)
    with redis.Redis.from_url(bench.settings.ledger_url) as client:
        client.delete("proctor:pools:{working}")
    tasks.reconcile(Reconcile())
    _, of_quick = quick(bench)
    found = bench.pools.outlook("of nobody", fresh=FRESH, at_work=False)
    assert len(found.others) == 2
    assert of_quick


def test_a_pool_whose_servers_are_away_leaves_the_others_all_but_one_slot(bench: Bench) -> None:
    slow_audit, of_slow = slow(bench)
    _, of_quick = quick(bench)
    for shard in of_quick:
        bench.answer(shard, error="no connection", unreachable=True)
    bench.shards()
    for _ in range(3):
        tasks.reconcile(Reconcile())
    bench.shards()
    for _ in range(3):
        of_slow += answer(bench, of_slow.pop(0), seconds=3.0)
    assert under_way(bench, slow_audit) == SLOTS - 1


@pytest.fixture
def pools(valkey_url: str) -> Iterator[Pools]:
    pools = Pools(f"{valkey_url}/5")
    yield pools
    pools.close()
    with redis.Redis.from_url(f"{valkey_url}/5") as client:
        client.flushdb()


def test_each_pool_is_told_what_the_others_want_in_packs(pools: Pools) -> None:
    pools.claim("a", "x", ANSWER_STAGE, ["s0", "s1"], wanted=9, capacity=2, together=4)
    pools.claim("a", "y", ANSWER_STAGE, [], wanted=8, capacity=2, together=4)
    assert pools.outlook("a", fresh=FRESH).others == {}
    assert pools.outlook("b", fresh=FRESH, at_work=False).others == {"a": 5}, "17 shards, by four"
    assert pools.outlook("a", fresh=FRESH).others == {}, "who only looked has no work"
    pools.rest("a")
    assert pools.outlook("b", fresh=FRESH).others == {}


def test_a_pool_that_never_claimed_may_want_any_number(pools: Pools) -> None:
    pools.outlook("new", fresh=FRESH)
    assert pools.outlook("b", fresh=FRESH).others["new"] > 1000


def test_what_is_not_heard_of_any_more_has_no_work(pools: Pools) -> None:
    pools.outlook("gone", fresh=FRESH)
    wait_until(
        lambda: pools.outlook("b", fresh=timedelta(milliseconds=20), at_work=False).others == {}, what="the end of it"
    )
    assert pools.outlook("b", fresh=FRESH, at_work=False).others.keys() == {"gone"}


def test_what_was_noted_before_the_clock_was_put_back_is_cleared_away(pools: Pools, valkey_url: str) -> None:
    with redis.Redis.from_url(f"{valkey_url}/5", decode_responses=True) as client:
        client.hset("proctor:pools:{working}", "later", f"3 {int((time.time() + 9999) * 1000)}")
        assert pools.outlook("b", fresh=FRESH).others == {}
        assert client.hkeys("proctor:pools:{working}") == ["b"]
        assert 0 < client.ttl("proctor:pools:{working}") <= FRESH.total_seconds()


def test_the_pace_of_a_pool_comes_with_it(pools: Pools) -> None:
    assert pools.outlook("p", fresh=FRESH).pace_s is None
    pools.note_pace("p", n_trials=10, seconds=5.0)
    assert pools.outlook("p", fresh=FRESH).pace_s == pools.pace("p") == 0.5
