"""Messages of another version: one that a worker does not know goes back to its queue, for a worker that does.

While a deployment is upgraded, old and new workers take messages from the same queues. The version travels in a header
of the broker's, so that a worker of before there were versions reads the message all the same. Giving back is bounded:
where no worker comes that knows the version, the audit fails and says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from celery import bootsteps
from pydantic import ValidationError

from proctor.domain.errors import NewerVersionError
from proctor.domain.messages import HANDLED_BY, Message, NotUnderstood
from proctor.domain.problems import visible
from proctor.domain.versions import newest_version, unknown_fields
from proctor.runtime.traces.identity import HEADER
from proctor.runtime.traces.tracing import passed_on

#: Of a message: its version, and how often it was given back. A message without them is of version 1, and new.
VERSION_HEADER: Final = "proctor_version"
GIVEN_BACK_HEADER: Final = "proctor_given_back"
#: After so many times nobody knows the message. With the waits below the last is before the lease is over (eleven
#: minutes of fifteen), so that who waits for the answer hears of the cause first.
MAX_GIVEN_BACK: Final = 30
#: Before a message is looked at again: twice as long each time, from this to an equal share of this part of the lease.
_FIRST_WAIT_S: Final = 0.25
_OF_THE_LEASE: Final = 0.9

M = TypeVar("M", bound=Message)

logger = logging.getLogger(__name__)


class Delivery(NamedTuple):
    """A message as it was delivered: its task, its body, and what its headers say."""

    task: str
    body: Mapping[str, Any]
    version: int = 1
    given_back: int = 0
    queue: str = ""
    trace: str = ""
    """The header of the trace that it is a part of."""

    @classmethod
    def of(cls, task: str, body: Mapping[str, Any], headers: Mapping[str, Any], info: Mapping[str, Any]) -> Delivery:
        """A delivery by the headers that came with it. A count that is none is taken for the last."""
        version, given_back = headers.get(VERSION_HEADER, 1), headers.get(GIVEN_BACK_HEADER, 0)
        return cls(
            task,
            body,
            version if type(version) is int else 1,
            given_back if type(given_back) is int and given_back >= 0 else MAX_GIVEN_BACK,
            info.get("routing_key") or task.partition(".")[0],
            trace if isinstance(trace := headers.get(HEADER), str) else "",
        )

    @property
    def audit_id(self) -> str | None:
        """The audit that it is of, as far as that can be told of a message that nobody here knows."""
        # Until it is read, a body is whatever somebody put into the queue.
        body: Any = self.body
        if not isinstance(body, Mapping):
            return None
        event = body.get("event")
        found = event.get("auditId") if isinstance(event, Mapping) else body.get("audit_id")
        return found if isinstance(found, str) else None


def understood(kind: type[M], delivery: Delivery) -> M:
    """The message that was delivered.

    Raises:
        NewerVersionError: when it is of a version that this program does not know, or has fields that it does not know.
        ValidationError: when it is of a version that this program knows, and is no message of it.
    """
    known = newest_version(kind)
    if delivery.version > known:
        raise NewerVersionError(
            f"a message {kind.task} of version {delivery.version} needs a newer Proctor: this one knows {known}"
        )
    try:
        return kind.model_validate(delivery.body)
    except ValidationError as error:
        if names := unknown_fields(error):
            raise NewerVersionError(
                f"a message {kind.task} needs a newer Proctor: it has {names}, which this one does not know"
            ) from None
        raise


def wait_s(given_back: int, lease_s: float) -> float:
    """How long a message waits that was given back so often before: in all less than the lease."""
    longest = lease_s * _OF_THE_LEASE / MAX_GIVEN_BACK
    # Past the tenth doubling it is the longest anyway.
    return float(min(longest, _FIRST_WAIT_S * 2 ** min(given_back, 10)))


def give_back(app: Any, delivery: Delivery, cause: NewerVersionError, lease_s: float) -> None:
    """Put a message on its queue again, to be looked at later; after the last time, have its audit fail.

    Raises:
        kombu.exceptions.OperationalError: when the broker stays unreachable.
    """
    if delivery.given_back >= MAX_GIVEN_BACK:
        _give_up(app, delivery, cause)
        return
    # Whoever takes it next holds it for that long.
    wait = wait_s(delivery.given_back, lease_s)
    logger.warning("%s is given back, to be looked at in %.1f s: %s", delivery.task, wait, cause)
    _put_back(app, delivery, countdown=wait)


def _put_back(app: Any, delivery: Delivery, **options: Any) -> None:
    app.send_task(
        delivery.task,
        kwargs={"message": dict(delivery.body)},
        queue=delivery.queue,
        headers={
            VERSION_HEADER: delivery.version,
            GIVEN_BACK_HEADER: delivery.given_back + 1,
            **passed_on({HEADER: delivery.trace}),
        },
        ignore_result=True,
        **options,
    )


def _give_up(app: Any, delivery: Delivery, cause: NewerVersionError) -> None:
    logger.error("%s is dropped after it was given back %d times: %s", delivery.task, delivery.given_back, cause)
    if delivery.audit_id is None or delivery.task == NotUnderstood.task:
        return
    room = delivery.task.partition(".")[0]
    detail = f"{cause}; no worker of that version took it: upgrade the {HANDLED_BY.get(room, room)} workers"
    message = NotUnderstood(audit_id=delivery.audit_id, detail=detail)
    app.send_task(message.task, kwargs={"message": message.plain()}, queue=message.queue, ignore_result=True)


class GivesBackUnknownTasks(bootsteps.StartStopStep):  # type: ignore[misc]  # Celery has no type information
    """Has a worker give back messages whose task it does not have, which Celery would drop: a later version's."""

    requires = ("proctor.runtime.messaging.foreign_entries:PutsAsideForeignTasks",)

    lease_s = 0.0
    """Set by whoever adds the step to a worker."""

    def start(self, parent: Any) -> None:
        """Stand before what is done with them otherwise; called anew for each connection, after that was set."""
        otherwise = parent.on_unknown_task
        if not isinstance(otherwise, _Instead):
            parent.on_unknown_task = _Instead(parent, otherwise, self.lease_s)


class _Instead:
    """What a consumer does with a message of an unknown task."""

    def __init__(self, consumer: Any, before: Callable[..., None], lease_s: float) -> None:
        self._consumer, self.before, self._lease_s = consumer, before, lease_s

    def __call__(self, body: Any, message: Any, error: Exception) -> None:
        delivery = _delivery_of(message)
        if delivery is None:
            self.before(body, message, error)
            return
        cause = NewerVersionError(
            f"a message {visible(delivery.task)} needs a newer Proctor: this one has no such message"
        )
        if delivery.given_back >= MAX_GIVEN_BACK:
            _give_up(self._consumer.app, delivery, cause)
            self.before(body, message, error)
            return
        # Held here: a worker does not look at the time of a task that it does not have, and two of them would throw
        # the message to and fro without a pause. It is not acknowledged meanwhile, and takes nobody else's place.
        wait = wait_s(delivery.given_back, self._lease_s)
        logger.warning("%s is given back in %.1f s: %s", delivery.task, wait, cause)
        self._consumer.qos.increment_eventually()
        self._consumer.timer.call_after(wait, self._put_back, (delivery, message))

    def _put_back(self, delivery: Delivery, message: Any) -> None:
        _put_back(self._consumer.app, delivery)
        message.ack_log_error(logger, self._consumer.connection_errors)
        self._consumer.qos.decrement_eventually()


def _delivery_of(message: Any) -> Delivery | None:
    """What was delivered to an unknown task; None where that is no message between services at all."""
    task = message.headers.get("task")
    if not isinstance(task, str) or task.partition(".")[0] not in HANDLED_BY:
        return None
    try:
        _, arguments, _ = message.payload
        body = arguments["message"]
    except Exception:
        # Whatever it is that cannot be decoded or is built in another way.
        return None
    return Delivery.of(task, body, message.headers, message.delivery_info) if isinstance(body, dict) else None
