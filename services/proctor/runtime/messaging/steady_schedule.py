"""Every so many seconds, whatever becomes of the machine's clock.

Celery's own schedule goes by the wall clock: one that is put back by an hour is not due for an hour, and a router
without its reconciler takes on nothing that was lost.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from celery.schedules import schedule

#: What both clocks said at the same moment.
_BEGAN, _BEGAN_S = datetime.now(UTC), time.monotonic()


class Steadily(schedule):  # type: ignore[misc]  # Celery has no type information
    """A schedule whose clock begins with the wall's and then only goes on."""

    def now(self) -> datetime:
        """The time by this process' steady clock."""
        return _BEGAN + timedelta(seconds=time.monotonic() - _BEGAN_S)

    def is_due(self, last_run_at: datetime) -> Any:
        """As Celery's, but what a process before this one ran later than now, it ran now at the latest."""
        return super().is_due(min(self.maybe_make_aware(last_run_at), self.now()))
