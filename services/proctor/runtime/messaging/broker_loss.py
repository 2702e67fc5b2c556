"""Keeping a worker alive when its broker goes away while messages are in its hands, or refuses to write them down."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import redis
from celery import bootsteps
from kombu.transport.virtual.base import QoS
from redis._parsers.base import BaseParser


class RefusesWritesError(redis.ConnectionError):
    """The server is there and takes no writes now: its disk or its memory is full, or it is a replica."""


class _OutOfMemoryError(RefusesWritesError, redis.OutOfMemoryError):
    pass


class _ReadOnlyError(RefusesWritesError, redis.ReadOnlyError):
    pass


def take_refusals_for_losses() -> None:
    """Have a server that takes no writes be taken for one that is away, by everything in this process.

    redis-py makes an error of it that is none of a connection; then Celery ends every worker that waits for messages
    (waiting for one is a write), and nobody tries again.
    """
    BaseParser.EXCEPTION_CLASSES.update(
        MISCONF=RefusesWritesError, NOREPLICAS=RefusesWritesError, OOM=_OutOfMemoryError, READONLY=_ReadOnlyError
    )


class SurvivesItsBroker(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no type information
    """Has a connection that was given up forget its messages instead of ending the worker.

    kombu 5.7 tries to put them back, and to acknowledge them, on the Redis connection that it closed before, and fails
    with an AttributeError, which Celery takes for a defect: every worker that was busy would end with its broker. They
    are redelivered when their visibility timeout is over. So is one whose acknowledgement a server refused that is
    still there.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        """Guard the connection that the worker consumes from; called anew for each."""
        channel = parent.task_consumer.channel
        for name in ("ack", "reject", "restore_unacked"):
            setattr(channel.qos, name, _while_open(channel, getattr(channel.qos, name)))


def _while_open(channel: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def guarded(*arguments: Any, **named: Any) -> Any:
        # A channel that is closed has no transport, and a transport that is closed has no client.
        if getattr(channel.connection, "client", None) is None:
            return None
        try:
            return function(*arguments, **named)
        except redis.ConnectionError:
            # Refused, as by a server whose disk is full. A message that is not let go here as well has the worker's
            # place for one: it would take no other, and never learn that the server is back.
            if arguments:
                QoS.ack(channel.qos, arguments[0])
            raise

    return guarded
