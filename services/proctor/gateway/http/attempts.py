"""Logins that failed, by the address that they came from."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from proctor.domain.ceilings import LimitError
from proctor.gateway.front import UnknownCallerError

#: Failures of one address in a minute. A token has 128 bits, so that no number of guesses finds one: this keeps who
#: guesses from wearing out the server, and the log readable.
MOST: Final = 10
WINDOW_S: Final = 60.0
#: Addresses that are remembered, the ones that failed last; beyond them nobody is held up by another's failures.
MAX_ADDRESSES: Final = 4_096


class Attempts:
    """Failures of the last minute. Only logins are counted: a program's token is looked at, however many were wrong."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: OrderedDict[str, deque[float]] = OrderedDict()

    @contextmanager
    def of(self, address: str) -> Iterator[None]:
        """Count a block that ends with an unknown caller.

        Raises:
            LimitError: when there were too many from this address; the block is not entered then.
        """
        failed = self._failed.get(address, deque())
        now = self._clock()
        while failed and failed[0] <= now - WINDOW_S:
            failed.popleft()
        if len(failed) >= MOST:
            raise LimitError(
                f"{MOST} logins from this address failed within a minute: try again in "
                f"{failed[0] + WINDOW_S - now:,.0f} s"
            )
        try:
            yield
        except UnknownCallerError:
            failed.append(now)
            self._failed[address] = failed
            self._failed.move_to_end(address)
            while len(self._failed) > MAX_ADDRESSES:
                self._failed.popitem(last=False)
            raise
