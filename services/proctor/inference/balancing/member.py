"""One replica that is in use: its server, and all that is known of it."""

from __future__ import annotations

import random
from typing import Final

from proctor.domain.endpoint import EndpointSpec, Replica
from proctor.inference.balancing.breaker import Breaker
from proctor.inference.balancing.pace import Pace
from proctor.inference.balancing.strategies import Load
from proctor.inference.worker.backend import Server
from proctor.inference.worker.window import MAX_REQUESTS, Window

#: A replica with other weights is asked again after this: a roll-out ends.
_REFUSED_S: Final = 30.0


class Member:
    """A replica of an endpoint. `spec` is the endpoint as if this were its only server."""

    def __init__(self, replica: Replica, spec: EndpointSpec, server: Server, rng: random.Random) -> None:
        self.replica = replica
        self.spec = spec
        self.server = server
        self.window = Window(spec.max_in_flight or MAX_REQUESTS)
        self.breaker = Breaker(rng)
        self.pace = Pace()
        self.queued = 0
        self.leaving = False
        self.refusal = ""
        self._refused_until = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in flight."""
        return self.window.held == 0

    def admits(self, now: float) -> bool:
        """Whether it may be asked, if it has room."""
        return not self.leaving and not self.is_refused(now) and self.breaker.admits(now)

    def is_refused(self, now: float) -> bool:
        """Whether it serves another model, as far as it is known."""
        return now < self._refused_until

    def refuse(self, why: str, now: float) -> None:
        """It serves another model: leave it alone for a while."""
        self.refusal, self._refused_until = why, now + _REFUSED_S

    def load(self, size: int, now: float) -> Load:
        """What a strategy goes by, for a request of so many bytes."""
        in_flight = self.window.held
        return Load(
            name=self.replica.url,
            in_flight=in_flight,
            has_room=self.window.fits(size),
            weight=self.replica.weight,
            seconds=self.pace.seconds(in_flight, now),
            queued=self.queued,
        )

    def why_not(self, now: float) -> str:
        """Why it is not asked now."""
        if self.is_refused(now):
            return self.refusal
        return f"{self.replica.url} is left alone for a moment: {self.breaker.cause}"
