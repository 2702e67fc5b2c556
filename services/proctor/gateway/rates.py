"""How often a submitter submits, over the last hour."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Final

from proctor.domain.ceilings import CEILINGS, LimitError

_HOUR_S: Final = 3_600.0


class Rates:
    """Submissions through this gateway. Names are those of its tokens, so that there are only so many.

    Kept in the process and not in a store: it is the gateway's own time and memory that are protected, before a
    message is read, and a store that is asked for each call would be one more thing that callers can wear out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._taken: dict[str, deque[float]] = defaultdict(deque)

    def take(self, submitter: str, most: int | None) -> None:
        """Count a submission, if it may be made.

        Raises:
            LimitError: when there were `most` in the last hour already; this one is not counted then.
        """
        if most is None:
            return
        now, taken = self._clock(), self._taken[submitter]
        while taken and taken[0] <= now - _HOUR_S:
            taken.popleft()
        if len(taken) >= most:
            wait = f"again in {taken[0] + _HOUR_S - now:,.0f} s" if taken else "when the operator raises the ceiling"
            raise LimitError(
                f"submitter '{submitter}' may submit {most:,} times an hour ({CEILINGS}: max_submissions_per_hour), "
                f"and has: try {wait}"
            )
        taken.append(now)
