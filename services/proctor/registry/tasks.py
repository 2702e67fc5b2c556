"""The registry worker's task: write a decision to the model registry, and tell the router."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import closing

from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import RegistryError
from proctor.domain.messages import DecisionWritten, WriteDecision
from proctor.registry.consumer import DecisionConsumer
from proctor.registry.model_registry import RegistryUnavailableError, open_registry
from proctor.runtime.messaging.tasks import app, handles, send, worker_settings
from proctor.runtime.retrying import retrying

logger = logging.getLogger(__name__)

#: A server that restarts is back within these waits (15 s in all, beside the calls' own time limits).
RETRY_WAITS_S = (0.5, 1.5, 4.0, 9.0)

# A line for every call to MLflow would bury the worker's own.
logging.getLogger("httpx").setLevel(logging.WARNING)
app.steps["consumer"].add(DecisionConsumer)


def _not_written(message: WriteDecision, cause: str) -> None:
    send(DecisionWritten(audit_id=message.event.audit_id, error=cause))


@handles(WriteDecision, given_up=_not_written, failed=_not_written)
def write(message: WriteDecision) -> None:
    """Write a decision, after some attempts where the registry does not answer, and report version or error."""
    uri = worker_settings().registry_uri
    if uri is None:
        # The router ends an audit by itself where there is no registry.
        logger.info("no registry is configured: decision of audit %s is on record only", message.event.audit_id)
        return
    try:
        version = write_with_retries(uri, message.event)
    except RegistryError as error:
        logger.error("decision of audit %s is not in the registry: %s", message.event.audit_id, error)
        send(DecisionWritten(audit_id=message.event.audit_id, error=str(error)))
        return
    send(DecisionWritten(audit_id=message.event.audit_id, registry_version=version))


def write_with_retries(
    uri: str,
    event: DecisionEvent,
    waits_s: Sequence[float] = RETRY_WAITS_S,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Write a decision and return the version's number, waiting between attempts while the registry is unreachable.

    Raises:
        RegistryError: when the registry refuses, or is unreachable after the last wait.
    """
    with closing(open_registry(uri)) as registry:

        def written() -> str:
            version = registry.ensure_version(event.model_id, event.model_digest)
            registry.write_decision(event, version)
            return version

        return retrying(waits_s, on=lambda error: isinstance(error, RegistryUnavailableError), sleep=sleep)(written)
