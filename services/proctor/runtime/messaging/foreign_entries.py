"""What is in a worker's queue and is no message of its own: put aside, where kombu and Celery would end the worker.

kombu 5.7 reads an entry as JSON, takes members for granted, and has no answer where it is something else: the error
goes up to the worker's loop and ends it, and each worker that is started in its place pops the next entry. Celery drops
what it knows not to be a task. Here each goes to the dead letters (`proctor.runtime.messaging.dead_letters`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from celery import bootsteps
from kombu.transport import redis as redis_transport
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import loads
from redis.exceptions import ResponseError

from proctor.runtime.messaging.dead_letters import MAX_BYTES_SHOWN, Fault
from proctor.runtime.messaging.tasks import worker_dead_letters

#: What kombu takes for a broker that is away, without a KeyError: an entry that lacks a member would have the worker
#: connect again and again until it gives up.
_AWAY: Final = (
    *(kind for kind in redis_transport.get_redis_error_classes().connection_errors if kind is not KeyError),
    ResponseError,
)
PutAside = Callable[[Fault, str, bytes | str, str], None]
"""Takes what is wrong, the queue, the letter and the details."""


def read_carefully() -> None:
    """Have every Redis connection that this process makes from now on put aside what cannot be delivered."""

    def put_aside(fault: Fault, queue: str, letter: bytes | str, detail: str) -> None:
        worker_dead_letters().put(fault, queue, letter, detail)

    class CarefulQoS(redis_transport.QoS):  # type: ignore[misc]  # kombu has no type information
        def restore_by_tag(self, tag: Any, client: Any = None, leftmost: bool = False) -> None:
            """Put back what a worker that died had in hand. One that cannot be put back must not keep the others."""
            try:
                super().restore_by_tag(tag, client=client, leftmost=leftmost)
            except _AWAY:
                raise
            except Exception as error:
                put_aside(Fault.UNDECODABLE, "unacked", str(tag), _words(error))
                self._remove_from_indices(tag).execute()

    class CarefulChannel(redis_transport.Channel):  # type: ignore[misc]  # kombu has no type information
        QoS = CarefulQoS

        def _create_client(self, asynchronous: bool = False) -> Any:
            client = super()._create_client(asynchronous=asynchronous)
            if asynchronous:
                client.parse_response = _without_undecodable(client.parse_response, put_aside)
            return client

        def basic_consume(self, queue: str, *arguments: Any, **named: Any) -> Any:
            """Consume a queue; what its consumer cannot take is put aside."""
            consumed = super().basic_consume(queue, *arguments, **named)
            deliver = self.connection._callbacks[queue]

            def deliver_carefully(raw: dict[str, Any]) -> None:
                try:
                    deliver(raw)
                # A worker without memory is no worker: it ends, and the message is counted as tried.
                except (*_AWAY, MemoryError):
                    raise
                except Exception as error:
                    if getattr(self.connection, "client", None) is None:
                        # The channel was closed under the consumer, which says nothing of the entry.
                        raise
                    put_aside(Fault.UNDECODABLE, queue, _begins(raw), _words(error))
                    self._forget(raw)

            self.connection._callbacks[queue] = deliver_carefully
            return consumed

        def _forget(self, raw: dict[str, Any]) -> None:
            properties = raw.get("properties")
            tag = properties.get("delivery_tag") if isinstance(properties, dict) else None
            if isinstance(tag, str):
                self.qos.reject(tag)

    redis_transport.Transport.Channel = CarefulChannel


class PutsAsideForeignTasks(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no type information
    """Has a worker put aside what is delivered and is no task of its own, where Celery would drop it with a line."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        """Take the place of the consumer's answers to such entries; called anew for each connection."""

        def undecodable(message: Any, error: Exception) -> None:
            aside(Fault.UNDECODABLE, message, _words(error))

        def unknown_message(body: Any, message: Any) -> None:
            aside(Fault.UNDECODABLE, message, "it names no task")

        def unknown_task(body: Any, message: Any, error: Exception) -> None:
            aside(Fault.UNKNOWN_TASK, message, _words(error))

        def invalid_task(body: Any, message: Any, error: Exception) -> None:
            aside(Fault.INVALID, message, _words(error))

        def aside(fault: Fault, message: Any, detail: str) -> None:
            queue = str((message.delivery_info or {}).get("routing_key"))
            worker_dead_letters().put(fault, queue, _begins(message.body), detail)
            message.reject()

        parent.on_decode_error = parent.task_consumer.on_decode_error = undecodable
        parent.on_unknown_message = unknown_message
        parent.on_unknown_task = unknown_task
        parent.on_invalid_task = invalid_task


def _without_undecodable(parse_response: Callable[..., Any], put_aside: PutAside) -> Callable[..., Any]:
    def parse(connection: Any, command: str, **options: Any) -> Any:
        reply = parse_response(connection, command, **options)
        if command != "BRPOP" or not reply:
            return reply
        queue, entry = reply
        if (fault := _fault(entry)) is None:
            return reply
        put_aside(Fault.UNDECODABLE, bytes_to_str(queue), entry, fault)
        # As if nothing had come.
        return None

    return parse


def _fault(entry: bytes) -> str | None:
    """Why an entry of a queue is not read; None where it is."""
    try:
        read = loads(bytes_to_str(entry))
    except Exception as error:
        # Deep nesting is a RecursionError, and kombu's own types (dates, decimals, …) raise what they like.
        return _words(error)
    return None if isinstance(read, dict) else f"it is JSON, but of {type(read).__name__}"


def _begins(letter: Any) -> bytes | str:
    if isinstance(letter, bytes | str):
        return letter[:MAX_BYTES_SHOWN]
    try:
        return json.dumps(letter)[:MAX_BYTES_SHOWN]
    except (TypeError, ValueError, RecursionError):
        return repr(letter)[:MAX_BYTES_SHOWN]


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:MAX_BYTES_SHOWN]
