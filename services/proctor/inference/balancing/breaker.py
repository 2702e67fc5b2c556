"""A circuit breaker: a server that fails is left alone for a while. Pure: the time is passed in.

Source: M. Nygard, "Release It!" (2007), section 5.2; waits as M. Brooker, "Exponential Backoff And Jitter" (2015).
"""

from __future__ import annotations

import random
from collections import deque
from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """What a breaker lets through."""

    CLOSED = "closed"
    """Everything."""
    OPEN = "open"
    """Nothing."""
    HALF_OPEN = "half_open"
    """One request, which shows whether the server is back."""


class BreakerLimits(NamedTuple):
    """When a breaker opens, and for how long."""

    consecutive: int = 5
    """Failures one after another that open it."""
    window: int = 40
    """Requests over which the share of failures is looked at; fewer than that open it only by `consecutive`."""
    share: float = 0.5
    first_s: float = 1.0
    """The first wait; each that follows without an answer is twice as long."""
    longest_s: float = 30.0


class Breaker:
    """The breaker of one server. Only failures of the server count: that it refuses a prompt is an answer."""

    def __init__(self, rng: random.Random, limits: BreakerLimits | None = None) -> None:
        """
        Args:
            rng: draws the jitter, so that workers do not return to a server in the same moment.
            limits: when it opens; the default where None.
        """
        self._rng = rng
        self._limits = limits or BreakerLimits()
        self._state = State.CLOSED
        self._recent: deque[bool] = deque(maxlen=self._limits.window)
        self._in_a_row = 0
        self._openings = 0
        self._until = 0.0
        self._probing = False
        self.cause = ""

    @property
    def state(self) -> State:
        """Its state; one whose wait is over stays open until a request is let through."""
        return self._state

    def admits(self, now: float) -> bool:
        """Whether a request may be sent."""
        if self._state is State.CLOSED:
            return True
        return now >= self._until and not self._probing

    def sent(self) -> bool:
        """A request that was admitted is sent. True: it is the one that shows whether the server is back."""
        if self._state is State.CLOSED:
            return False
        self._state = State.HALF_OPEN
        self._probing = True
        return True

    def succeeded(self, *, probe: bool) -> None:
        """An answer came. One to a request from before the breaker opened does not close it."""
        if probe:
            self._state, self._probing = State.CLOSED, False
            self._recent.clear()
            self._openings = 0
        if self._state is State.CLOSED:
            self._in_a_row = 0
            self._recent.append(True)

    def failed(self, cause: str, now: float, *, probe: bool) -> bool:
        """The server failed. True where that opened the breaker."""
        if probe:
            self._open(cause, now)
            return True
        if self._state is not State.CLOSED:
            return False
        self._in_a_row += 1
        self._recent.append(False)
        full = len(self._recent) == self._limits.window
        often = full and self._recent.count(False) >= self._limits.share * self._limits.window
        if self._in_a_row < self._limits.consecutive and not often:
            return False
        self._open(cause, now)
        return True

    def abandoned(self, *, probe: bool) -> None:
        """The request was given up before the server showed anything: the next one may."""
        if probe:
            self._probing = False

    def _open(self, cause: str, now: float) -> None:
        longest = min(self._limits.longest_s, self._limits.first_s * 2.0**self._openings)
        # Half of it is certain: a server that is away is not hammered, however the jitter falls.
        self._until = now + longest * (0.5 + 0.5 * self._rng.random())
        # Past that many the wait no longer grows, and the power would overflow.
        self._openings = min(self._openings + 1, 30)
        self._state, self._probing, self.cause = State.OPEN, False, cause
        self._in_a_row = 0
        self._recent.clear()
