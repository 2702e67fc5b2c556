"""Whether the gateway goes on, and whether it can be called: `/livez` and `/readyz` beside its metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from proctor.runtime.metrics.probe_pages import LIVEZ, READYZ, probe_page
from proctor.runtime.metrics.server import Pages

#: A loop that has not come round for so long is held up by a defect: what takes long is done in threads.
STALLED_S: Final = 5.0


class GatewayProbes:
    """What probes are told. They are asked in threads of the metrics' own, so that a loop that stands still shows.

    Args:
        away: names of the stores that do not answer.
    """

    def __init__(self, away: Callable[[], list[str]], *, stalled_s: float = STALLED_S) -> None:
        self._away = away
        self._stalled_s = stalled_s
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def pages(self) -> Pages:
        """By path."""
        return {LIVEZ: probe_page(self.stalled), READYZ: probe_page(self.not_ready)}

    def listens(self) -> None:
        """The gateway listens, in the loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def stalled(self) -> str | None:
        """Why it does not go on; None where it does, or has not begun."""
        if self._loop is None:
            return None
        turned = Future[None]()
        try:
            self._loop.call_soon_threadsafe(turned.set_result, None)
            turned.result(self._stalled_s)
        except RuntimeError:
            return "the gateway has ended"
        except TimeoutError:
            return f"the gateway has answered nobody for {self._stalled_s:g} s"
        return None

    def not_ready(self) -> str | None:
        """Why it cannot be called; None where it can."""
        if self._loop is None:
            return "the gateway does not listen yet"
        if (why := self.stalled()) is not None:
            return why
        away = self._away()
        return f"no answer from: {', '.join(away)}" if away else None
