"""Which of several replicas gets the next request. Pure: what they decide on is passed in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from proctor.domain.endpoint import Balance

#: Requests that a replica has at most before its first answer has shown how quick it is.
UNMEASURED_IN_FLIGHT: Final = 8
#: Seconds a request of replicas none of which was measured: any number, because only ratios count.
_ANY_PACE_S: Final = 1.0


class Load(NamedTuple):
    """A replica that may be asked, as it is now."""

    name: str
    in_flight: int
    """Requests that this worker has there."""
    has_room: bool
    """Whether its window lets another request in."""
    weight: float = 1.0
    seconds: float | None = None
    """Seconds a request that it was seen to take at its present load (the inverse of its throughput); None: unknown."""
    queued: int = 0
    """Requests that wait in its own queue, whoever sent them."""


class Strategy(Protocol):
    """Chooses replicas, one request after another."""

    def choose(self, loads: Sequence[Load], waiting: int) -> int | None:
        """Place of the replica that gets the next request.

        Args:
            loads: the replicas that may be asked, at least one.
            waiting: requests that wait for a place, the next one among them; at least 1.

        Returns:
            None where the request had better wait until an answer comes; never while nothing is in flight.
        """
        ...


class RoundRobin:
    """In turns, by name, past those that have no room."""

    def __init__(self) -> None:
        self._last = ""

    def choose(self, loads: Sequence[Load], waiting: int) -> int | None:
        """See `Strategy.choose`."""
        open_to = [place for place, load in enumerate(loads) if load.has_room]
        if not open_to:
            return None
        # By name and not by place: the replicas that may be asked are not always the same ones.
        chosen = min(open_to, key=lambda place: (loads[place].name <= self._last, loads[place].name))
        self._last = loads[chosen].name
        return chosen


class Weighted:
    """By weight, evenly spread: 5, 1, 1 gives a a b a c a a. Those that have no room are passed over.

    Source: I. Sysoev's smooth weighted round robin (nginx, `ngx_http_upstream_round_robin.c`).
    """

    def __init__(self) -> None:
        self._credit: dict[str, float] = {}

    def choose(self, loads: Sequence[Load], waiting: int) -> int | None:
        """See `Strategy.choose`."""
        open_to = [place for place, load in enumerate(loads) if load.has_room]
        if not open_to:
            return None
        # Credits of replicas that are gone, or could not be asked for a while, are forgotten with them.
        credit = {load.name: self._credit.get(load.name, 0.0) for load in loads}
        for place in open_to:
            credit[loads[place].name] += loads[place].weight
        chosen = max(open_to, key=lambda place: credit[loads[place].name])
        credit[loads[chosen].name] -= sum(loads[place].weight for place in open_to)
        self._credit = credit
        return chosen


class Measured:
    """To the replica where the request is expected to be answered first.

    A replica with n requests in flight that takes s seconds a request is expected to have answered one more after
    (n + 1) s. The one where that is soonest gets the request, if it has room. Another one gets it as long as the
    others would take longer than that for all that waits: so every replica works until the last requests, and those
    go where they end soonest. A slow replica is thus neither left idle nor waited for.

    One that was not measured yet counts as quick as the quickest, with few requests in flight.
    """

    def choose(self, loads: Sequence[Load], waiting: int) -> int | None:
        """See `Strategy.choose`."""
        if len(loads) == 1:
            return 0 if loads[0].has_room else None
        guess = min((load.seconds for load in loads if load.seconds is not None), default=_ANY_PACE_S)
        paces = [guess if load.seconds is None else load.seconds for load in loads]
        waits = [(load.in_flight + 1) * pace for load, pace in zip(loads, paces, strict=True)]
        rate = sum(1.0 / pace for pace in paces)
        ahead = waiting + sum(load.in_flight for load in loads)
        for place in sorted(range(len(loads)), key=waits.__getitem__):
            load = loads[place]
            if not load.has_room or (load.seconds is None and load.in_flight >= UNMEASURED_IN_FLIGHT):
                continue
            soonest_elsewhere = min(wait for other, wait in enumerate(waits) if other != place)
            all_elsewhere = (ahead - load.in_flight) / max(rate - 1.0 / paces[place], 1e-12)
            if waits[place] <= max(soonest_elsewhere, all_elsewhere):
                return place
        return None


class LeastLoaded:
    """To the one with the fewest requests before it: those in flight, and those in its own queue."""

    def choose(self, loads: Sequence[Load], waiting: int) -> int | None:
        """See `Strategy.choose`."""
        open_to = [place for place, load in enumerate(loads) if load.has_room]
        return min(open_to, key=lambda place: loads[place].in_flight + loads[place].queued, default=None)


_STRATEGIES: Final[dict[Balance, Callable[[], Strategy]]] = {
    Balance.ROUND_ROBIN: RoundRobin,
    Balance.WEIGHTED: Weighted,
    Balance.MEASURED: Measured,
    Balance.LEAST_LOADED: LeastLoaded,
}


def strategy_of(balance: Balance) -> Strategy:
    """A strategy that has chosen nothing yet."""
    return _STRATEGIES[balance]()
