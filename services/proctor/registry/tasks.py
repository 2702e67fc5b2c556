"""The registry worker's task: write a decision to the model registry, and tell the router."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Final

from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import RegistryError
from proctor.domain.messages import DecisionWritten, WriteDecision
from proctor.registry.consumer import DecisionConsumer
from proctor.registry.kubernetes.events import Decided, Telling
from proctor.registry.model_registry import RegistryUnavailableError
from proctor.registry.standing_record import Sources
from proctor.registry.writing import write_standing
from proctor.runtime.kubernetes.where import Where
from proctor.runtime.messaging.tasks import app, handles, send, worker_artifacts, worker_records, worker_settings
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.metrics.recording import RegistryWrite
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.retrying import retrying
from proctor.runtime.verdicts import Verdicts

logger = logging.getLogger(__name__)

#: A server that restarts, as a pod that is replaced on a busy node, is back within these waits (30 s in all, beside the
#: calls' own time limits; below the grace of a worker that is told to leave meanwhile).
RETRY_WAITS_S = (0.5, 1.5, 4.0, 9.0, 15.0)
#: Until the next of these rounds for an audit that waits for the registry; by a message of its own, so that it holds up
#: no other audit's write.
_NEXT_ROUND_S: Final = 15.0
#: Before a change of what stands is written where the registry did not answer: a message may wait no longer than its
#: visibility timeout, or it would be there twice.
_FIRST_WAIT_S: Final = 60.0
_LONGEST_WAIT_S: Final = 900.0
#: A day of them.
MAX_ATTEMPTS: Final = 100

# A line for every call to MLflow would bury the worker's own.
logging.getLogger("httpx").setLevel(logging.WARNING)
app.steps["consumer"].add(DecisionConsumer)


def _not_written(message: WriteDecision, cause: str) -> None:
    send(DecisionWritten(audit_id=message.event.audit_id, error=cause))


@handles(WriteDecision, given_up=_not_written, failed=_not_written)
def write(message: WriteDecision) -> None:
    """Write what stands for an audit's version, and report the version, or why it is not written."""
    uri, audit_id = worker_settings().registry_uri, message.event.audit_id
    if uri is None:
        # The router ends an audit by itself where there is no registry.
        logger.info("no registry is configured: decision of audit %s is on record only", audit_id)
        return
    settings = worker_settings()
    sources = Sources(worker_records(), worker_artifacts(), settings.dashboard_url, lambda: datetime.now(UTC))
    try:
        version = write_with_retries(uri, message.event, settings.records_url, sources)
    except RegistryError as error:
        logger.error("decision of audit %s is not in the registry: %s", audit_id, error)
        worker_records().versions.note_write(audit_id, message.event.outcome.value, None, str(error))
        away = isinstance(error, RegistryUnavailableError)
        metrics.registry_write(RegistryWrite.UNREACHABLE if away else RegistryWrite.REFUSED)
        if away and _nobody_asks_again(audit_id):
            _try_later(message)
        elif away and message.attempt < _rounds(settings.timing.outage_s):
            send(message.model_copy(update={"attempt": message.attempt + 1}), after_s=_NEXT_ROUND_S)
        else:
            send(DecisionWritten(audit_id=audit_id, error=str(error)))
        return
    metrics.registry_write(RegistryWrite.WRITTEN)
    send(DecisionWritten(audit_id=audit_id, registry_version=version))
    if (telling := _telling()) is not None:
        telling.tell(Decided(message.event, version))


@cache
def _telling() -> Telling | None:
    """Whoever tells workloads of decisions; None where nobody is to."""
    where = Where.from_environment()
    if where is None:
        return None
    return Telling(where, Verdicts(worker_settings(), worker_records().deployable).on)


def write_with_retries(
    uri: str,
    event: DecisionEvent,
    records_url: str,
    sources: Sources,
    waits_s: Sequence[float] = RETRY_WAITS_S,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Write what stands and return the version's name, waiting between attempts while the registry is unreachable.

    Raises:
        RegistryError: when the registry refuses, or is unreachable after the last wait.
    """

    def written() -> str:
        return write_standing(uri, records_url, sources, event.audit_id)

    return retrying(waits_s, on=lambda error: isinstance(error, RegistryUnavailableError), sleep=sleep)(written)


def _rounds(outage_s: float) -> int:
    """How many rounds of attempts follow the first within the time that an outage may take."""
    return int(outage_s // (sum(RETRY_WAITS_S) + _NEXT_ROUND_S))


def _nobody_asks_again(audit_id: str) -> bool:
    """Whether the audit has ended: one that waits for the registry fails in the end, and a person resumes it."""
    return worker_records().audit(audit_id).state is AuditState.DECIDED


def _try_later(message: WriteDecision) -> None:
    if message.attempt >= MAX_ATTEMPTS:
        logger.error("the registry stays as it is for audit %s: it was asked for a day", message.event.audit_id)
        return
    wait_s = min(_FIRST_WAIT_S * 2**message.attempt, _LONGEST_WAIT_S)
    send(message.model_copy(update={"attempt": message.attempt + 1}), after_s=wait_s)
