"""Retention as a step of the router's worker: once a day, by one router of a deployment, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Final

from proctor.router.ledger.store import Ledger
from proctor.router.retention.forgetting import Forgotten, Period, forget
from proctor.runtime.artifacts.opening import open_artifacts
from proctor.runtime.kubernetes.leader import Leads, everybody_leads
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings

logger = logging.getLogger(__name__)

_TURN: Final = "retention"
#: A little less than a day, so that it does not wander through the day.
_EVERY: Final = timedelta(hours=23, minutes=50)
#: Between two looks whether it is time.
_LOOK_S: Final = 600.0
#: Between two looks whether it is this router that leads.
_FOLLOWS_S: Final = 1.0
#: After each step (an audit that is read, a few hundred objects that are looked at): the router's own work goes first.
_PAUSE_S: Final = 0.005


@contextmanager
def retaining(settings: Settings, leads: Leads = everybody_leads) -> Iterator[None]:
    """While the block lasts, and this router leads, forget what is past its suite's period.

    And past `PROCTOR_RETENTION_DAYS` where it is set.

    Raises:
        BadInputError: the period is out of range.
    """
    period, stop = Period(settings.retention_days), threading.Event()
    thread = threading.Thread(target=_retain, args=(settings, period, leads, stop), name="retention", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _retain(settings: Settings, period: Period, leads: Leads, stop: threading.Event) -> None:
    while not stop.is_set():
        if not leads():
            stop.wait(_FOLLOWS_S)
            continue
        try:
            retain_once(settings, period, stop, leads)
        except Exception:
            # Whatever a store lacks now: audits go on, and it is tried again at the next look.
            logger.exception("old prompts and completions could not be removed now")
        stop.wait(_LOOK_S)


def retain_once(
    settings: Settings, period: Period, stop: threading.Event, leads: Leads = everybody_leads
) -> Forgotten | None:
    """Forget once, if no router has in this day; returns what was removed, None where it is another's turn.

    Raises:
        StoreError: a store cannot be reached; the turn is then anybody's.
    """
    with closing(Ledger(settings.ledger_url)) as ledger:
        if not ledger.take_turn(_TURN, _EVERY):
            return None
        try:
            with closing(Records(settings.records_url)) as records:
                return _forget(records, ledger, settings, period, lambda: stop.wait(_PAUSE_S) or not leads())
        except BaseException:
            ledger.give_turn_back(_TURN)
            raise


def _forget(
    records: Records, ledger: Ledger, settings: Settings, period: Period, breaks_off: Callable[[], bool]
) -> Forgotten:
    seen = Forgotten()
    for so_far in forget(records, ledger, open_artifacts(settings), period):
        seen = so_far
        if breaks_off():
            logger.info("retention breaks off: the worker leaves, or another leads")
            ledger.give_turn_back(_TURN)
            break
    days = "each suite's" if period.days is None else f"at least {period.days}"
    logger.info(
        "retention (%s days): removed %d objects (%d bytes), kept %d; %d audits are past it, %d more are kept by "
        "their suites, %d are not at their end",
        days, seen.objects, seen.n_bytes, seen.kept, len(seen.past), seen.held_by_suites, seen.open,
    )  # fmt: skip
    return seen
