"""Which replica gets the next request, and how quick one is seen to be."""

from __future__ import annotations

import heapq
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.domain.endpoint import Balance
from proctor.inference.balancing.pace import Pace
from proctor.inference.balancing.strategies import UNMEASURED_IN_FLIGHT, Load, Measured, Strategy, strategy_of

WINDOW = 64


def idle(name: str, **known: Any) -> Load:
    return Load(name, 0, True, **known)


def chosen(strategy: Strategy, loads: list[Load], times: int) -> str:
    places = [strategy.choose(loads, times - number) for number in range(times)]
    return "".join(loads[place].name if place is not None else "-" for place in places)


class Simulated:
    """Servers that answer so many requests at a time, each in its seconds, and a strategy that spreads over them."""

    def __init__(self, servers: dict[str, tuple[float, int]], balance: Balance, window: int = WINDOW) -> None:
        self.servers = servers
        self.strategy = strategy_of(balance)
        self.window = window
        self.paces = {name: Pace() for name in servers}
        self.in_flight = dict.fromkeys(servers, 0)
        self.free_at = {name: [0.0] * slots for name, (_, slots) in servers.items()}
        self.answered: Counter[str] = Counter()

    def run(self, requests: int, *, ready: int | None = None) -> float:
        """Seconds until all are answered; `ready` of them wait or are in flight at a time."""
        now, left, waiting = 0.0, requests, 0
        ends: list[tuple[float, str]] = []
        while left or waiting or ends:
            if left and (ready is None or waiting + len(ends) < ready):
                new = left if ready is None else min(left, ready - waiting - len(ends))
                waiting, left = waiting + new, left - new
            while waiting:
                place = self.strategy.choose([self.load(name, now) for name in self.servers], waiting)
                if place is None:
                    assert ends, "a strategy may make requests wait only while something is in flight"
                    break
                waiting -= 1
                heapq.heappush(ends, self.send(list(self.servers)[place], now))
            now, name = heapq.heappop(ends)
            self.paces[name].answered(self.in_flight[name], now)
            self.in_flight[name] -= 1
            self.answered[name] += 1
        return now

    def send(self, name: str, now: float) -> tuple[float, str]:
        self.paces[name].sent(self.in_flight[name], now)
        self.in_flight[name] += 1
        starts = max(heapq.heappop(self.free_at[name]), now)
        ends = starts + self.servers[name][0]
        heapq.heappush(self.free_at[name], ends)
        return ends, name

    def load(self, name: str, now: float) -> Load:
        flying = self.in_flight[name]
        return Load(name, flying, flying < self.window, seconds=self.paces[name].seconds(flying, now))

    @property
    def rate(self) -> float:
        """Requests per second that they could answer together."""
        return sum(min(slots, self.window) / seconds for seconds, slots in self.servers.values())


def test_round_robin_takes_turns() -> None:
    assert chosen(strategy_of(Balance.ROUND_ROBIN), [idle("a"), idle("b"), idle("c")], 7) == "abcabca"


def test_round_robin_passes_over_the_full_and_goes_on_in_turn_when_replicas_come_and_go() -> None:
    strategy = strategy_of(Balance.ROUND_ROBIN)
    assert chosen(strategy, [idle("a"), Load("b", 64, False), idle("c")], 3) == "aca"
    assert chosen(strategy, [idle("b"), idle("c")], 2) == "bc"
    assert chosen(strategy, [idle("a"), idle("aa")], 1) == "a"


def test_weights_are_kept_and_the_turns_are_spread_as_nginx_spreads_them() -> None:
    loads = [idle("a", weight=5.0), idle("b"), idle("c")]
    assert chosen(strategy_of(Balance.WEIGHTED), loads, 7) == "aabacaa"


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_after_a_whole_round_every_replica_has_had_its_weight(weights: list[int]) -> None:
    loads = [idle(chr(ord("a") + place), weight=float(weight)) for place, weight in enumerate(weights)]
    counts = Counter(chosen(strategy_of(Balance.WEIGHTED), loads, sum(weights)))
    assert [counts[load.name] for load in loads] == weights


def test_the_least_loaded_is_the_one_with_the_fewest_in_flight_and_queued() -> None:
    strategy = strategy_of(Balance.LEAST_LOADED)
    loads = [Load("a", 3, True, queued=5), Load("b", 6, True), Load("c", 1, False)]
    assert chosen(strategy, loads, 1) == "b"


@pytest.mark.parametrize("balance", Balance)
def test_nobody_is_chosen_where_nobody_has_room(balance: Balance) -> None:
    assert strategy_of(balance).choose([Load("a", 64, False), Load("b", 64, False)], 1) is None
    assert strategy_of(balance).choose([Load("a", 64, False)], 1) is None


def test_the_quicker_one_is_chosen_until_its_line_is_longer() -> None:
    quick, slow = Load("quick", 2, True, seconds=1.0), Load("slow", 0, True, seconds=4.0)
    assert Measured().choose([slow, quick], 1) == 1
    assert Measured().choose([slow, quick._replace(in_flight=4)], 1) == 0


def test_the_last_request_waits_for_the_quick_one_rather_than_go_to_a_slow_one_that_is_free() -> None:
    quick, slow = Load("quick", 64, False, seconds=0.01), Load("slow", 0, True, seconds=1.0)
    assert Measured().choose([quick, slow], 1) is None
    # Of many that wait, the slow one does its share.
    assert Measured().choose([quick, slow], 1000) == 1


def test_an_unknown_replica_is_tried_early_and_with_few_requests() -> None:
    known, unknown = Load("known", 3, True, seconds=1.0), Load("unknown", 0, True)
    assert Measured().choose([known, unknown], 10) == 1
    assert Measured().choose([known, unknown._replace(in_flight=UNMEASURED_IN_FLIGHT)], 10) == 0


SERVERS = {
    "1 and 4, one after another": {"slow": (0.4, 1), "quick": (0.1, 1)},
    "1 and 16": {"slow": (1.6, 1), "quick": (0.1, 1)},
    "as quick, of 1 and 4 at a time": {"narrow": (1.0, 1), "wide": (1.0, 4)},
    "many at a time": {"a": (2.0, 32), "b": (3.0, 32)},
    "three alike": {"a": (0.1, 2), "b": (0.1, 2), "c": (0.1, 2)},
}


@pytest.mark.parametrize("servers", SERVERS.values(), ids=SERVERS)
@pytest.mark.parametrize("ready", [None, 256])
def test_measured_uses_nine_tenths_of_what_all_can_do(servers: dict[str, tuple[float, int]], ready: int | None) -> None:
    simulated = Simulated(servers, Balance.MEASURED)
    requests = 4000
    assert requests / simulated.run(requests, ready=ready) >= 0.9 * simulated.rate


@given(st.lists(st.tuples(st.floats(0.01, 10.0), st.integers(1, 70)), min_size=1, max_size=4), st.integers(1, 300))
def test_measured_always_gets_everything_answered(servers: list[tuple[float, int]], requests: int) -> None:
    simulated = Simulated({str(number): server for number, server in enumerate(servers)}, Balance.MEASURED)
    simulated.run(requests)
    assert simulated.answered.total() == requests


def test_a_single_shard_takes_twice_as_long_in_turns_where_one_is_four_times_as_quick() -> None:
    servers = SERVERS["1 and 4, one after another"]
    in_turns, measured = (Simulated(servers, balance).run(128) for balance in (Balance.ROUND_ROBIN, Balance.MEASURED))
    assert measured < 1.1 * 128 / Simulated(servers, Balance.MEASURED).rate
    assert in_turns > 2 * measured


@pytest.mark.parametrize(("slots", "in_flight"), [(1, 1), (1, 8), (8, 8), (4, 16)])
def test_the_pace_is_the_inverse_of_the_throughput(slots: int, in_flight: int) -> None:
    simulated = Simulated({"one": (2.0, slots)}, Balance.ROUND_ROBIN, window=in_flight)
    seconds = simulated.run(800)
    assert simulated.paces["one"].seconds(1, seconds) == pytest.approx(seconds / 800, rel=0.25)


def test_the_pace_of_an_idle_replica_is_forgotten_after_a_while() -> None:
    pace = Pace()
    assert pace.seconds(0, 5.0) is None
    pace.sent(0, 10.0)
    pace.answered(1, 11.0)
    assert pace.seconds(0, 20.0) == pytest.approx(1.0)
    assert pace.seconds(0, 42.0) is None
    assert pace.seconds(1, 42.0) == pytest.approx(1.0)


def test_time_without_a_request_does_not_count() -> None:
    pace = Pace()
    for start in (0.0, 100.0, 200.0):
        pace.sent(0, start)
        pace.answered(1, start + 1.0)
    assert pace.seconds(0, 201.0) == pytest.approx(1.0)
