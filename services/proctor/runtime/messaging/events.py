"""Decisions as events: the topic exchange that they leave on, and the queues that are bound to it.

Each is a CloudEvent, too, in binary mode: its attributes travel as headers beside the same body.

On Redis an exchange is a set of bindings, and an event for which no queue is bound is gone. So the publisher makes
sure that the queues of the consumers that must not miss one are bound, each time anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celery import Celery, bootsteps
from kombu import Exchange, Producer, Queue

from proctor.domain.cloud_event import decision_event
from proctor.domain.decision import DecisionEvent
from proctor.domain.messages import EVENTS_EXCHANGE, WriteDecision
from proctor.runtime.messaging.tasks import app as proctor_app
from proctor.runtime.messaging.tasks import worker_settings
from proctor.runtime.settings import Settings
from proctor.runtime.traces import tracing

EXCHANGE = Exchange(EVENTS_EXCHANGE, type="topic", durable=True)
#: The registry writer's queue: every decision, whatever its outcome.
REGISTRY_QUEUE = Queue(f"{EVENTS_EXCHANGE}.registry", EXCHANGE, routing_key="decision.*", durable=True)
#: The notifier's, where a deployment tells anybody of its decisions.
NOTIFIER_QUEUE = Queue(f"{EVENTS_EXCHANGE}.notifier", EXCHANGE, routing_key="decision.*", durable=True)

#: A broker that restarts is back within these attempts; the task that publishes is redelivered otherwise.
_RETRY_POLICY: dict[str, Any] = {"max_retries": 5, "interval_start": 0.1, "interval_step": 0.5, "interval_max": 2.0}


class KnowsTheExchange(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no type information
    """Lets a worker's connection know, each time that it is made, that the exchange of decisions goes by topic.

    On Redis any worker may put back what another one had in hand when it died. One that does not know the exchange
    takes it for a direct one, and puts a decision on a queue with the name of its routing key, which nobody consumes.
    """

    requires = ("celery.worker.consumer.connection:Connection",)

    def start(self, parent: Any) -> None:
        """Declare the exchange on the connection that the worker consumes from."""
        EXCHANGE.bind(parent.connection.default_channel).declare()


def queues_of(settings: Settings) -> tuple[Queue, ...]:
    """The queues whose consumers must miss no decision, in a deployment of these settings.

    Others are left unbound: what nobody consumes would pile up in them.
    """
    wanted = ((REGISTRY_QUEUE, settings.registry_uri), (NOTIFIER_QUEUE, settings.notify))
    return tuple(queue for queue, is_wanted in wanted if is_wanted)


def publish_decision(event: DecisionEvent, app: Celery = proctor_app, queues: Sequence[Queue] | None = None) -> None:
    """Publish a decision under `decision.<outcome>` in the canonical JSON form of its protobuf message.

    Args:
        event: the decision, as it is on record.
        app: whose broker it goes to.
        queues: those that must be bound; by default what the settings of this process ask for. Where there are none,
            nothing is published.

    Raises:
        kombu.exceptions.OperationalError: when the broker stays unreachable.
    """

    wanted = queues_of(worker_settings()) if queues is None else queues
    if not wanted:
        return
    trace = tracing.headers_for(WriteDecision.task, event.audit_id)

    def publish(channel: Any) -> None:
        for queue in wanted:
            _bind(queue, channel)
        Producer(channel).publish(
            event.plain(),
            exchange=EXCHANGE,
            routing_key=event.routing_key,
            serializer="json",
            delivery_mode="persistent",
            headers={**decision_event(event, source=worker_settings().dashboard_url).headers(), **trace},
        )

    with app.connection_for_write() as connection:
        connection.autoretry(publish, **_RETRY_POLICY)()


def _bind(queue: Queue, channel: Any) -> None:
    bound = queue.bind(channel)
    bound.declare()
    # kombu's Redis transport remembers in this process what it has bound, and does not look whether Redis still
    # knows: after a flush or a failover without the data, events would go nowhere without a word.
    if hasattr(channel, "get_table") and queue.name not in {row[-1] for row in channel.get_table(EXCHANGE.name)}:
        channel.state.queue_bindings_delete(queue.name)
        bound.declare()
