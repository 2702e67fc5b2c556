"""One verification of the record at a time, in a thread of its own, and what the last one came to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from proctor.domain.errors import ProctorError
from proctor.studies.record.checks import Checked

logger = logging.getLogger(__name__)

#: Findings that a page shows.
_SHOWN: Final = 50


class Verified(NamedTuple):
    """What a verification came to."""

    at: str
    """When it ended, ISO 8601 in UTC."""
    by: str
    """Who asked for it."""
    checked: Checked | None
    """None where it could not be done."""
    why_not: str = ""

    @property
    def findings(self) -> list[str]:
        """The first of what was found."""
        return [] if self.checked is None else [str(one.text) for one in self.checked.findings[:_SHOWN]]


class _LeavingError(Exception):
    """The server ends."""


class Verifying:
    """The verification that is under way, and the last one. Both are this process' own, and gone with it."""

    def __init__(self) -> None:
        self.last: Verified | None = None
        self.done = 0
        """Entries of the one under way."""
        self._task: asyncio.Task[None] | None = None
        self._leaving = False

    @property
    def under_way(self) -> bool:
        """Whether one is."""
        return self._task is not None and not self._task.done()

    def begin(self, check: Callable[[Callable[[int], None]], Checked], by: str) -> None:
        """Begin one, where none is under way.

        Args:
            check: does it; told how many entries are done.
            by: who asked for it.
        """
        if self.under_way:
            return
        self.done = 0
        self._task = asyncio.create_task(self._verify(check, by))

    async def _verify(self, check: Callable[[Callable[[int], None]], Checked], by: str) -> None:
        checked, why_not = None, ""
        try:
            checked = await asyncio.to_thread(check, self._told)
        except asyncio.CancelledError:
            # The thread cannot be ended from here, and the process waits for it.
            self._leaving = True
            raise
        except ProctorError as error:
            why_not = str(error)
        except Exception as error:
            logger.exception("the record could not be verified")
            why_not = f"{type(error).__name__}; see the server's log"
        self.last = Verified(datetime.now(UTC).isoformat(timespec="seconds"), by, checked, why_not)

    def _told(self, done: int) -> None:
        if self._leaving:
            raise _LeavingError
        self.done = done
