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

STAGE = "answer"
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
    ledger.plan(audit, STAGE, SHARDS)
    first = ledger.lease(audit, STAGE, window=2)
    assert [(shard.shard_id, shard.attempt, shard.digest) for shard in first] == [
        ("s0", 1, "sha256:0"),
        ("s1", 1, "sha256:1"),
    ]
    assert ledger.lease(audit, STAGE, window=2) == []
    ledger.record(audit, STAGE, "s0", "sha256:done")
    assert [shard.shard_id for shard in ledger.lease(audit, STAGE, window=2)] == ["s2"]


def test_the_same_plan_twice_is_one_plan_and_another_is_refused(ledger: Ledger, audit: str) -> None:
    assert ledger.plan(audit, STAGE, SHARDS)
    assert not ledger.plan(audit, STAGE, SHARDS)
    with pytest.raises(StoreError, match="another plan"):
        ledger.plan(audit, STAGE, SHARDS[:-1])


def test_the_first_result_of_a_shard_wins(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS)
    assert ledger.record(audit, STAGE, "s3", "sha256:first") == "recorded"
    assert ledger.record(audit, STAGE, "s3", "sha256:second") == "duplicate"
    assert ledger.done(audit, STAGE) == {"s3": "sha256:first"}


def test_a_result_of_a_shard_that_was_never_planned_is_not_counted(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS)
    assert ledger.record(audit, STAGE, "alien", "sha256:x") == "unknown"
    assert ledger.progress(audit, STAGE).done == 0


def test_completion_fires_once_however_many_workers_finish_at_the_same_time(ledger: Ledger, audit: str) -> None:
    shards = [PlannedShard(f"s{i}", 1, f"sha256:{i}") for i in range(60)]
    ledger.plan(audit, STAGE, shards)
    outcomes: list[str] = []
    lock = threading.Lock()

    def deliver_all() -> None:
        for shard in shards:
            outcome = ledger.record(audit, STAGE, shard.shard_id, "sha256:r")
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
    assert ledger.is_complete(audit, STAGE)


def test_a_failing_shard_is_tried_again_and_then_given_up_with_its_cause(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS[:1])
    for attempt in range(1, MAX_ATTEMPTS + 1):
        (leased,) = ledger.lease(audit, STAGE, window=1)
        assert leased.attempt == attempt
        outcome = ledger.fail(audit, STAGE, "s0", attempt, cause="connection refused", retryable=True)
        assert outcome == ("complete" if attempt == MAX_ATTEMPTS else "queued")
    assert ledger.dead(audit, STAGE) == {"s0": "connection refused"}
    assert ledger.record(audit, STAGE, "s0", "sha256:late") == "duplicate", "given up and answered must stay disjoint"


def test_a_final_error_is_not_tried_again(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS[:2])
    ledger.lease(audit, STAGE, window=1)
    assert ledger.fail(audit, STAGE, "s0", 1, cause="wrong model", retryable=False) == "dead"


def test_the_failure_of_an_old_attempt_does_not_touch_the_new_one(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS[:1])
    ledger.lease(audit, STAGE, window=1)
    ledger.fail(audit, STAGE, "s0", 1, cause="x", retryable=True)
    ledger.lease(audit, STAGE, window=1)
    assert ledger.fail(audit, STAGE, "s0", 1, cause="late", retryable=True) == "stale"
    assert ledger.progress(audit, STAGE).leased == 10


def test_a_shard_whose_lease_runs_out_is_overdue_by_the_servers_clock(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS)
    ledger.lease(audit, STAGE, window=1, lease=timedelta(milliseconds=30))
    ledger.lease(audit, STAGE, window=2, lease=timedelta(hours=1))
    wait_until(lambda: ledger.overdue(audit, STAGE) == [("s0", 1)], what="the short lease's end")


def test_starting_again_keeps_answers_and_queues_everything_else(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS)
    ledger.lease(audit, STAGE, window=4)
    ledger.record(audit, STAGE, "s1", "sha256:done")
    ledger.fail(audit, STAGE, "s2", 1, cause="down", retryable=False)
    assert ledger.restart(audit, STAGE) == 4
    assert ledger.dead(audit, STAGE) == {}
    assert [shard.shard_id for shard in ledger.lease(audit, STAGE, window=9)] == ["s0", "s2", "s3", "s4"]
    assert all(shard.attempt == 1 for shard in ledger.lease(audit, STAGE, window=9))


def test_an_audits_stages_have_a_plan_and_an_end_of_their_own(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, "paraphrase-1", SHARDS[:1])
    ledger.plan(audit, STAGE, SHARDS[:2])
    assert [shard.shard_id for shard in ledger.lease(audit, "paraphrase-1", window=9)] == ["s0"]
    assert [shard.shard_id for shard in ledger.lease(audit, STAGE, window=1)] == ["s0"], "a window counts one stage"
    assert ledger.record(audit, "paraphrase-1", "s0", "sha256:reworded") == "complete"
    assert ledger.is_complete(audit, "paraphrase-1")
    assert ledger.done(audit, STAGE) == {}
    assert ledger.progress(audit, STAGE).leased == 10
    ledger.record(audit, STAGE, "s0", "sha256:r")
    assert ledger.record(audit, STAGE, "s1", "sha256:r") == "complete"
    assert ledger.stages(audit) == {"paraphrase-1", STAGE}


def test_starting_a_stage_again_leaves_one_that_has_ended_as_it_is(ledger: Ledger, audit: str) -> None:
    for stage in ("paraphrase-1", STAGE):
        ledger.plan(audit, stage, SHARDS[:1])
        ledger.lease(audit, stage, window=1)
        ledger.fail(audit, stage, "s0", 1, cause="down", retryable=False)
    ledger.restart(audit, STAGE)
    assert ledger.dead(audit, STAGE) == {}
    assert ledger.dead(audit, "paraphrase-1") == {"s0": "down"}
    assert ledger.lease(audit, "paraphrase-1", window=9) == []


def test_a_plan_that_was_lost_is_laid_down_again_without_what_is_settled(
    ledger: Ledger, audit: str, valkey_url: str
) -> None:
    ledger.plan(audit, STAGE, SHARDS)
    ledger.lease(audit, STAGE, window=2)
    ledger.record(audit, STAGE, "s0", "sha256:kept")
    ledger.fail(audit, STAGE, "s1", 1, cause="down", retryable=False)
    with redis.Redis.from_url(f"{valkey_url}/1") as client:
        client.delete(*(f"proctor:{{{audit}}}:{STAGE}:{name}" for name in ("plan", "queue")))
    assert not ledger.is_planned(audit, STAGE)
    assert ledger.plan(audit, STAGE, SHARDS)
    assert [shard.shard_id for shard in ledger.lease(audit, STAGE, window=9)] == ["s2", "s3", "s4"]
    assert ledger.done(audit, STAGE) == {"s0": "sha256:kept"}


def test_a_request_counts_as_sent_until_its_answer_is_overdue_or_another_step_sends_one(
    ledger: Ledger, audit: str
) -> None:
    assert not ledger.was_asked(audit, "rewording-0")
    ledger.note_asked(audit, "rewording-0")
    assert ledger.was_asked(audit, "rewording-0")
    assert not ledger.was_asked(audit, "rewording-1")
    ledger.note_asked(audit, "rewording-1", answer_time=timedelta(milliseconds=30))
    assert not ledger.was_asked(audit, "rewording-0")
    wait_until(lambda: not ledger.was_asked(audit, "rewording-1"), what="the end of the time for an answer")


def test_every_key_expires_and_sits_in_the_audits_slot(ledger: Ledger, audit: str, valkey_url: str) -> None:
    ledger.note_asked(audit, "scoring-1")
    for stage in ("paraphrase-1", STAGE):
        ledger.plan(audit, stage, SHARDS)
        ledger.lease(audit, stage, window=3)
        ledger.record(audit, stage, "s0", "sha256:r")
        ledger.fail(audit, stage, "s1", 1, cause="x", retryable=False)
        for shard in ("s2", "s3", "s4"):
            ledger.record(audit, stage, shard, "sha256:r")
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
    ledger.plan(audit, STAGE, shards)
    attempts: dict[str, int] = {}
    completions = 0
    for action, index in steps:
        shard = f"s{index}"
        outcome = ""
        if action == "lease":
            attempts.update({leased.shard_id: leased.attempt for leased in ledger.lease(audit, STAGE, window=2)})
        elif action == "record":
            outcome = ledger.record(audit, STAGE, shard, "sha256:r")
        else:
            outcome = ledger.fail(audit, STAGE, shard, attempts.get(shard, 1), cause="c", retryable=action == "fail")
        completions += outcome == "complete"
        done, dead = set(ledger.done(audit, STAGE)), set(ledger.dead(audit, STAGE))
        assert not done & dead
        assert ledger.is_complete(audit, STAGE) == (len(done | dead) == 4)
        assert completions == int(ledger.is_complete(audit, STAGE))
    ledger.forget(audit)


def test_a_ledger_that_is_not_there_is_one_clear_error() -> None:
    ledger = Ledger("redis://127.0.0.1:1/0")
    with pytest.raises(StoreError, match="did not answer"):
        ledger.plan("a", STAGE, SHARDS)
    with pytest.raises(StoreError, match="did not answer"):
        ledger.is_complete("a", STAGE)
    with pytest.raises(StoreError, match="did not answer"):
        ledger.forget("a")
    ledger.close()
