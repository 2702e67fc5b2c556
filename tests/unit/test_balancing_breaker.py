"""The circuit breaker: when it opens, for how long, and what closes it."""

from __future__ import annotations

import random

import pytest

from proctor.inference.balancing.breaker import Breaker, BreakerLimits, State

LIMITS = BreakerLimits(consecutive=3, window=10, share=0.5, first_s=1.0, longest_s=8.0)


def breaker(seed: int = 0) -> Breaker:
    return Breaker(random.Random(seed), LIMITS)


def fail(one: Breaker, times: int = 1, *, now: float = 0.0) -> list[bool]:
    return [one.failed("connection refused", now, probe=False) for _ in range(times)]


def opened(seed: int = 0) -> Breaker:
    one = breaker(seed)
    fail(one, 3)
    return one


def probe(one: Breaker, now: float) -> None:
    assert one.admits(now)
    assert one.sent()


def wait_of(one: Breaker, now: float) -> float:
    """Seconds from now after which it lets a request through."""
    return next(step / 100 for step in range(10_000) if one.admits(now + step / 100))


def test_failures_in_a_row_open_it_and_the_last_one_says_so() -> None:
    one = breaker()
    assert fail(one, 3) == [False, False, True]
    assert one.state is State.OPEN
    assert one.cause == "connection refused"
    assert not one.admits(0.4)


def test_an_answer_between_failures_keeps_it_closed() -> None:
    one = breaker()
    fail(one, 2)
    one.succeeded(probe=False)
    assert fail(one, 2) == [False, False]
    assert one.admits(0.0)


def test_half_of_the_requests_failing_opens_it_though_never_many_in_a_row() -> None:
    one = breaker()
    for _ in range(4):
        one.succeeded(probe=False)
        assert fail(one) == [False]
    one.succeeded(probe=False)
    assert fail(one) == [True]


def test_a_share_of_few_requests_means_nothing() -> None:
    one = breaker()
    fail(one, 2)
    assert one.state is State.CLOSED


def test_after_the_wait_one_request_is_let_through_and_no_second_one() -> None:
    one = opened()
    probe(one, 1.0)
    assert one.state is State.HALF_OPEN
    assert not one.admits(1.0)


def test_an_answer_to_that_request_closes_it() -> None:
    one = opened()
    probe(one, 1.0)
    one.succeeded(probe=True)
    assert one.state is State.CLOSED
    assert fail(one, 2) == [False, False]


def test_a_failure_of_that_request_opens_it_for_twice_as_long_up_to_a_ceiling() -> None:
    one, now, waits = opened(), 0.0, []
    for _ in range(6):
        wait = wait_of(one, now)
        waits.append(wait)
        now += wait
        probe(one, now)
        one.failed("still away", now, probe=True)
    for wait, longest in zip(waits, (1, 2, 4, 8, 8, 8), strict=True):
        assert longest / 2 <= wait <= longest + 0.02
    assert one.cause == "still away"


def test_after_it_closed_waits_begin_small_again() -> None:
    one = opened()
    for _ in range(3):
        probe(one, 1000.0)
        one.failed("still away", 0.0, probe=True)
    probe(one, 1000.0)
    one.succeeded(probe=True)
    fail(one, 3, now=2000.0)
    assert one.admits(2001.0)


def test_a_request_that_was_given_up_leaves_the_way_to_the_next_one() -> None:
    one = opened()
    probe(one, 1.0)
    one.abandoned(probe=True)
    assert one.admits(1.0)


def test_what_comes_back_from_before_it_opened_changes_nothing() -> None:
    one = opened()
    one.succeeded(probe=False)
    assert fail(one, 5, now=0.9) == [False] * 5
    assert one.state is State.OPEN
    assert one.admits(1.0)


def test_workers_do_not_return_in_the_same_moment() -> None:
    assert len({wait_of(opened(seed), 0.0) for seed in range(8)}) > 4
    assert wait_of(opened(3), 0.0) == wait_of(opened(3), 0.0)


@pytest.mark.parametrize("times", [2000])
def test_a_server_that_is_away_for_days_costs_no_overflow(times: int) -> None:
    one = opened()
    for number in range(times):
        probe(one, number * 100.0 + 100.0)
        one.failed("away", number * 100.0 + 100.0, probe=True)
    assert one.state is State.OPEN
