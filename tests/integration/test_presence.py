"""The list of living workers and of what they have in hand, against a real Valkey."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry

from proctor.domain.errors import StoreError
from proctor.runtime.redis import presence as module
from proctor.runtime.redis import scripted as scripted_redis
from proctor.runtime.redis.presence import Held, Presence, announcing, new_worker_id, tolerated
from tests.support import free_port, wait_until

A, B = Held("a1", "answer", "s1", 1), Held("a1", "answer", "s2", 3)
LONG = timedelta(hours=1)


@pytest.fixture
def url(valkey_url: str) -> Iterator[str]:
    yield f"{valkey_url}/13"
    with redis.Redis.from_url(f"{valkey_url}/13") as client:
        client.flushdb()


@pytest.fixture
def presence(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Presence]:
    monkeypatch.setattr(module, "_SLOTS_FRESH_S", -1.0)
    presence = Presence(url, silence=LONG)
    yield presence
    presence.close()


@pytest.fixture
def client(url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(url, decode_responses=True) as client:
        yield client


def silence(client: redis.Redis, worker: str) -> None:
    """Have a worker be silent since the beginning of time."""
    client.zadd("proctor:presence:{presence}:seen", {worker: 0})


def test_slots_are_the_sum_over_the_living_workers_of_a_service(presence: Presence, client: redis.Redis) -> None:
    assert presence.slots("inference") == 0
    presence.announce("w1", "inference", 4)
    presence.announce("w2", "inference", 8)
    presence.announce("w3", "scorer", 16)
    assert (presence.slots("inference"), presence.slots("scorer")) == (12, 16)
    presence.announce("w1", "inference", 1)
    assert presence.slots("inference") == 9
    silence(client, "w2")
    assert presence.slots("inference") == 1
    presence.withdraw("w1")
    assert presence.slots("inference") == 0


def test_a_count_of_slots_is_kept_for_a_moment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SLOTS_FRESH_S", 3600.0)
    presence = Presence(url, silence=LONG)
    presence.announce("w1", "inference", 4)
    assert presence.slots("inference") == 4
    presence.withdraw("w1")
    assert presence.slots("inference") == 4
    presence.close()


def test_what_a_living_worker_holds_is_not_lost_and_what_a_silent_one_holds_is(
    presence: Presence, client: redis.Redis
) -> None:
    presence.announce("w1", "inference", 4)
    presence.holding("w1", [A, B])
    assert presence.lost() == []
    silence(client, "w1")
    assert presence.lost() == [A, B]
    presence.announce("w1", "inference", 4)
    assert presence.lost() == []


def test_what_a_worker_holds_before_it_was_announced_is_not_lost(presence: Presence) -> None:
    presence.holding("w1", [A])
    assert presence.lost() == []
    assert presence.slots("inference") == 0


def test_what_was_released_is_not_lost_with_its_worker(presence: Presence) -> None:
    presence.holding("w1", [A, B])
    presence.released("w1", [A])
    presence.withdraw("w1")
    assert presence.lost() == [B]


def test_a_worker_releases_nothing_of_another_one(presence: Presence) -> None:
    presence.holding("w1", [A])
    presence.holding("w2", [A])
    presence.released("w1", [A])
    presence.withdraw("w2")
    assert presence.lost() == [A]


def test_what_nobody_works_on_is_lost_though_its_worker_lives(presence: Presence) -> None:
    presence.announce("w1", "inference", 4)
    presence.holding("w1", [A, B])
    presence.abandoned([A])
    assert presence.lost() == [A]


def test_what_is_lost_is_told_until_it_is_forgotten(presence: Presence) -> None:
    presence.holding("w1", [A, B])
    presence.withdraw("w1")
    assert presence.lost() == presence.lost() == [A, B]
    presence.forget([A])
    assert presence.lost() == [B]
    presence.forget([B])
    presence.forget([])
    assert presence.lost() == []


def test_what_was_begun_is_known_until_it_was_seen_to(presence: Presence) -> None:
    presence.holding("w1", [A])
    assert presence.begun([A, B]) == {A}
    presence.withdraw("w1")
    assert presence.begun([A, B]) == {A}
    presence.forget([A])
    assert presence.begun([A, B]) == set()


def test_a_worker_that_was_silent_for_long_is_cleared_away(presence: Presence, client: redis.Redis) -> None:
    presence.announce("old", "inference", 4)
    presence.holding("old", [A])
    silence(client, "old")
    presence.announce("new", "inference", 4)
    assert client.hkeys("proctor:presence:{presence}:workers") == ["new"]
    assert presence.lost() == [A]


def test_every_key_expires_and_all_are_in_one_slot_of_a_cluster(presence: Presence, client: redis.Redis) -> None:
    presence.announce("w1", "inference", 4)
    presence.holding("w1", [A])
    presence.abandoned([B])
    keys = list(client.scan_iter("*"))
    assert len(keys) == 3
    assert all(0 < client.ttl(key) <= module.KEY_TTL.total_seconds() for key in keys)
    assert len({key_slot(key.encode()) for key in keys}) == 1


def test_what_is_abandoned_first_expires_too(presence: Presence, client: redis.Redis) -> None:
    presence.abandoned([A])
    assert client.ttl("proctor:presence:{presence}:held") > 0


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.lists(st.builds(Held, NAMES, NAMES, NAMES, st.integers(1, 9)), min_size=1, max_size=4, unique=True))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_shard_is_called_it_comes_back_as_it_was(presence: Presence, held: list[Held]) -> None:
    presence.holding("w1", held)
    presence.withdraw("w1")
    assert presence.lost() == sorted(held)
    presence.forget(held)


def test_a_process_announces_itself_until_it_leaves(presence: Presence) -> None:
    with announcing(presence, "w1", "inference", 4):
        wait_until(lambda: presence.slots("inference") == 4, what="the announcement")
    assert presence.slots("inference") == 0
    assert not any(thread.name == "presence" for thread in threading.enumerate())


def test_a_process_that_was_cleared_away_announces_itself_again(url: str, client: redis.Redis) -> None:
    presence = Presence(url, silence=timedelta(seconds=0.2))
    with announcing(presence, "w1", "inference", 4):
        wait_until(lambda: client.exists("proctor:presence:{presence}:workers") == 1, what="the announcement")
        client.flushdb()
        wait_until(lambda: client.exists("proctor:presence:{presence}:workers") == 1, what="another one")
    presence.close()


def test_a_server_that_does_not_answer_is_a_store_error_and_stops_no_work(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripted_redis, "Retry", lambda *_: Retry(NoBackoff(), 0))
    presence = Presence(f"redis://127.0.0.1:{free_port()}/0", silence=timedelta(seconds=0.1))
    calls = [
        lambda: presence.announce("w1", "inference", 1),
        lambda: presence.withdraw("w1"),
        lambda: presence.holding("w1", [A]),
        lambda: presence.released("w1", [A]),
        lambda: presence.abandoned([A]),
        lambda: presence.forget([A]),
        lambda: presence.begun([A]),
        lambda: presence.slots("inference"),
        presence.lost,
    ]
    for call in calls:
        with pytest.raises(StoreError, match="the list of workers did not answer"):
            call()
    with tolerated("note what is in hand"):
        presence.holding("w1", [A])
    assert "could not note what is in hand: the list of workers did not answer" in caplog.text


def test_two_processes_are_never_the_same_worker() -> None:
    assert new_worker_id() != new_worker_id()
