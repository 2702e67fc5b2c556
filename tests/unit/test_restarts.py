"""When a service that died is started again, and when it is given up."""

from __future__ import annotations

from proctor.localstack.restarts import DELAYS_S, LIMIT, STEADY_S, Restarts


def test_a_single_death_costs_next_to_nothing() -> None:
    assert Restarts().after_death(3600.0) == DELAYS_S[0] < 0.5


def test_a_service_that_dies_again_and_again_is_away_for_longer_and_longer_until_it_is_given_up() -> None:
    restarts = Restarts()
    delays = [restarts.after_death(0.0) for _ in range(LIMIT)]
    assert delays[-1] is None
    waited = [delay for delay in delays if delay is not None]
    assert waited == sorted(waited)
    assert len(waited) == LIMIT - 1


def test_a_minute_of_kills_every_second_is_survived() -> None:
    restarts, now_s = Restarts(), 0.0
    while now_s < 60.0:
        # Killed in the very moment in which it starts: nobody can be killed more often.
        delay_s = restarts.after_death(0.0)
        assert delay_s is not None, f"given up after {now_s:g} s"
        now_s += delay_s


def test_a_service_that_was_ready_for_a_while_begins_anew() -> None:
    restarts = Restarts()
    for _ in range(LIMIT * 2):
        assert restarts.after_death(STEADY_S) == DELAYS_S[0]
    assert restarts.total == LIMIT * 2
