"""Telling the registry's writer that something else holds for an audit than it knows.

What is noted as told only after it was sent is told again where somebody dies in between: the writer writes what holds
when it writes, so twice is the same as once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kombu.exceptions import OperationalError

from proctor.domain.messages import WriteDecision
from proctor.domain.standing import Standing
from proctor.runtime.records.decisions import decision_of
from proctor.runtime.records.store import Records

logger = logging.getLogger(__name__)


def tell(records: Records, standing: Standing, send: Callable[[WriteDecision], None]) -> bool:
    """Have the registry's writer look at an audit again; False where the broker does not take it, and it waits.

    Raises:
        NewerVersionError: the decision needs a newer Proctor.
        StoreError: the record store does not answer.
    """
    event = records.decision(standing.audit_id)
    if event is None:
        return False
    try:
        send(WriteDecision(event=decision_of(standing.audit_id, event)))
    except (OperationalError, OSError) as error:
        logger.warning("audit %s: the registry is not told yet what holds: %s", standing.audit_id, error)
        return False
    records.standings.note_told(standing.audit_id, standing.sequence)
    return True
