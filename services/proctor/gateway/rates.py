"""How often a caller changes something: submissions over the last hour, and every change over the last minute."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Final

from proctor.domain.ceilings import CEILINGS, LimitError

_HOUR_S: Final = 3_600.0
_MINUTE_S: Final = 60.0
#: Changes of one caller in a minute: more than a person or a pipeline makes, and less than wears out the stores.
MAX_CHANGES_PER_MINUTE: Final = 600


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
        now = self._clock()
        taken = _recent(self._taken, submitter, now - _HOUR_S)
        if len(taken) >= most:
            wait = f"again in {taken[0] + _HOUR_S - now:,.0f} s" if taken else "when the operator raises the ceiling"
            raise LimitError(
                f"submitter '{submitter}' may submit {most:,} times an hour ({CEILINGS}: max_submissions_per_hour), "
                f"and has: try {wait}"
            )
        taken.append(now)


class Changes:
    """Changes through this gateway: submissions, steering and sign-offs, whether they come to anything or not."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made: dict[str, deque[float]] = defaultdict(deque)

    def take(self, caller: str) -> None:
        """Count a change, if it may be made.

        Raises:
            LimitError: when the caller made too many in the last minute.
        """
        now = self._clock()
        made = _recent(self._made, caller, now - _MINUTE_S)
        if len(made) >= MAX_CHANGES_PER_MINUTE:
            raise LimitError(
                f"'{caller}' may change something {MAX_CHANGES_PER_MINUTE} times a minute, and has: try again in "
                f"{made[0] + _MINUTE_S - now:,.0f} s"
            )
        made.append(now)


def _recent(times: dict[str, deque[float]], name: str, since: float) -> deque[float]:
    found = times[name]
    while found and found[0] <= since:
        found.popleft()
    return found
