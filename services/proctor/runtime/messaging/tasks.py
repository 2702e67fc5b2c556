"""The Celery application, and how services send each other messages.

A message's class names its task and queue; it travels as plain JSON and is validated where it arrives.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from celery import Celery, current_task
from celery.exceptions import Ignore
from kombu import Queue
from pydantic import ValidationError

from proctor.domain.errors import NewerVersionError, ProctorError
from proctor.domain.messages import QUEUES, Message
from proctor.runtime import progress
from proctor.runtime.artifacts.opening import open_artifacts
from proctor.runtime.artifacts.store import ArtifactStore
from proctor.runtime.logs.context import saying
from proctor.runtime.messaging import versions
from proctor.runtime.messaging.broker_loss import take_refusals_for_losses
from proctor.runtime.messaging.dead_letters import DeadLetters, Fault
from proctor.runtime.messaging.passing import of_a_store, of_an_outage
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.redis.presence import Presence, new_worker_id
from proctor.runtime.redis.tries import TriedTooOftenError, Tries
from proctor.runtime.retrying import retrying
from proctor.runtime.settings import Settings
from proctor.runtime.traces import tracing

if TYPE_CHECKING:
    from proctor.runtime.records.store import Records

#: Longest time between two sweeps for messages whose visibility timeout is over. kombu's own is a hundred seconds.
_SWEEP_S = 10.0

#: Before a message is sent again whose channel was closed: the pool opens another for it.
_CLOSED_WAITS_S = (0.1, 0.5, 2.0)
#: Before a step is taken again that a store did not let end. A message whose task raises is gone, and its audit would
#: wait for a lease or an answer to be overdue.
_STORE_WAITS_S = (0.5, 2.0, 8.0)

#: Raised where a message goes back to its queue.
_GIVEN_BACK = (NewerVersionError, Ignore)

M = TypeVar("M", bound=Message)

logger = logging.getLogger(__name__)

app = Celery("proctor")


def configure(settings: Settings) -> Celery:
    """Point the application at a broker. JSON only: a pickle in a queue is refused, not run."""
    take_refusals_for_losses()
    app.conf.update(
        broker_url=settings.broker_url,
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            "visibility_timeout": settings.timing.visibility_timeout_s,
            "unacked_restore_interval": min(_SWEEP_S, settings.timing.visibility_timeout_s / 4),
            "unacked_restore_throttle": 1,
            # Nobody sweeps while the lock of a worker that died in a sweep is held: for five minutes, if kombu decides.
            "unacked_mutex_expire": math.ceil(_SWEEP_S),
            "health_check_interval": 25,
            # A worker of several queues looks into them in their order, and takes from the first that has something.
            "queue_order_strategy": "priority",
        },
        accept_content=["json"],
        result_accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        # Nor does beat clear any away each night: it would wait for that by the wall clock, and with it for the rest.
        result_expires=None,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        # About ten seconds: a broker that restarts is back by then. An answer that is not sent waits for its lease.
        task_publish_retry_policy={"max_retries": 12, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 1.0},
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        # Whoever may write to the broker would end workers with it, and nothing here asks for it.
        worker_enable_remote_control=False,
        task_queues=[Queue(name) for queues in QUEUES.values() for name in queues],
        task_create_missing_queues=False,
        worker_send_task_events=False,
    )
    return app


def send(message: Message, *, after_s: float = 0.0, trace: Mapping[str, str] | None = None) -> None:
    """Publish a message on its queue, to be handled after so many seconds at the earliest.

    Args:
        message: what is sent.
        after_s: the seconds.
        trace: headers of the trace that it is a part of, where that is not its audit's as this process knows it.

    Raises:
        kombu.exceptions.OperationalError: when the broker stays unreachable.
    """

    def note(error: BaseException, wait_s: float) -> None:
        logger.warning("%s is sent again: its connection was closed meanwhile", message.task)

    retrying(_CLOSED_WAITS_S, on=_met_a_closed_channel, note=note)(
        app.send_task,
        message.task,
        kwargs={"message": message.plain()},
        queue=message.queue,
        headers={versions.VERSION_HEADER: message.version, **(trace or _trace_of(message))},
        ignore_result=True,
        countdown=after_s or None,
    )


def _trace_of(message: Message) -> dict[str, str]:
    if not tracing.is_on():
        return {}
    of = getattr(message, "event", message)
    return tracing.headers_for(message.task, getattr(of, "audit_id", None), getattr(message, "stage", ""))


def forward(kind: type[Message], body: dict[str, object], trace: Mapping[str, str]) -> None:
    """Publish what only a later version can read as the message that it is a part of, with the headers of its trace.

    Raises:
        kombu.exceptions.OperationalError: when the broker stays unreachable.
    """
    app.send_task(
        kind.task, kwargs={"message": body}, queue=kind.task.partition(".")[0], headers=dict(trace), ignore_result=True
    )


def _met_a_closed_channel(error: BaseException) -> bool:
    """Whether kombu 5.7 published on a Redis channel that was closed when its connection broke.

    It has no transport then, and kombu does not take the AttributeError for what its own retries are for.
    """
    return isinstance(error, AttributeError) and error.name == "client" and error.obj is None


def redelivered() -> bool:
    """Whether the message that is being handled was delivered before, to a worker that did not acknowledge it."""
    return bool(current_task) and bool((current_task.request.delivery_info or {}).get("redelivered"))


def handles(
    kind: type[M],
    *,
    given_up: Callable[[M, str], None] | None = None,
    failed: Callable[[M, str], None] | None = None,
    often: bool = False,
) -> Callable[[Callable[[M], None]], Callable[[M], None]]:
    """Make a function the Celery task of a message class. It may run twice: a store may be away for a moment.

    What needs a newer Proctor, the message itself or what it names, goes back to the queue. So does a message whose
    handling an outage of the broker or a store ended, for as long as that lasts: it is nobody's fault, and no answer.

    Args:
        kind: the message class. What is none of its messages goes to the dead letters.
        given_up: told of a message that killed, or failed, whoever handled it too often, with the cause: nobody tries
            it again. Without it there is no end to that.
        failed: told of a message whose handling ended with an error, with its words, because somebody waits for an
            answer. Without it the message is gone, and whoever waits asks again.
        often: whether there are many of them in an audit. They are counted only where they are delivered again, so that
            the first time costs nothing.
    """

    def decorate(function: Callable[[M], None]) -> Callable[[M], None]:
        def handle(message: M) -> None:
            try:
                _patiently(function, message)
            except NewerVersionError:
                # Another worker's, which may do what this one cannot.
                raise
            except Exception as error:
                if failed is None or of_an_outage(error):
                    raise
                logger.exception("%s failed", kind.task)
                failed(message, _words(error))

        def handle_counted(message: M) -> None:
            if given_up is None or (often and not redelivered()):
                handle(message)
                return
            try:
                with worker_tries().trying(f"{message.task} {message.model_dump_json()}"):
                    handle(message)
            except TriedTooOftenError as error:
                logger.error("%s is given up: %s", message.task, error)
                given_up(message, f"{message.task} is given up: {error}")

        # Whatever arguments somebody thought of: what is no message goes to the dead letters.
        def task(*arguments: object, **named: object) -> None:
            delivery = _delivery(kind.task, arguments or named.get("message"))
            with saying(**_said_of(delivery)), _traced(delivery):
                taken(delivery)

        def taken(delivery: versions.Delivery) -> None:
            try:
                counted = metrics.message_handling(kind.task, redelivered=redelivered(), given_back=_GIVEN_BACK)
                with progress.handling(), counted:
                    _or_given_back(handle_counted, _read(kind, delivery))
            except NewerVersionError as error:
                versions.give_back(app, delivery, error, worker_settings().timing.lease_s)

        task.__doc__ = function.__doc__
        app.task(task, name=kind.task)
        return function

    return decorate


def _or_given_back(handle: Callable[[M], None], message: M) -> None:
    try:
        handle(message)
    except Exception as error:
        if not of_an_outage(error):
            raise
        # Without a pause: each try has waited for the store, or for its broker, as long as it is patient. Sent anew,
        # and not rejected: a broker that takes no writes refuses that as well, and the worker would keep the message
        # and take no other. Where the broker stays away it delivers this one again, by its visibility timeout.
        logger.warning("%s goes back to its queue: %s", message.task, error)
        send(message)
        raise Ignore from error


def _delivery(task: str, message: Any) -> versions.Delivery:
    if not current_task:
        return versions.Delivery(task, message)
    request = current_task.request
    return versions.Delivery.of(task, message, vars(request), request.delivery_info or {})


def _said_of(delivery: versions.Delivery) -> dict[str, str | None]:
    """What the log's lines about a message are of, whatever it is."""
    body: Any = delivery.body
    stage = body.get("stage") if isinstance(body, Mapping) else None
    return {
        "audit_id": delivery.audit_id,
        "stage": stage if isinstance(stage, str) else None,
        "task": delivery.task,
        "message_id": current_task.request.id if current_task else None,
    }


def _traced(delivery: versions.Delivery) -> AbstractContextManager[object]:
    if not tracing.is_on():
        return nullcontext()
    said = _said_of(delivery)
    attributes = {
        "messaging.message.id": said["message_id"],
        "proctor.stage": said["stage"],
        "proctor.message.redelivered": redelivered() or None,
    }
    return tracing.handling(delivery.task, delivery.audit_id, delivery.trace, attributes)


def audit_created_at(audit_id: str) -> str:
    """When an audit was put on record, by which its trace is known.

    Raises:
        StoreError: when there is none of that id, or the store does not answer.
    """
    return worker_records().audit(audit_id).created_at


def _read(kind: type[M], delivery: versions.Delivery) -> M:
    try:
        return versions.understood(kind, delivery)
    except ValidationError as error:
        worker_dead_letters().put(Fault.INVALID, kind.task, repr(delivery.body), str(error))
        raise


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, ProctorError) else f"{type(error).__name__}: {error}"


def _patiently(function: Callable[[M], None], message: M) -> None:
    def note(error: BaseException, wait_s: float) -> None:
        logger.warning("%s is taken again in %g s: %s", message.task, wait_s, error)

    retrying(_STORE_WAITS_S, on=of_a_store, note=note)(function, message)


@cache
def worker_settings() -> Settings:
    """The settings of this worker process."""
    return Settings.from_environment()


@cache
def worker_records() -> Records:
    """The record store of this worker process."""
    # A quarter of what an inference worker imports, which has no records and is what scales from nothing.
    from proctor.runtime.records.store import Records

    return Records(worker_settings().records_url, migrate=worker_settings().records_migrate.services)


def open_records_once() -> None:
    """Have the record store's tables as this version needs them; nothing stays open for processes to inherit.

    Raises:
        StoreError: when the store is of a version that this program cannot use, or does not answer.
    """
    from proctor.runtime.records.opening import open_records

    open_records(worker_settings()).close()


@cache
def worker_artifacts() -> ArtifactStore:
    """The artifact store of this worker process."""
    return open_artifacts(worker_settings())


@cache
def worker_tries() -> Tries:
    """The tries that came to nothing, for this worker process."""
    return Tries(worker_settings().ledger_url)


@cache
def worker_dead_letters() -> DeadLetters:
    """Where this worker process puts what nobody can handle."""
    return DeadLetters(worker_settings().ledger_url)


@cache
def worker_presence() -> Presence:
    """The list of workers, of this worker process."""
    settings = worker_settings()
    return Presence(settings.ledger_url, silence=timedelta(seconds=settings.timing.presence_s))


@cache
def worker_id() -> str:
    """What this worker process is called in that list."""
    return new_worker_id()
