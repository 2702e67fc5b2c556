"""The registry writer's ear on the decision events: a consumer beside the tasks of its Celery worker.

Each event becomes the task `registry.write`. It is acknowledged after the task is on its queue, so a worker that
dies in between hands the same event to the task twice; writing a decision twice leaves the same state.
"""

from __future__ import annotations

import logging
from typing import Any

from celery import bootsteps
from kombu import Consumer
from kombu.message import Message as Delivery
from pydantic import ValidationError

from proctor.domain.decision import DecisionEvent
from proctor.domain.messages import WriteDecision
from proctor.domain.problems import visible
from proctor.runtime.events import REGISTRY_QUEUE
from proctor.runtime.tasks import send

logger = logging.getLogger(__name__)

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
    """Send the task for one event. What is no decision event is logged and dropped: it would never become one."""
    try:
        event = DecisionEvent.model_validate(body)
    except ValidationError as error:
        logger.error("dropped a message that is no decision event: %s", visible(str(error))[:500])
        delivery.reject()
        return
    send(WriteDecision(event=event))
    delivery.ack()


def _undecodable(delivery: Delivery, error: Exception) -> None:
    logger.error("dropped an event that cannot be decoded: %s", visible(str(error))[:500])
    delivery.reject()
