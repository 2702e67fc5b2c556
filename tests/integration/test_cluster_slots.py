"""The ledger and the pools on a Valkey in cluster mode, which refuses a step that touches more than one slot."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis

from proctor.router.ledger.store import Ledger, PlannedShard, Setback
from proctor.router.pools.store import Pools
from tests.support import free_port, valkey_server, wait_until

STAGE = "answer"


@pytest.fixture(scope="module")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of one server, which has all the slots."""
    # The port of the cluster's bus is the server's plus 10,000 otherwise, which may be more than there are.
    arguments = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    with valkey_server(tmp_path_factory.mktemp("cluster"), *arguments) as url:
        with redis.Redis.from_url(url, decode_responses=True) as client:
            client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
            wait_until(lambda: client.execute_command("CLUSTER INFO")["cluster_state"] == "ok", what="the cluster")
        yield url


def test_a_step_over_two_slots_is_refused_here(cluster_url: str) -> None:
    with redis.Redis.from_url(cluster_url) as client, pytest.raises(redis.RedisError, match=r"(?i)slot"):
        client.eval("return redis.call('EXISTS', KEYS[1], KEYS[2])", 2, "{a}:x", "{b}:x")


def test_every_step_of_the_ledger_touches_the_slot_of_its_audit_alone(cluster_url: str) -> None:
    ledger = Ledger(cluster_url)
    shards = [PlannedShard(f"s{n}", 2, f"sha256:{n}", n) for n in range(4)]
    for audit in ("one", "other"):
        ledger.note_asked(audit, "step")
        ledger.plan(audit, STAGE, shards, total_trials=8)
        assert len(ledger.lease(audit, STAGE, ledger.next_up(audit, STAGE, 3), lease=timedelta(0))) == 3
        assert len(ledger.overdue(audit, STAGE)) == 3
        ledger.record(audit, STAGE, "s0", "sha256:r")
        assert ledger.fail(audit, STAGE, "s1", 1, setback=Setback.LOST, cause="x") == "queued"
        assert ledger.split(audit, STAGE, "s2", 1, [PlannedShard("child", 2, "sha256:c", 2)])
        ledger.lease(audit, STAGE, ["child"])
        assert ledger.hand_back(audit, STAGE, [("child", 1)]) == 1
        ledger.note_graded(audit, STAGE, {"sha256:0": ("sha256:r", "sha256:g")})
        assert ledger.restart(audit, STAGE) == 3
        assert ledger.progress(audit, STAGE).done == 2
        assert ledger.spent(audit).trials == 2
        ledger.expire(audit, timedelta(hours=1))
        ledger.forget(audit)
    ledger.close()


def test_every_step_of_the_pools_touches_the_slot_of_its_pool_alone(cluster_url: str) -> None:
    pools = Pools(cluster_url)
    for pool in ("one", "other"):
        for audit in ("a", "b"):
            pools.claim(pool, audit, STAGE, ["s0", "s1"], wanted=9, capacity=3, priority=1)
        pools.settle(pool, "a", STAGE, ["s0"], worked=True, n_trials=1, seconds=1.0)
        assert pools.unreachable(pool, "a", STAGE, "s1").counts
        assert pools.away_for(pool) is not None
        assert len(pools.held(pool, "a")) == 1
        assert pools.sweep(pool, "a", STAGE, [], older_than=timedelta(0)) == 1
        assert pools.pace(pool) == 1.0
        assert pools.outlook(pool, fresh=timedelta(hours=1)).pace_s == 1.0
        pools.rest(pool)
        pools.leave(pool, "b")
    pools.close()
