"""The Horizontal Pod Autoscaler as Kubernetes documents it, for external metrics.

https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/ (algorithm, behaviour, stabilisation window).
Where the page leaves something open, what the controller does was read in Kubernetes' `pkg/controller/podautoscaler`
(`horizontal.go`, `replica_calculator.go`): how far a policy reaches counts from the replicas at its period's begin,
the share that may be taken away is rounded in favour of taking away, and the replicas that there are now are a
recommendation when there is none yet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from autoscaling.rules import Behaviour, Direction, Rules, Select, Trigger

#: `--horizontal-pod-autoscaler-sync-period`.
SYNC_S: Final = 15.0
#: `--horizontal-pod-autoscaler-downscale-stabilization`, and how far one step up may go, where no behaviour is given.
_OLD_WINDOW_S: Final = 300.0
_OLD_FACTOR, _OLD_LEAST = 2, 4


class Reading(NamedTuple):
    """A metric's value at a sync, for a trigger."""

    trigger: Trigger
    value: float


class Moved(NamedTuple):
    """Replicas that were added, or taken away, at a time."""

    at_s: float
    replicas: int


def proposal(reading: Reading, current: int, ready: int, behaviour: Behaviour | None = None) -> int:
    """Replicas that one metric asks for: as many as there are where it is near enough to its target.

    Args:
        current: replicas that the workload has.
        ready: of them, those that are ready; a metric that is not averaged is taken to be theirs.
    """
    trigger, value = reading
    share = trigger.target * current if trigger.averaged else trigger.target
    ratio = value / share if share else math.inf
    up = behaviour.up.tolerance if behaviour else 0.1
    down = behaviour.down.tolerance if behaviour else 0.1
    if 1 - down <= ratio <= 1 + up:
        return current
    # Both as the controller does it: in milli-units, of which a rest too small to be seen asks for no pod.
    wanted = value / trigger.target if trigger.averaged else ratio * ready
    return math.ceil(round(wanted, 9))


def _moved(moves: Sequence[Moved], now_s: float, period_s: float) -> int:
    return sum(move.replicas for move in moves if move.at_s > now_s - period_s)


def limit_up(current: int, now_s: float, ups: Sequence[Moved], downs: Sequence[Moved], up: Direction) -> int:
    """The most replicas that the policies let there be."""
    if up.select is Select.DISABLED:
        return current
    reach = []
    for policy in up.policies:
        began = current - _moved(ups, now_s, policy.period_s) + _moved(downs, now_s, policy.period_s)
        grown = math.ceil(round(began * (1 + policy.value / 100), 9)) if policy.percent else began + policy.value
        reach.append(grown)
    return max(current, min(reach) if up.select is Select.MIN else max(reach))


def limit_down(current: int, now_s: float, ups: Sequence[Moved], downs: Sequence[Moved], down: Direction) -> int:
    """The fewest replicas that the policies let there be."""
    if down.select is Select.DISABLED:
        return current
    reach = []
    for policy in down.policies:
        began = current - _moved(ups, now_s, policy.period_s) + _moved(downs, now_s, policy.period_s)
        left = math.floor(round(began * (1 - policy.value / 100), 9)) if policy.percent else began - policy.value
        reach.append(left)
    return min(current, max(reach) if down.select is Select.MIN else min(reach))


@dataclass
class Hpa:
    """One autoscaler with what it remembers."""

    rules: Rules
    recommended: list[Moved] = field(default_factory=list)
    ups: list[Moved] = field(default_factory=list)
    downs: list[Moved] = field(default_factory=list)

    def sync(self, now_s: float, current: int, ready: int, readings: Sequence[Reading]) -> int:
        """Replicas from now on. At 0 it is switched off: it takes no workload from there that has a minimum above."""
        if not self.recommended:
            self.recommended.append(Moved(now_s, current))
        if current == 0:
            return 0
        least, most = self.rules.least_of_hpa, self.rules.maximum
        if current > most:
            wanted = most
        elif current < least:
            wanted = least
        else:
            asked = max(proposal(reading, current, ready, self.rules.behaviour) for reading in readings)
            wanted = self._bounded(now_s, current, asked, least, most)
        if wanted > current:
            self.ups.append(Moved(now_s, wanted - current))
        elif wanted < current:
            self.downs.append(Moved(now_s, current - wanted))
        self._forget(now_s)
        return wanted

    def _bounded(self, now_s: float, current: int, asked: int, least: int, most: int) -> int:
        behaviour = self.rules.behaviour
        wanted = self._stabilised(now_s, current, asked)
        if behaviour is None:
            # At first every step was bounded so, before there were policies.
            return max(least, min(wanted, most, max(_OLD_FACTOR * current, _OLD_LEAST)))
        if wanted > current:
            return min(wanted, most, limit_up(current, now_s, self.ups, self.downs, behaviour.up))
        if wanted < current:
            return max(wanted, least, limit_down(current, now_s, self.ups, self.downs, behaviour.down))
        return wanted

    def _stabilised(self, now_s: float, current: int, asked: int) -> int:
        behaviour = self.rules.behaviour
        up_s = behaviour.up.window_s if behaviour else 0.0
        down_s = behaviour.down.window_s if behaviour else _OLD_WINDOW_S
        least = min([asked, *(one.replicas for one in self.recommended if one.at_s > now_s - up_s)])
        most = max([asked, *(one.replicas for one in self.recommended if one.at_s > now_s - down_s)])
        self.recommended.append(Moved(now_s, asked))
        if behaviour is None:
            return most
        return min(max(current, least), most)

    def _forget(self, now_s: float) -> None:
        behaviour = self.rules.behaviour
        windows = [_OLD_WINDOW_S] if behaviour is None else [behaviour.up.window_s, behaviour.down.window_s, SYNC_S]
        self.recommended = [one for one in self.recommended if one.at_s > now_s - max(windows)] or self.recommended[-1:]
        if behaviour is not None:
            longest = max(policy.period_s for way in (behaviour.up, behaviour.down) for policy in way.policies)
            self.ups = [move for move in self.ups if move.at_s > now_s - longest]
            self.downs = [move for move in self.downs if move.at_s > now_s - longest]
