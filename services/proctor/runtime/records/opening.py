"""Opening the record store for a service that starts, perhaps before its database does."""

from __future__ import annotations

import logging
import time
from typing import Final

from proctor.domain.errors import StoreNotReadyError
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings

logger = logging.getLogger(__name__)

#: Between two tries. A server that refuses at once has been asked several times in each (`AWAY_WAITS_S`).
_LOOK_S: Final = 1.0


def open_records(settings: Settings) -> Records:
    """The record store of a worker or server; waited for as long as `records_wait_s` says where it is not ready.

    Raises:
        StoreNotReadyError: when it is not ready by then.
        StoreError: when it is damaged, or of a version that this program cannot use.
    """
    last = time.monotonic() + settings.records_wait_s
    said = ""
    while True:
        try:
            return Records(settings.records_url, migrate=settings.records_migrate.services)
        except StoreNotReadyError as error:
            if time.monotonic() >= last:
                raise
            if str(error) != said:
                logger.warning("waiting up to %g s for the record store: %s", settings.records_wait_s, error)
            said = str(error)
            time.sleep(_LOOK_S)
