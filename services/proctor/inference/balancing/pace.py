"""How quick a replica is seen to be. Pure: the time is passed in."""

from __future__ import annotations

from typing import Final

#: An idle replica's pace counts for so long; then it is asked anew how quick it is.
_REMEMBERED_S: Final = 30.0
#: Answers that the pace is an average of: so many times what is in flight, because answers of a batch come together.
_BATCHES: Final = 4
_FEWEST: Final = 16


class Pace:
    """Seconds a request at the present load: time with requests in flight per answer, recent answers counting more.

    Of a server that answers one after another it is the time of one; of one that answers n at once, an n-th of it.
    """

    def __init__(self) -> None:
        self._busy_s = 0.0
        self._answers = 0.0
        self._since = 0.0
        self._last_answer = float("-inf")

    def sent(self, in_flight: int, now: float) -> None:
        """A request was sent, with so many in flight before it."""
        if in_flight == 0:
            self._since = now

    def answered(self, in_flight: int, now: float) -> None:
        """An answer came, of so many requests in flight with it."""
        kept = 1.0 - 1.0 / max(_BATCHES * in_flight, _FEWEST)
        self._busy_s = self._busy_s * kept + max(now - self._since, 0.0)
        self._answers = self._answers * kept + 1.0
        self._since = self._last_answer = now

    def seconds(self, in_flight: int, now: float) -> float | None:
        """Seconds a request; None where there was no answer yet, or none lately of a replica that is idle."""
        if not self._answers or (in_flight == 0 and now - self._last_answer > _REMEMBERED_S):
            return None
        # Never nothing: shares are divided by it.
        return max(self._busy_s / self._answers, 1e-6)
