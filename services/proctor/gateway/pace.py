"""How quickly a stage's trials end, from looks at it over the last half minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from proctor.gateway.status import AuditStatus

#: Long enough that shards of a slow model end in it, short enough that a model that slows down is seen to.
WINDOW_S: Final = 30.0
#: Shards end many trials at once: over less than this, the rate would be that of one shard.
_MIN_SPAN_S: Final = 1.0


class Look(NamedTuple):
    """What a stage had come to at one moment."""

    at_s: float
    done: int


class Pace(NamedTuple):
    """Trials a second, and seconds until the stage ends; None where nothing can be said yet."""

    rate: float | None = None
    eta_s: float | None = None


def pace(looks: Sequence[Look], left: int) -> Pace:
    """The pace between the first look and the last one.

    The rate is None before the looks span a second, the time left also where no trial has ended between them.

    Args:
        looks: in the order of time.
        left: trials of the stage that have not ended.
    """
    if not looks or (span := looks[-1].at_s - looks[0].at_s) < _MIN_SPAN_S:
        return Pace()
    rate = max(0, looks[-1].done - looks[0].done) / span
    if left == 0:
        return Pace(rate, 0.0)
    return Pace(rate, left / rate if rate > 0 else None)


class PaceMeter:
    """The looks at one audit that are recent enough to count; a new stage, or a restarted one, begins afresh."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._stage: str | None = None
        self._looks: deque[Look] = deque()

    def measured(self, status: AuditStatus, now_s: float) -> AuditStatus:
        """The status with the pace that it shows, at a moment of a clock that never goes back."""
        if status.stage is None or status.trials is None or status.ended or status.paused:
            self._looks.clear()
            return status
        look = Look(now_s, status.trials.done)
        if status.stage != self._stage or (self._looks and look.done < self._looks[-1].done):
            self._looks.clear()
        self._stage = status.stage
        self._looks.append(look)
        # The newest look beyond the window stays, so that looks that are further apart than it still give a rate.
        while len(self._looks) > 2 and self._looks[1].at_s <= now_s - self._window_s:
            self._looks.popleft()
        rate, eta_s = pace(self._looks, status.trials.left)
        return status.model_copy(update={"rate": rate, "eta_s": eta_s})
