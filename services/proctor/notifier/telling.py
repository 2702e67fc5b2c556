"""Telling of decisions: who is to be told goes into the outbox first, and each is sent what the record says."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from pydantic import ValidationError

from proctor.domain.cloud_event import decision_event, event_of_a_test
from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import BadInputError, NewerVersionError
from proctor.domain.notify.notice import Notice, notice_of, notice_of_a_test
from proctor.domain.notify.recipients import told_of
from proctor.domain.notify.settings import NOTIFY, EventSink, NotifySettings, Occasion
from proctor.domain.problems import quoted, visible
from proctor.domain.record.entry import EntryKind, LoggedEntry, plain_of
from proctor.domain.suite import GovernanceSection
from proctor.notifier.delivery import Delivery, Fate
from proctor.notifier.messages import send_message, url_of
from proctor.notifier.webhooks import post_event
from proctor.runtime.public_address import report_address
from proctor.runtime.records.decisions import decision_of
from proctor.runtime.records.outbox import Notification
from proctor.runtime.records.store import Records

logger = logging.getLogger(__name__)

#: Before each further attempt where one was not taken: some seven hours in all.
RETRY_WAITS_S: Final = (5, 30, 120, 600, 3_600, 21_600)
#: Notifications in memory at a time, and how long one round may go on: others wait for the worker.
_ROUND: Final = 20
_ROUND_S: Final = 120.0
#: What the outbox calls the decision itself.
DECISION: Final = "decision"
#: Where the log is read from is kept under this name.
_CURSOR: Final = "notifications"
_PAGE: Final = 200


class Notifier:
    """Tells of what is on record."""

    def __init__(
        self,
        records: Records,
        settings: NotifySettings,
        *,
        dashboard: str | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._records = records
        self._settings = settings
        self._dashboard = dashboard
        self._clock = clock

    def tell(self, audit_id: str) -> int:
        """Put into the outbox who is told of an audit's decision; how many were not there yet.

        What is told is what the record says: a message may be anybody's who can write to the broker.
        """
        found = self._records.on_record(audit_id)
        if found is None or found.event is None:
            logger.warning("nobody is told of audit %s, which has no decision on record", visible(audit_id[:100]))
            return 0
        event = decision_of(audit_id, json.loads(found.event))
        told = told_of(
            self._settings,
            Occasion(event.outcome.value),
            suite=event.audit_suite_id,
            model=event.model_id,
            governance=_governance(found.suite),
        )
        for unheard in told.unheard:
            why = "audit %s: %s, whom its suite names, is not told: %s"
            logger.info(why, audit_id, visible(unheard.name[:200]), unheard.why)
        return self._records.outbox.add(audit_id, DECISION, told.recipients)

    def catch_up(self) -> None:
        """Tell of whatever the decision log was given since it was read last, whether or not an event came of it.

        A deployment that has never told of anything begins with its next decision.
        """
        requests = self._records.requests
        said = requests.cursor(_CURSOR)
        if not said:
            with self._records.log_view() as view:
                head = view.head()
            requests.move_cursor(_CURSOR, str(head.sequence if head is not None else 0))
            return
        after = int(said)
        while True:
            with self._records.log_view() as view:
                page = view.after(after, _PAGE)
            for logged in page:
                self._tell_of(logged)
                after = logged.sequence
            if page:
                requests.move_cursor(_CURSOR, str(after))
            if len(page) < _PAGE:
                return

    def _tell_of(self, logged: LoggedEntry) -> None:
        try:
            entry = plain_of(logged.text)
            if entry["kind"] == EntryKind.DECISION and not entry["content"].get("taken_in"):
                self.tell(entry["audit_id"])
        except (NewerVersionError, ValueError, LookupError, TypeError) as error:
            # It would stand in the way of all behind it. `proctor record verify` says what is wrong with it.
            logger.warning("nobody is told of entry %d of the decision log: %s", logged.sequence, error)

    def deliver(self) -> int:
        """Send what is due, as much of it as a round has time for; how many were tried."""
        outbox, until, tried = self._records.outbox, self._clock() + _ROUND_S, 0
        outbox.lapse()
        while self._clock() < until:
            due = outbox.due(_ROUND)
            for one in due:
                tried += self._deliver(one)
                if self._clock() >= until:
                    return tried
            if len(due) < _ROUND:
                return tried
        return tried

    def _deliver(self, one: Notification) -> bool:
        outbox = self._records.outbox
        claim = outbox.claim(one)
        if claim is None:
            return False
        # Between here and the mark below, a worker that dies leaves a notification of which nobody knows.
        delivery = self._send(one)
        match delivery.fate:
            case Fate.SENT:
                outbox.sent(claim)
            case Fate.UNKNOWN:
                outbox.unknown(claim, delivery.why)
            case Fate.LATER if one.tries < len(RETRY_WAITS_S):
                outbox.set_back(claim, delivery.why, wait_s=RETRY_WAITS_S[one.tries])
            case Fate.LATER | Fate.REFUSED:
                outbox.failed(claim, delivery.why)
        level = logging.INFO if delivery.fate is Fate.SENT else logging.WARNING
        logger.log(level, "audit %s: %s is told: %s", one.audit_id, one.name, delivery.why or delivery.fate.value)
        return True

    def _send(self, one: Notification) -> Delivery:
        found = self._records.on_record(one.audit_id)
        if found is None or found.event is None:
            return Delivery(Fate.REFUSED, "its decision is not on record")
        try:
            event = decision_of(one.audit_id, json.loads(found.event))
        except NewerVersionError as error:
            return Delivery(Fate.LATER, str(error))
        target = self._settings.targets.get(one.name)
        if isinstance(target, EventSink):
            return post_event(target, decision_event(event, source=self._dashboard, decided_at=found.decided_at))
        url = url_of(self._settings, one.name)
        if url is None:
            return Delivery(Fate.REFUSED, "the operator has no such target any more")
        return send_message(url, self._notice(event))

    def _notice(self, event: DecisionEvent) -> Notice:
        report = None if self._dashboard is None else report_address(self._dashboard, event.audit_id)
        return notice_of(event, Occasion(event.outcome.value), report=report)


def send_test(settings: NotifySettings, name: str, *, source: str | None) -> Delivery:
    """Send one target a test.

    Args:
        settings: the operator's.
        name: a target, or a mail address.
        source: the address of the deployment's pages, where it has one.

    Raises:
        BadInputError: when there is no such target, or what sends to it is not installed.
    """
    target = settings.targets.get(name)
    if isinstance(target, EventSink):
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return post_event(target, event_of_a_test(source=source, at=at))
    url = url_of(settings, name)
    if url is None:
        known = ", ".join(settings.targets) or "none"
        raise BadInputError(
            f"{quoted(name)} is no target of {NOTIFY}, and no mail address that mail.server could send to; targets: "
            f"{known}"
        )
    return send_message(url, notice_of_a_test(name))


def _governance(suite: str) -> GovernanceSection:
    """What a suite on record says of who is told; nothing where another version wrote what this one does not know."""
    try:
        said = json.loads(suite).get("governance", {})
        known = {key: said[key] for key in ("audit_owner", "notify_on_failure") if key in said}
        return GovernanceSection.model_validate(known)
    except (ValueError, AttributeError, ValidationError):
        return GovernanceSection()
