"""The pace of an audit that is watched, on a clock that the test sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.gateway.pace import Look, PaceMeter, pace
from proctor.gateway.status import AuditStatus, Trials, failures_by_cause
from proctor.gateway.watching import watch
from proctor.runtime.records.audit_state import AuditState


def status(done: int, *, planned: int = 1_000, dead: int = 0, stage: str | None = "answer", **more: Any) -> AuditStatus:
    trials = None if stage is None else Trials(planned=planned, done=done, under_way=0, dead=dead)
    values = {"audit_id": "a-1", "suite": "s", "model_id": "m", "state": AuditState.ANSWERING, **more}
    return AuditStatus.model_validate({**values, "stage": stage, "trials": trials})


def test_nothing_is_said_of_less_than_a_second() -> None:
    assert pace([], left=5) == (None, None)
    assert pace([Look(0.0, 0), Look(0.9, 64)], left=5) == (None, None)


def test_the_rate_is_that_of_the_looks_and_the_time_left_follows_from_it() -> None:
    assert pace([Look(10.0, 100), Look(12.0, 150), Look(14.0, 300)], left=400) == (50.0, 8.0)


def test_a_stage_that_stands_still_has_no_time_left_that_could_be_said() -> None:
    assert pace([Look(0.0, 7), Look(9.0, 7)], left=5) == (0.0, None)
    assert pace([Look(0.0, 7), Look(9.0, 7)], left=0) == (0.0, 0.0)


def test_only_the_window_counts_and_looks_further_apart_than_it_still_give_a_rate() -> None:
    meter = PaceMeter(window_s=10.0)
    assert [meter.measured(status(done), at).rate for at, done in [(0.0, 0), (10.0, 900), (20.0, 910)]] == [
        None,
        90.0,
        1.0,
    ]
    slow = PaceMeter(window_s=10.0)
    assert [slow.measured(status(done), at).rate for at, done in [(0.0, 0), (60.0, 120), (120.0, 180)]] == [
        None,
        2.0,
        1.0,
    ]


def test_another_stage_and_a_stage_that_was_restarted_begin_afresh() -> None:
    meter = PaceMeter()
    meter.measured(status(0, stage="paraphrase-1"), 0.0)
    assert meter.measured(status(50, stage="answer"), 5.0).rate is None
    assert meter.measured(status(60, stage="answer"), 7.0).rate == 5.0
    assert meter.measured(status(10, stage="answer"), 8.0).rate is None


@pytest.mark.parametrize("still", [{"paused": True}, {"state": AuditState.FAILED}, {"stage": None}])
def test_what_does_not_run_has_no_pace_and_its_rest_is_not_counted_afterwards(still: dict[str, Any]) -> None:
    meter = PaceMeter()
    meter.measured(status(0), 0.0)
    assert meter.measured(status(64, **still), 5.0).rate is None
    assert meter.measured(status(64), 100.0).rate is None
    assert meter.measured(status(74), 102.0).rate == 5.0


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 500)), min_size=2, max_size=20))
def test_a_pace_is_never_negative_nor_undefined(steps: list[tuple[float, int]]) -> None:
    meter, now, done = PaceMeter(), 0.0, 0
    for wait, more in steps:
        now, done = now + wait, done + more
        seen = meter.measured(status(done, planned=20_000), now)
        assert seen.rate is None or 0 <= seen.rate < float("inf")
        assert seen.eta_s is None or 0 <= seen.eta_s < float("inf")


def test_a_watch_looks_until_every_audit_has_ended_and_less_often_the_longer_it_takes() -> None:
    ends = iter([40, 90])
    end = {"a-1": next(ends), "b-1": next(ends)}
    looks, now, waits = 0, 0.0, []

    def look() -> Sequence[AuditStatus]:
        nonlocal looks
        looks += 1
        return [
            status(looks, audit_id=name, state=AuditState.FAILED if looks >= last else AuditState.ANSWERING)
            for name, last in end.items()
        ]

    def sleep(seconds: float) -> None:
        nonlocal now
        waits.append(seconds)
        now += seconds

    seen: Iterator[tuple[AuditStatus, ...]] = watch(look, clock=lambda: now, sleep=sleep)
    *_, last = seen
    assert [one.state for one in last] == [AuditState.FAILED] * 2
    assert looks == 90
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0.1, 0.5)


def test_a_watch_ends_with_what_its_check_raises() -> None:
    def check() -> None:
        raise RuntimeError("a service has died")

    with pytest.raises(RuntimeError, match="has died"):
        list(watch(lambda: [status(0)], check=check, sleep=lambda seconds: None))


def test_causes_are_ranked_and_beyond_ten_counted_together() -> None:
    dead = {f"s{n}": "timeout" for n in range(5)} | {f"t{n}": f"cause {n:02}" for n in range(15)}
    told = failures_by_cause(dead)
    assert [(one.cause, one.shards) for one in told[:2]] == [("timeout", 5), ("cause 00", 1)]
    assert (told[-1].cause, told[-1].shards) == ("other causes", 6)
    assert sum(one.shards for one in told) == len(dead)
