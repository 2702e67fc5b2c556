"""The notifier's ear on the decision events: a consumer beside the tasks of its Celery worker.

An event only says that there is something to tell of: what, is read from the record. So one that comes twice, late, or
from somebody else's hand does nothing that the record does not bear out, and one that is lost is made up for by the
reading of the decision log.
"""

from __future__ import annotations

from typing import Any

from celery import bootsteps
from kombu import Consumer
from kombu.message import Message as Delivery

from proctor.domain.messages import TellOf
from proctor.runtime.messaging.dead_letters import Fault
from proctor.runtime.messaging.events import NOTIFIER_QUEUE
from proctor.runtime.messaging.tasks import send, worker_dead_letters
from proctor.runtime.traces.tracing import passed_on

_PREFETCH = 8
_MAX_ID = 64


class DecisionConsumer(bootsteps.ConsumerStep):  # type: ignore[misc]  # Celery has no type information
    """Consumes `decision.*` while the worker runs."""

    def get_consumers(self, channel: Any) -> list[Consumer]:
        """The one consumer of the notifier's queue."""
        return [
            Consumer(
                channel,
                queues=[NOTIFIER_QUEUE],
                callbacks=[dispatch],
                accept=["json"],
                prefetch_count=_PREFETCH,
                on_decode_error=_undecodable,
            )
        ]


def dispatch(body: Any, delivery: Delivery) -> None:
    """Send the task for one event. Of a later version's event, too, the audit is all that is needed."""
    audit_id = body.get("auditId") if isinstance(body, dict) else None
    if not isinstance(audit_id, str) or not 0 < len(audit_id) <= _MAX_ID:
        worker_dead_letters().put(Fault.INVALID, NOTIFIER_QUEUE.name, repr(body), "it names no audit")
        delivery.reject()
        return
    send(TellOf(audit_id=audit_id), trace=passed_on(delivery.headers))
    delivery.ack()


def _undecodable(delivery: Delivery, error: Exception) -> None:
    worker_dead_letters().put(Fault.UNDECODABLE, NOTIFIER_QUEUE.name, delivery.body, str(error))
    delivery.reject()
