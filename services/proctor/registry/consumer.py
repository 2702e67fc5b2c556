"""The registry writer's ear on the decision events: a consumer beside the tasks of its Celery worker.

Each event becomes the task `registry.write`. It is acknowledged after the task is on its queue, so a worker that
dies in between hands the same event to the task twice; writing a decision twice leaves the same state.
"""

from __future__ import annotations

from typing import Any

from celery import bootsteps
from kombu import Consumer
from kombu.message import Message as Delivery
from pydantic import ValidationError

from proctor.domain.decision import DecisionEvent
from proctor.domain.messages import WriteDecision
from proctor.domain.versions import unknown_fields
from proctor.runtime.messaging.dead_letters import Fault
from proctor.runtime.messaging.events import REGISTRY_QUEUE
from proctor.runtime.messaging.tasks import forward, send, worker_dead_letters
from proctor.runtime.traces.tracing import passed_on

#: Turning an event into a task is one command to the broker; a few in hand hide its latency.
_PREFETCH = 8


class DecisionConsumer(bootsteps.ConsumerStep):  # type: ignore[misc]  # Celery has no type information
    """Consumes `decision.*` while the worker runs."""

    def get_consumers(self, channel: Any) -> list[Consumer]:
        """The one consumer of the registry's queue."""
        return [
            Consumer(
                channel,
                queues=[REGISTRY_QUEUE],
                callbacks=[dispatch],
                accept=["json"],
                prefetch_count=_PREFETCH,
                on_decode_error=_undecodable,
            )
        ]


def dispatch(body: Any, delivery: Delivery) -> None:
    """Send the task for one event. What is no decision event is put aside: it would never become one."""
    try:
        event = DecisionEvent.model_validate(body)
    except ValidationError as error:
        if unknown_fields(error):
            # A later version's. As a task it is given back until a worker of that version takes it.
            forward(WriteDecision, {"event": body}, passed_on(delivery.headers))
            delivery.ack()
            return
        worker_dead_letters().put(Fault.INVALID, REGISTRY_QUEUE.name, repr(body), str(error))
        delivery.reject()
        return
    send(WriteDecision(event=event), trace=passed_on(delivery.headers))
    delivery.ack()


def _undecodable(delivery: Delivery, error: Exception) -> None:
    worker_dead_letters().put(Fault.UNDECODABLE, REGISTRY_QUEUE.name, delivery.body, str(error))
    delivery.reject()
