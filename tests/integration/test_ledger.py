"""The ledger's promises, against a real Valkey."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor.domain.errors import StoreError
from proctor.router.ledger import MAX_ATTEMPTS, Ledger, PlannedShard
from tests.support import wait_until

SHARDS = [PlannedShard(f"s{i}", 10 + i, f"sha256:{i}") for i in range(5)]


@pytest.fixture
def ledger(valkey_url: str) -> Iterator[Ledger]:
    ledger = Ledger(f"{valkey_url}/1")
    yield ledger
    ledger.close()


@pytest.fixture
def audit() -> str:
    return uuid.uuid4().hex


def test_a_shard_is_handed_out_in_plan_order_and_never_past_the_window(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, SHARDS)
    first = ledger.lease(audit, window=2)
    assert [(shard.shard_id, shard.attempt, shard.digest) for shard in first] == [
        ("s0", 1, "sha256:0"),
        ("s1", 1, "sha256:1"),
    ]
    assert ledger.lease(audit, window=2) == []
    ledger.record(audit, "s0", "sha256:done")
    assert [shard.shard_id for shard in ledger.lease(audit, window=2)] == ["s2"]


def test_the_same_plan_twice_is_one_plan_and_another_is_refused(ledger: Ledger, audit: str) -> None:
    assert ledger.plan(audit, SHARDS)
    assert not ledger.plan(audit, SHARDS)
    with pytest.raises(StoreError, match="another plan"):
        ledger.plan(audit, SHARDS[:-1])


def test_the_first_result_of_a_shard_wins(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, SHARDS)
    assert ledger.record(audit, "s3", "sha256:first") == "recorded"
    assert ledger.record(audit, "s3", "sha256:second") == "duplicate"
    assert ledger.done(audit) == {"s3": "sha256:first"}


def test_a_result_of_a_shard_that_was_never_planned_is_not_counted(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, SHARDS)
    assert ledger.record(audit, "alien", "sha256:x") == "unknown"
    assert ledger.progress(audit).done == 0


def test_completion_fires_once_however_many_workers_finish_at_the_same_time(ledger: Ledger, audit: str) -> None:
    shards = [PlannedShard(f"s{i}", 1, f"sha256:{i}") for i in range(60)]
    ledger.plan(audit, shards)
    outcomes: list[str] = []
    lock = threading.Lock()

    def deliver_all() -> None:
        for shard in shards:
            outcome = ledger.record(audit, shard.shard_id, "sha256:r")
            with lock:
                outcomes.append(outcome)

    threads = [threading.Thread(target=deliver_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("complete") == 1
    assert outcomes.count("recorded") == 59
    assert outcomes.count("duplicate") == 180
    assert ledger.is_complete(audit)


def test_a_failing_shard_is_tried_again_and_then_given_up_with_its_cause(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, SHARDS[:1])
    for attempt in range(1, MAX_ATTEMPTS + 1):
        (leased,) = ledger.lease(audit, window=1)
        assert leased.attempt == attempt
        outcome = ledger.fail(audit, "s0", attempt, cause="connection refused", retryable=True)
        assert outcome == ("complete" if attempt == MAX_ATTEMPTS else "queued")
    assert ledger.dead(audit) == {"s0": "connection refused"}
    assert ledger.record(audit, "s0", "sha256:late") == "duplicate", "given up and answered must stay disjoint"


def test_a_final_error_is_not_tried_again(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, SHARDS[:2])
    ledger.lease(audit, window=1)
    assert ledger.fail(audit, "s0", 1, cause="wrong model", retryable=False) == "dead"


def test_the_failure_of_an_old_attempt_does_not_touch_the_new_one(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, SHARDS[:1])
    ledger.lease(audit, window=1)
    ledger.fail(audit, "s0", 1, cause="x", retryable=True)
    ledger.lease(audit, window=1)
    assert ledger.fail(audit, "s0", 1, cause="late", retryable=True) == "stale"
    assert ledger.progress(audit).leased == 10


def test_a_shard_whose_lease_runs_out_is_overdue_by_the_servers_clock(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, SHARDS)
    ledger.lease(audit, window=1, lease=timedelta(milliseconds=30))
    ledger.lease(audit, window=2, lease=timedelta(hours=1))
    wait_until(lambda: ledger.overdue(audit) == [("s0", 1)], what="the short lease's end")


def test_starting_again_keeps_answers_and_queues_everything_else(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, SHARDS)
    ledger.lease(audit, window=4)
    ledger.record(audit, "s1", "sha256:done")
    ledger.fail(audit, "s2", 1, cause="down", retryable=False)
    assert ledger.restart(audit) == 4
    assert ledger.dead(audit) == {}
    assert [shard.shard_id for shard in ledger.lease(audit, window=9)] == ["s0", "s2", "s3", "s4"]
    assert all(shard.attempt == 1 for shard in ledger.lease(audit, window=9))


def test_every_key_expires_and_sits_in_the_audits_slot(ledger: Ledger, audit: str, valkey_url: str) -> None:
    ledger.plan(audit, SHARDS)
    ledger.lease(audit, window=3)
    ledger.record(audit, "s0", "sha256:r")
    ledger.fail(audit, "s1", 1, cause="x", retryable=False)
    for shard in ("s2", "s3", "s4"):
        ledger.record(audit, shard, "sha256:r")
    with redis.Redis.from_url(f"{valkey_url}/1") as client:
        keys = list(client.scan_iter(f"*{audit}*"))
        assert keys
        assert all(b"{" + audit.encode() + b"}" in key for key in keys)
        assert all(client.ttl(key) > 0 for key in keys)
        ledger.forget(audit)
        assert not list(client.scan_iter(f"*{audit}*"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["lease", "record", "fail", "fail_final"]), st.integers(0, 3)), max_size=40
    )
)
def test_answered_and_given_up_are_disjoint_and_complete_fires_at_most_once(
    ledger: Ledger, steps: list[tuple[str, int]]
) -> None:
    audit = uuid.uuid4().hex
    shards = [PlannedShard(f"s{i}", 1, "sha256:x") for i in range(4)]
    ledger.plan(audit, shards)
    attempts: dict[str, int] = {}
    completions = 0
    for action, index in steps:
        shard = f"s{index}"
        outcome = ""
        if action == "lease":
            attempts.update({leased.shard_id: leased.attempt for leased in ledger.lease(audit, window=2)})
        elif action == "record":
            outcome = ledger.record(audit, shard, "sha256:r")
        else:
            outcome = ledger.fail(audit, shard, attempts.get(shard, 1), cause="c", retryable=action == "fail")
        completions += outcome == "complete"
        done, dead = set(ledger.done(audit)), set(ledger.dead(audit))
        assert not done & dead
        assert ledger.is_complete(audit) == (len(done | dead) == 4)
        assert completions == int(ledger.is_complete(audit))
    ledger.forget(audit)


def test_a_ledger_that_is_not_there_is_one_clear_error() -> None:
    ledger = Ledger("redis://127.0.0.1:1/0")
    with pytest.raises(StoreError, match="did not answer"):
        ledger.plan("a", SHARDS)
    ledger.close()
