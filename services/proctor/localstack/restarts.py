"""Whether, and when, a service that died is started again. Standard library only, and no clock: pure decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Before the first restart, the second, and so on; the last one holds for all that follow. A single death costs next
#: to nothing; a service that is killed whenever it is seen is away for longer and longer.
DELAYS_S: Final = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
#: A service that was ready for so long has recovered: the death after it is a first one again.
STEADY_S: Final = 10.0
#: Deaths in a row after which a service is given up. The delays before it come to more than a minute, so that a
#: minute in which a service is killed every second is survived, and one that can never run is given up soon after.
LIMIT: Final = 11


@dataclass
class Restarts:
    """The deaths of one service."""

    in_a_row: int = 0
    """Deaths since it was last ready for a while."""
    total: int = 0

    def after_death(self, ready_for_s: float) -> float | None:
        """Count a death; gives the seconds to wait before the next start, or None where it is given up.

        Args:
            ready_for_s: for how long the service was ready before it died; 0 where it never was.
        """
        self.total += 1
        self.in_a_row = 1 if ready_for_s >= STEADY_S else self.in_a_row + 1
        if self.in_a_row >= LIMIT:
            return None
        return DELAYS_S[min(self.in_a_row, len(DELAYS_S)) - 1]
