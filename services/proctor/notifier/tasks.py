"""The notifier worker's tasks: tell of a decision, and send what is due."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, Final

from proctor.domain.errors import BadInputError
from proctor.domain.messages import DeliverNotifications, TellOf
from proctor.domain.notify.settings import NOTIFY, EventSink
from proctor.notifier.consumer import DecisionConsumer
from proctor.notifier.messages import check_target, url_of
from proctor.notifier.telling import Notifier
from proctor.runtime.messaging.steady_schedule import Steadily
from proctor.runtime.messaging.tasks import app, handles, worker_records, worker_settings
from proctor.runtime.settings import Settings

#: Between two looks for what is to be sent again, and for decisions whose event was lost.
_LOOK_S: Final = 10.0

# A line for every post to a sink would say its whole address.
logging.getLogger("httpx").setLevel(logging.WARNING)
app.steps["consumer"].add(DecisionConsumer)


def check_settings(settings: Settings) -> None:
    """See whether everything that the operator names can be sent to, before anything is to be sent.

    Raises:
        BadInputError: when nobody is to be told of anything, or a target's URL is none that is known.
    """
    notify = settings.notify
    if not notify:
        raise BadInputError(
            f"nobody is to be told of anything: set {NOTIFY} (docs/notifications.md), or start no notifier"
        )
    for name, target in notify.said.targets.items():
        if not isinstance(target, EventSink):
            check_target(name, target)
    if notify.said.mail is not None:
        check_target("mail.server", url_of(notify.said, "somebody@example.org") or "")


@handles(TellOf)
def tell_of(message: TellOf) -> None:
    """Put into the outbox who is told of a decision, and send what is due."""
    _notifier().tell(message.audit_id)
    _notifier().deliver()


@handles(DeliverNotifications)
def deliver(message: DeliverNotifications) -> None:
    """Read on in the decision log, and send what is due."""
    _notifier().catch_up()
    _notifier().deliver()


@cache
def _notifier() -> Notifier:
    settings = worker_settings()
    return Notifier(worker_records(), settings.notify.said, dashboard=settings.dashboard_url)


def _look_now_and_then(sender: Any, **_: Any) -> None:
    sender.conf.beat_schedule = {
        "deliver": {
            "task": DeliverNotifications.task,
            "schedule": Steadily(_LOOK_S),
            "kwargs": {"message": DeliverNotifications().plain()},
            # A worker that is held up by a slow service is not given a look for each time that it missed.
            "options": {"queue": DeliverNotifications().queue, "expires": _LOOK_S},
        }
    }


app.on_after_finalize.connect(_look_now_and_then, weak=False)
