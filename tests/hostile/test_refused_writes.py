"""A Valkey that takes no writes (memory or disk full, a replica) is waited for like one that is away."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import redis
from kombu import Connection

from proctor.domain.errors import StoreError
from proctor.router.ledger.store import Ledger, PlannedShard
from proctor.runtime.messaging.broker_loss import RefusesWritesError, _while_open
from proctor.runtime.messaging.tasks import configure
from proctor.runtime.settings import Settings
from tests.support import free_port, valkey_server

SHARD = PlannedShard("s", 32, "sha256:" + "0" * 64, 0)


@pytest.fixture(autouse=True)
def configured(tmp_path: Path) -> None:
    configure(Settings(home=tmp_path))


@pytest.mark.parametrize("kind", ["memory", "replica", "too few replicas"])
def test_who_is_refused_a_write_tries_again_as_if_the_server_were_away(tmp_path: Path, kind: str) -> None:
    with valkey_server(tmp_path) as url, closing(redis.Redis.from_url(url)) as client:
        if kind == "memory":
            client.config_set("maxmemory", 1)
        elif kind == "replica":
            client.replicaof("127.0.0.1", free_port())
        else:
            client.config_set("min-replicas-to-write", 1)
        # What Celery ends a worker for is any error of the server's that is none of the connection.
        with pytest.raises(redis.ConnectionError) as refusal:
            client.lpush("a-queue", "x")
        assert isinstance(refusal.value, RefusesWritesError)
        if kind != "memory":
            # A script that has begun to write may end in spite of its memory's limit, so that none is broken off.
            with closing(Ledger(url)) as ledger, pytest.raises(StoreError, match="did not answer"):
                ledger.plan("an-audit", "answer", [SHARD])
        client.replicaof("NO", "ONE")
        client.config_set("maxmemory", 0)
        client.config_set("min-replicas-to-write", 0)
        assert client.lpush("a-queue", "x") == 1


def test_who_looks_for_a_replica_still_knows_one_by_its_error() -> None:
    from redis._parsers.base import BaseParser

    parse_error: Callable[[str], Exception] = BaseParser.parse_error
    assert isinstance(parse_error("READONLY You can't write against a read only replica."), redis.ReadOnlyError)
    assert isinstance(parse_error("OOM command not allowed"), redis.OutOfMemoryError)
    assert not isinstance(parse_error("ERR syntax error"), redis.ConnectionError)


@pytest.mark.parametrize("step", ["ack", "reject"])
def test_a_worker_whose_acknowledgement_is_refused_can_take_another_message(tmp_path: Path, step: str) -> None:
    with valkey_server(tmp_path) as url, closing(redis.Redis.from_url(url)) as client, Connection(url) as connection:
        connection.SimpleQueue("q").put({"a": 1})
        channel = connection.channel()
        channel.basic_qos(prefetch_count=1)
        taken = channel.basic_get("q")
        assert taken is not None
        guarded = _while_open(channel, getattr(channel.qos, step))
        assert not channel.qos.can_consume()
        client.config_set("min-replicas-to-write", 1)
        with pytest.raises(redis.ConnectionError):
            guarded(taken.delivery_tag)
        assert channel.qos.can_consume()
        client.config_set("min-replicas-to-write", 0)
        # It is still the broker's, which delivers it again.
        assert client.hlen("unacked") == 1
