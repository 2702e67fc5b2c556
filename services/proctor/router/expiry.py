"""Approvals that end, as a step of the router's worker: the log is told once of each, and the registry of what changed.

Nobody who acts on a standing waits for this: an approval past its time is none when it is read. Several routers may do
it at once: the entry is written by the first.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

from proctor.domain.errors import ProctorError
from proctor.domain.messages import WriteDecision
from proctor.runtime.kubernetes.leader import Leads, everybody_leads
from proctor.runtime.messaging.tasks import send
from proctor.runtime.records.attestations import lay_down_attestations
from proctor.runtime.records.decision_log import NoKey, SigningKey
from proctor.runtime.records.store import Records
from proctor.runtime.records.telling import tell
from proctor.runtime.settings import Settings
from proctor.runtime.signing import open_signing_key

logger = logging.getLogger(__name__)

#: Between two looks.
_LOOK_S: Final = 60.0
#: Between two looks whether it is this router that leads.
_FOLLOWS_S: Final = 1.0
#: In one look; the rest is left to the next.
_MOST: Final = 1_000


@contextmanager
def expiring(settings: Settings, leads: Leads = everybody_leads) -> Iterator[None]:
    """Look for approvals that ended, and tell the registry of what changed, while the block lasts and it leads."""
    stop = threading.Event()
    thread = threading.Thread(target=_look, args=(settings, leads, stop), name="expiry", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _look(settings: Settings, leads: Leads, stop: threading.Event) -> None:
    while not stop.is_set():
        if not leads():
            stop.wait(_FOLLOWS_S)
            continue
        try:
            expire_once(settings, send)
        except Exception:
            # Whatever a store lacks now: audits go on, and it is tried again at the next look.
            logger.exception("approvals that ended could not be put on record now")
        stop.wait(_LOOK_S)


def expire_once(settings: Settings, send: Callable[[WriteDecision], None]) -> list[str]:
    """Put on record which approvals ended, and have the registry written anew; the audits whose approvals ended.

    Raises:
        StoreError: a store cannot be reached.
    """
    with closing(Records(settings.records_url, migrate=False)) as records:
        ended = records.standings.expire(key=_key(settings), limit=_MOST)
        for audit_id in ended:
            logger.info("the approval of audit %s has ended", audit_id)
            lay_down_attestations(records, settings.home, audit_id)
        if settings.registry_uri:
            _tell_all(records, send)
    return ended


def _tell_all(records: Records, send: Callable[[WriteDecision], None]) -> None:
    """Of what changed by others, too, who died before they told or met a broker that was away."""
    for standing in records.standings.untold():
        try:
            if not tell(records, standing, send):
                return
        except ProctorError as error:
            logger.warning("audit %s: the registry is not told what holds: %s", standing.audit_id, error)


def _key(settings: Settings) -> SigningKey | NoKey:
    try:
        return open_signing_key(settings.home, settings.signing_key)
    except (ProctorError, OSError) as error:
        return NoKey(f"no key could be used: {error}"[:300])
