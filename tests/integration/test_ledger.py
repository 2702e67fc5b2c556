"""The ledger's promises, against a real Valkey."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta

import pytest
import redis

from proctor.domain.errors import StoreError
from proctor.router.ledger.scripts import AUDIT_KEYS, STAGE_KEYS
from proctor.router.ledger.store import (
    MAX_FAILURES,
    MAX_LOSSES,
    SPLIT_AFTER_LOSSES,
    Answer,
    LeasedShard,
    Ledger,
    Parts,
    PlannedShard,
    Setback,
    Spent,
)
from tests.support import wait_until

STAGE = "answer"
SHARDS = [PlannedShard(f"s{i}", 10 + i, f"sha256:{i}", i) for i in range(5)]


@pytest.fixture
def ledger(valkey_url: str) -> Iterator[Ledger]:
    ledger = Ledger(f"{valkey_url}/1")
    yield ledger
    ledger.close()


@pytest.fixture
def audit() -> str:
    return uuid.uuid4().hex


def lease_next(ledger: Ledger, audit: str, n: int = 1, stage: str = STAGE) -> list[LeasedShard]:
    return ledger.lease(audit, stage, ledger.next_up(audit, stage, n))


def test_shards_are_leased_in_order_of_position_and_only_while_they_are_queued(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS[::-1])
    assert ledger.queued(audit, STAGE) == 5
    assert ledger.next_up(audit, STAGE, 2) == ["s0", "s1"]
    assert ledger.next_up(audit, STAGE, 2) == ["s0", "s1"], "looking changes nothing"
    assert ledger.lease(audit, STAGE, ["s0", "s1"]) == [
        LeasedShard("s0", 1, "sha256:0", 10, 0, failures=0, losses=0),
        LeasedShard("s1", 1, "sha256:1", 11, 1, failures=0, losses=0),
    ]
    assert [shard.shard_id for shard in ledger.lease(audit, STAGE, ["s1", "s2", "alien"])] == ["s2"]
    assert sorted(ledger.leases(audit, STAGE)) == ["s0", "s1", "s2"]
    assert ledger.next_up(audit, STAGE, 9) == ["s3", "s4"]


def test_the_first_plan_of_a_part_stands_whatever_shards_a_second_one_has(ledger: Ledger, audit: str) -> None:
    assert ledger.plan(audit, STAGE, SHARDS[:2], part=0, parts=2)
    assert not ledger.plan(audit, STAGE, SHARDS[2:], part=0, parts=2)
    assert ledger.entries(audit, STAGE) == SHARDS[:2]
    assert ledger.parts(audit, STAGE) == Parts(1, 2)


def test_another_number_of_parts_is_refused_and_so_is_a_part_before_an_earlier_one(ledger: Ledger, audit: str) -> None:
    with pytest.raises(StoreError, match="part 1 was planned before an earlier one"):
        ledger.plan(audit, STAGE, SHARDS, part=1, parts=3)
    assert ledger.parts(audit, STAGE) == Parts(0, None)
    ledger.plan(audit, STAGE, SHARDS[:1], part=0, parts=3)
    with pytest.raises(StoreError, match="another number of parts"):
        ledger.plan(audit, STAGE, SHARDS[1:], part=1, parts=4)
    with pytest.raises(StoreError, match="part 2 was planned before an earlier one"):
        ledger.plan(audit, STAGE, SHARDS[1:], part=2, parts=3)


def test_a_stage_is_complete_only_when_its_last_part_is(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS[:1], part=0, parts=3, total_trials=21)
    assert ledger.record(audit, STAGE, "s0", "sha256:r") == "recorded"
    assert not ledger.is_complete(audit, STAGE)
    ledger.plan(audit, STAGE, [], part=1, parts=3)
    assert not ledger.is_complete(audit, STAGE)
    ledger.plan(audit, STAGE, SHARDS[1:2], part=2, parts=3)
    assert ledger.progress(audit, STAGE).planned == 21
    assert ledger.record(audit, STAGE, "s1", "sha256:r") == "complete"
    assert ledger.is_complete(audit, STAGE)


def test_a_stage_whose_parts_are_all_empty_is_complete(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, [], part=0, parts=2)
    assert not ledger.is_complete(audit, STAGE)
    ledger.plan(audit, STAGE, [], part=1, parts=2)
    assert ledger.is_complete(audit, STAGE)
    assert ledger.parts(audit, STAGE).laid > 0


def test_two_routers_that_lay_down_a_part_at_the_same_time_lay_down_one(ledger: Ledger, audit: str) -> None:
    laid: list[int] = []
    barrier = threading.Barrier(2)

    def lay_down(router: int) -> None:
        for part in range(20):
            barrier.wait()
            shards = [PlannedShard(f"{router}-{part}-{n}", 1, "sha256:x", part * 100 + n) for n in range(router + 1)]
            if ledger.plan(audit, STAGE, shards, part=part, parts=20):
                laid.append(router + 1)

    threads = [threading.Thread(target=lay_down, args=(router,)) for router in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(laid) == 20
    assert len(ledger.entries(audit, STAGE)) == ledger.queued(audit, STAGE) == sum(laid)


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
    shards = [PlannedShard(f"s{i}", 1, f"sha256:{i}", i) for i in range(60)]
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


def test_what_several_answers_cost_is_counted_once_by_stage(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS)
    ledger.plan(audit, "paraphrase-1", SHARDS[:1])
    assert ledger.spent(audit) == Spent()
    answers = [("s0", "sha256:r", 100, 7), ("s1", "sha256:r", 200, 8), ("s0", "sha256:r", 100, 7), ("x", "r", 1, 1)]
    assert ledger.record_all(audit, STAGE, answers) == ["recorded", "recorded", "duplicate", "unknown"]
    assert ledger.record_all(audit, STAGE, answers[:2]) == ["duplicate", "duplicate"]
    ledger.record(audit, "paraphrase-1", "s0", "sha256:r", input_tokens=5, output_tokens=3)
    assert ledger.spent_by_stage(audit) == {STAGE: Spent(21, 300, 15), "paraphrase-1": Spent(10, 5, 3)}
    assert ledger.spent(audit) == Spent(31, 305, 18)


def test_answers_that_end_a_stage_together_complete_it_once(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS[:3])
    answers = [(f"s{i}", "sha256:r", 0, 0) for i in (0, 1, 2, 1)]
    assert ledger.record_all(audit, STAGE, answers) == ["recorded", "recorded", "complete", "duplicate"]
    assert ledger.record_all(audit, STAGE, []) == []


def test_a_failing_shard_is_tried_again_and_then_given_up_with_its_cause(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS[:1])
    for attempt in range(1, MAX_FAILURES + 1):
        (leased,) = lease_next(ledger, audit)
        assert (leased.attempt, leased.failures) == (attempt, attempt - 1)
        outcome = ledger.fail(audit, STAGE, "s0", attempt, setback=Setback.FAILED, cause="connection refused")
        assert outcome == ("complete" if attempt == MAX_FAILURES else "queued")
    assert ledger.dead(audit, STAGE) == {"s0": "connection refused"}
    assert ledger.record(audit, STAGE, "s0", "sha256:late") == "duplicate", "given up and answered must stay disjoint"


def test_a_final_error_is_not_tried_again(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS[:2])
    lease_next(ledger, audit)
    assert ledger.fail(audit, STAGE, "s0", 1, setback=Setback.FINAL, cause="wrong model") == "dead"


@pytest.mark.parametrize(("n_trials", "last"), [(1, "complete"), (2, "queued")])
def test_a_shard_that_gets_lost_is_given_up_only_when_it_is_a_single_trial(
    ledger: Ledger, audit: str, n_trials: int, last: str
) -> None:
    ledger.plan(audit, STAGE, [PlannedShard("s0", n_trials, "sha256:0")])
    for attempt in range(1, MAX_LOSSES + 1):
        (leased,) = lease_next(ledger, audit)
        assert (leased.losses, leased.failures) == (attempt - 1, 0)
        outcome = ledger.fail(audit, STAGE, "s0", attempt, setback=Setback.LOST, cause="its worker died")
        assert outcome == (last if attempt == MAX_LOSSES else "queued")


def test_what_is_handed_back_is_never_counted(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS[:2])
    for attempt in range(1, 2 * MAX_LOSSES):
        (leased,) = ledger.lease(audit, STAGE, ["s0"])
        assert (leased.attempt, leased.failures, leased.losses) == (attempt, 0, 0)
        if attempt % 2:
            outcome = ledger.fail(audit, STAGE, "s0", attempt, setback=Setback.HANDED_BACK, cause="shutting down")
            assert outcome == "queued"
        else:
            assert ledger.hand_back(audit, STAGE, [("s0", attempt - 1), ("s1", 1)]) == 0
            assert ledger.hand_back(audit, STAGE, [("s0", attempt)]) == 1
    assert ledger.next_up(audit, STAGE, 2) == ["s0", "s1"], "it keeps its place in the queue"


def test_a_shard_is_split_in_place_and_its_trials_are_counted_once(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, [PlannedShard("whole", 4, "sha256:w", 10), PlannedShard("next", 1, "sha256:n", 20)])
    (whole,) = lease_next(ledger, audit)
    children = [PlannedShard("left", 2, "sha256:l", 10), PlannedShard("right", 2, "sha256:r", 12)]
    assert not ledger.split(audit, STAGE, "whole", whole.attempt + 1, children)
    assert ledger.split(audit, STAGE, "whole", whole.attempt, children)
    assert not ledger.split(audit, STAGE, "whole", whole.attempt, children)
    assert ledger.record(audit, STAGE, "whole", "sha256:late") == "unknown"
    assert ledger.fail(audit, STAGE, "whole", 1, setback=Setback.FAILED, cause="late") == "stale"
    assert [shard.shard_id for shard in ledger.entries(audit, STAGE)] == ["left", "right", "next"]
    assert ledger.progress(audit, STAGE).planned == 5
    first, second, _ = lease_next(ledger, audit, 3)
    assert first == LeasedShard("left", 1, "sha256:l", 2, 10, failures=0, losses=SPLIT_AFTER_LOSSES - 1)
    ledger.fail(audit, STAGE, "left", 1, setback=Setback.LOST, cause="its worker died")
    assert lease_next(ledger, audit)[0].losses == SPLIT_AFTER_LOSSES, "one more loss splits it again"
    answers = [(shard, "sha256:x", 0, 0) for shard in ("left", second.shard_id, "next")]
    assert ledger.record_all(audit, STAGE, answers)[-1] == "complete"
    assert ledger.spent(audit).trials == 5


def test_a_shard_that_was_answered_meanwhile_is_not_split(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS[:2])
    lease_next(ledger, audit)
    ledger.record(audit, STAGE, "s0", "sha256:r")
    assert not ledger.split(audit, STAGE, "s0", 1, [PlannedShard("child", 10, "sha256:c")])
    assert ledger.entries(audit, STAGE) == SHARDS[:2]


def test_the_failure_of_an_old_attempt_does_not_touch_the_new_one(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS[:1])
    lease_next(ledger, audit)
    ledger.fail(audit, STAGE, "s0", 1, setback=Setback.FAILED, cause="x")
    lease_next(ledger, audit)
    assert ledger.fail(audit, STAGE, "s0", 1, setback=Setback.FAILED, cause="late") == "stale"
    assert ledger.progress(audit, STAGE).leased == 10


def test_a_shard_whose_lease_runs_out_is_overdue_by_the_servers_clock(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS)
    ledger.lease(audit, STAGE, ["s0"], lease=timedelta(milliseconds=30))
    ledger.lease(audit, STAGE, ["s1"], lease=timedelta(hours=1))
    wait_until(lambda: ledger.overdue(audit, STAGE) == [("s0", 1)], what="the short lease's end")


def test_starting_again_keeps_answers_and_queues_everything_else(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS)
    lease_next(ledger, audit, 4)
    ledger.record(audit, STAGE, "s1", "sha256:done")
    ledger.fail(audit, STAGE, "s2", 1, setback=Setback.FINAL, cause="down")
    ledger.fail(audit, STAGE, "s3", 1, setback=Setback.FAILED, cause="down")
    assert ledger.restart(audit, STAGE) == 4
    assert ledger.dead(audit, STAGE) == {}
    assert ledger.leases(audit, STAGE) == []
    leased = lease_next(ledger, audit, 9)
    assert [(shard.shard_id, shard.attempt) for shard in leased] == [("s0", 2), ("s2", 2), ("s3", 2), ("s4", 1)]
    assert all(shard.failures == shard.losses == 0 for shard in leased)
    assert ledger.fail(audit, STAGE, "s0", 1, setback=Setback.FINAL, cause="of before") == "stale"


def test_a_stage_that_ended_with_losses_ends_once_more_when_it_was_started_again(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS[:2])
    lease_next(ledger, audit)
    ledger.record(audit, STAGE, "s1", "sha256:r")
    assert ledger.fail(audit, STAGE, "s0", 1, setback=Setback.FINAL, cause="down") == "complete"
    assert ledger.restart(audit, STAGE) == 1
    assert not ledger.is_complete(audit, STAGE)
    assert ledger.record(audit, STAGE, "s0", "sha256:r") == "complete"


def test_an_audits_stages_have_a_plan_and_an_end_of_their_own(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, "paraphrase-1", SHARDS[:1])
    ledger.plan(audit, STAGE, SHARDS[:2])
    lease_next(ledger, audit, stage="paraphrase-1")
    lease_next(ledger, audit)
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
        lease_next(ledger, audit, stage=stage)
        ledger.fail(audit, stage, "s0", 1, setback=Setback.FINAL, cause="down")
    ledger.restart(audit, STAGE)
    assert ledger.dead(audit, STAGE) == {}
    assert ledger.dead(audit, "paraphrase-1") == {"s0": "down"}
    assert ledger.queued(audit, "paraphrase-1") == 0


def test_refused_trials_are_kept_beside_the_answers_and_asked_again_only_where_that_is_wanted(
    ledger: Ledger, audit: str
) -> None:
    ledger.plan(audit, STAGE, SHARDS[:3])
    n_trials = {shard.shard_id: shard.n_trials for shard in SHARDS}
    ledger.record_all(audit, STAGE, [Answer("s0", "sha256:a", 5, 1, n_refused=2), Answer("s1", "sha256:b", 5, 1)])
    assert ledger.record_all(audit, STAGE, [Answer("s0", "sha256:later", 5, 1)]) == ["duplicate"]
    ledger.record_all(audit, STAGE, [Answer("s2", "sha256:c", 5, 1, n_refused=10**6)])
    assert ledger.settled(audit, STAGE).refused == {"s0": 2, "s2": n_trials["s2"]}
    assert ledger.restart(audit, STAGE) == 0
    assert ledger.settled(audit, STAGE).refused == {"s0": 2, "s2": n_trials["s2"]}
    assert ledger.restart(audit, STAGE, ask_refused=True) == 2
    assert ledger.done(audit, STAGE) == {"s1": "sha256:b"}
    assert ledger.spent(audit) == Spent(n_trials["s1"], 15, 3), "its trials are to come, its tokens are used"
    answers = [Answer("s0", "sha256:d", 5, 1), Answer("s2", "sha256:e", 5, 1)]
    assert ledger.record_all(audit, STAGE, answers) == ["recorded", "complete"], "a stage that goes on ends once more"
    assert ledger.settled(audit, STAGE).refused == {}
    assert ledger.spent(audit).trials == sum(n_trials[name] for name in ("s0", "s1", "s2"))


@pytest.mark.parametrize("lost", [("plan", "queue"), ("parts",), ("plan",)])
def test_a_plan_that_was_lost_is_laid_down_again_without_what_is_settled(
    ledger: Ledger, audit: str, valkey_url: str, lost: tuple[str, ...]
) -> None:
    ledger.plan(audit, STAGE, SHARDS, part=0, parts=2)
    ledger.plan(audit, STAGE, [PlannedShard("gone", 1, "sha256:g", 9)], part=1, parts=2)
    lease_next(ledger, audit, 2)
    ledger.record_all(audit, STAGE, [("s0", "sha256:kept", 0, 0), ("gone", "sha256:of a plan that was lost", 0, 0)])
    ledger.fail(audit, STAGE, "s1", 1, setback=Setback.FINAL, cause="down")
    with redis.Redis.from_url(f"{valkey_url}/1") as client:
        client.delete(*(f"proctor:{{{audit}}}:{STAGE}:{name}" for name in lost))
    assert ledger.parts(audit, STAGE) == Parts(0, None)
    assert ledger.parts(audit, STAGE).laid == 0
    assert ledger.plan(audit, STAGE, SHARDS)
    assert ledger.progress(audit, STAGE).planned == sum(shard.n_trials for shard in SHARDS)
    assert [shard.shard_id for shard in lease_next(ledger, audit, 9)] == ["s2", "s3", "s4"]
    assert ledger.record_all(audit, STAGE, [("s2", "r", 0, 0), ("s3", "r", 0, 0)]) == ["recorded", "recorded"]
    assert not ledger.is_complete(audit, STAGE), "what is done of another plan does not count"
    assert ledger.record(audit, STAGE, "s4", "r") == "complete"


def test_a_queue_that_was_lost_does_not_end_its_stage(ledger: Ledger, audit: str, valkey_url: str) -> None:
    ledger.plan(audit, STAGE, SHARDS)
    with redis.Redis.from_url(f"{valkey_url}/1") as client:
        client.delete(f"proctor:{{{audit}}}:{STAGE}:queue")
    assert not ledger.is_complete(audit, STAGE)
    assert ledger.record(audit, STAGE, "s0", "sha256:r") == "recorded"
    assert ledger.restart(audit, STAGE) == 4


def test_grades_are_noted_beside_the_completions_that_were_graded(ledger: Ledger, audit: str) -> None:
    ledger.note_graded(audit, STAGE, {})
    assert ledger.graded(audit, STAGE) == {}
    ledger.note_graded(audit, STAGE, {"sha256:0": ("sha256:c0", "sha256:g0"), "sha256:1": ("sha256:c1", "sha256:g1")})
    ledger.note_graded(audit, STAGE, {"sha256:1": ("sha256:c1", "sha256:g1")})
    assert ledger.graded(audit, STAGE) == {
        "sha256:0": ("sha256:c0", "sha256:g0"),
        "sha256:1": ("sha256:c1", "sha256:g1"),
    }


def test_entries_are_found_by_id_and_a_missing_one_is_named(ledger: Ledger, audit: str) -> None:
    ledger.plan(audit, STAGE, SHARDS)
    assert ledger.entry(audit, STAGE, "s3") == SHARDS[3]
    assert ledger.entries_of(audit, STAGE, ["s1", "alien"]) == {"s1": SHARDS[1]}
    assert ledger.entries_of(audit, STAGE, []) == {}
    with pytest.raises(StoreError, match="has no shard alien"):
        ledger.entry(audit, STAGE, "alien")


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


def live_through(ledger: Ledger, audit: str) -> None:
    """Everything that writes a key of an audit."""
    ledger.note_asked(audit, "scoring-1")
    for stage in ("paraphrase-1", STAGE):
        ledger.plan(audit, stage, SHARDS[:4], part=0, parts=2, total_trials=60)
        ledger.plan(audit, stage, SHARDS[4:], part=1, parts=2)
        lease_next(ledger, audit, 3, stage)
        ledger.record_all(audit, stage, [Answer("s0", "sha256:r", 1, n_refused=1)])
        ledger.fail(audit, stage, "s1", 1, setback=Setback.FINAL, cause="x")
        ledger.fail(audit, stage, "s2", 1, setback=Setback.FAILED, cause="x")
        ledger.lease(audit, stage, ["s2", "s3"])
        ledger.fail(audit, stage, "s3", 1, setback=Setback.LOST, cause="x")
        ledger.split(audit, stage, "s2", 2, [PlannedShard("child", 12, "sha256:c", 2)])
        ledger.lease(audit, stage, ["child", "s4"])
        ledger.hand_back(audit, stage, [("child", 1)])
        ledger.fail(audit, stage, "s4", 1, setback=Setback.FAILED, cause="x")
        ledger.lease(audit, stage, ["s3"])
        ledger.note_graded(audit, stage, {"sha256:0": ("sha256:r", "sha256:g")})


def test_every_key_expires_and_sits_in_the_audits_slot(ledger: Ledger, audit: str, valkey_url: str) -> None:
    live_through(ledger, audit)
    with redis.Redis.from_url(f"{valkey_url}/1", decode_responses=True) as client:
        keys = {key.rpartition(":")[2] for key in client.scan_iter(f"*{audit}*")}
        assert keys == {*AUDIT_KEYS, *STAGE_KEYS} - {"fired"}
        assert all(f"{{{audit}}}" in key for key in client.scan_iter(f"*{audit}*"))
        assert all(client.ttl(key) > 0 for key in client.scan_iter(f"*{audit}*"))
        for stage in ("paraphrase-1", STAGE):
            ledger.restart(audit, stage)
            ledger.record_all(audit, stage, [(f"s{i}", "r", 0, 0) for i in (1, 3, 4)])
            assert ledger.record(audit, stage, "child", "r") == "complete"
        assert client.exists(f"proctor:{{{audit}}}:{STAGE}:fired")
        assert all(client.ttl(key) > 0 for key in client.scan_iter(f"*{audit}*"))
        ledger.forget(audit)
        assert not list(client.scan_iter(f"*{audit}*"))


def test_the_keys_of_an_audit_that_has_ended_live_no_longer_than_they_are_told(
    ledger: Ledger, audit: str, valkey_url: str
) -> None:
    live_through(ledger, audit)
    with redis.Redis.from_url(f"{valkey_url}/1") as client:
        ledger.expire(audit, timedelta(hours=1))
        assert {client.ttl(key) > 3600 for key in client.scan_iter(f"*{audit}*")} == {False}
        ledger.expire(audit, timedelta(hours=9))
        assert {client.ttl(key) > 3600 for key in client.scan_iter(f"*{audit}*")} == {False}, "never lengthened"


def test_a_ledger_that_is_not_there_is_one_clear_error() -> None:
    ledger = Ledger("redis://127.0.0.1:1/0")
    with pytest.raises(StoreError, match="did not answer"):
        ledger.plan("a", STAGE, SHARDS)
    with pytest.raises(StoreError, match="did not answer"):
        ledger.is_complete("a", STAGE)
    with pytest.raises(StoreError, match="did not answer"):
        ledger.forget("a")
    ledger.close()
