"""A Redis that another took over from while the ledger's connections to it are open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

from proctor.domain.errors import StoreError
from proctor.router.ledger.store import Ledger, PlannedShard
from tests.support import free_port, valkey_server, wait_until

SHARDS = [PlannedShard(f"s{n}", 1, f"sha256:{n}", n) for n in range(3)]


def linked(client: Any) -> bool:
    return bool(client.info("replication").get("master_link_status") == "up")


def test_a_ledger_follows_its_address_to_the_server_that_took_over(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    at_once = ("--repl-diskless-sync-delay", "0")
    with (
        valkey_server(tmp_path / "first", *at_once) as first_url,
        valkey_server(tmp_path / "second", *at_once) as second_url,
    ):
        port = int(first_url.rpartition(":")[2])
        ledger = Ledger(f"{first_url}/0")
        first: Any = redis.Redis.from_url(first_url, single_connection_client=True)
        second: Any = redis.Redis.from_url(second_url, single_connection_client=True)
        second.replicaof("127.0.0.1", str(port))
        wait_until(lambda: linked(second), what="the replica")
        ledger.plan("a", "answer", SHARDS)
        first.wait(1, 5000)
        # As Sentinel does it: the replica is promoted, the old primary is to follow it, and the address moves. The
        # ledger's connection to the old one stays open.
        second.replicaof("NO", "ONE")
        first.config_set("port", free_port())
        first.replicaof("127.0.0.1", second_url.rpartition(":")[2])
        wait_until(lambda: linked(first), what="the old primary")
        with pytest.raises(redis.exceptions.ReadOnlyError):
            first.set("x", 1)
        second.config_set("port", port)
        assert [shard.shard_id for shard in ledger.lease("a", "answer", ["s0"])] == ["s0"]
        assert ledger.record("a", "answer", "s0", "sha256:r") == "recorded"
        ledger.note_asked("a", "step")
        assert second.hlen("proctor:{a}:answer:done") == 1
        for client in (first, second, ledger):
            client.close()


def test_a_ledger_on_a_replica_that_stays_one_says_so_and_has_written_nothing(tmp_path: Path) -> None:
    with valkey_server(tmp_path) as url, redis.Redis.from_url(url) as client:
        ledger = Ledger(f"{url}/0")
        ledger.plan("a", "answer", SHARDS)
        client.replicaof("127.0.0.1", str(free_port()))
        with pytest.raises(StoreError, match="read only replica"):
            ledger.lease("a", "answer", ["s0"])
        client.replicaof("NO", "ONE")
        assert ledger.queued("a", "answer") == 3
        ledger.close()
