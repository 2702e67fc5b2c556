"""How a worker leaves: it may finish for a while, then it hands back what it has in hand, and then it is gone."""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

#: Seconds of the grace that are kept for handing back: storing what was answered, and telling the router.
_MARGIN_S = 5.0
_MARGIN_SHARE = 1 / 3


class Leaving:
    """The way out of a process, in a thread of its own that holds nothing up.

    Args:
        grace_s: longest time from the first `begin` to the process's end.
        hand_back: stops the work, so that its tasks end soon. Called once, from another thread.
        end: ends the process at once, where a task does not end all the same (a store that hangs): the signs of the
            worker's life end with it, so that what it had in hand is lost and goes to another.
    """

    def __init__(
        self, grace_s: float, hand_back: Callable[[], None], *, end: Callable[[], object] = lambda: os._exit(1)
    ) -> None:
        self._margin_s = min(_MARGIN_S, grace_s * _MARGIN_SHARE)
        self._finish_s = grace_s - self._margin_s
        self._hand_back = hand_back
        self._end = end
        self._hurry = threading.Event()
        # One call of C: a signal that comes while the handler of the one before still runs is told from it.
        self._asked = itertools.count()

    def begin(self) -> None:
        """Leave; asked again, hurry: hand back now. Safe in a signal handler, which runs in the main thread."""
        if next(self._asked) > 0:
            self._hurry.set()
            return
        threading.Thread(target=self._leave, name="leaving", daemon=True).start()

    def _leave(self) -> None:
        if self._hurry.wait(self._finish_s):
            logger.warning("told to hurry: what is in hand is handed back")
        else:
            logger.warning("not done after %.0f s: what is in hand is handed back", self._finish_s)
        self._hand_back()
        time.sleep(self._margin_s)
        logger.error("a task did not end %.0f s after it was told to: the process ends without it", self._margin_s)
        self._end()
