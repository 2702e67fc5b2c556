"""The outbox of notifications: one row for whatever happened to an audit and each who is told of it, claimed before it
is sent.

The row's key is what it tells of and to whom, and is unique: however often an event is delivered, and to how many
workers, there is one row. A row is claimed by one statement that only one worker's can meet. So nothing is sent twice
at the same time; what is sent twice one after the other depends on what is known of the first time:

- It was refused, or nobody was there: it was not sent, and is sent again after a while (`set_back`).
- It was taken: it is never sent again (`sent`).
- Nobody knows, because the worker died between the sending and its mark, or the answer never came. Words for people
  are not sent again then: the row is `unknown`, for a person to look at. An event for a machine is, because its
  receiver knows it by its id.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from proctor.domain.notify.recipients import Recipient, RecipientKind
from proctor.runtime.records.engine import outlasting
from proctor.runtime.records.tables import NOTIFICATIONS
from proctor.runtime.records.words import storable

#: What a sender may take from its claim to its mark. Far longer than its own time limits; past it nobody knows.
CLAIM_S: Final = 300

_MAX_NAME_CHARACTERS: Final = 400


class NotificationState(StrEnum):
    """What became of a notification."""

    WAITING = "waiting"
    """To be sent, or sent again because it was refused or nobody was there."""
    SENDING = "sending"
    """Some worker is at it, or was when it died."""
    SENT = "sent"
    """The service took it."""
    FAILED = "failed"
    """It was refused for good, or too often."""
    UNKNOWN = "unknown"
    """It may have arrived: nobody knows."""


class Notification(NamedTuple):
    """A notification as it is on record."""

    audit_id: str
    occasion: str
    """What it tells of: `decision`."""
    recipient: str
    """The digest of who is told."""
    name: str
    """Who: a target's name, or a mail address."""
    kind: RecipientKind
    state: NotificationState
    tries: int
    detail: str
    due_at: int
    """Seconds since 1970: when it is tried next, or when its claim is over."""
    created_at: str
    changed_at: str


class Claim(NamedTuple):
    """A notification that its holder alone may send."""

    notification: Notification
    token: str


class Outbox:
    """The notifications of a record store."""

    def __init__(self, engine: sa.Engine, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._clock = clock

    @outlasting
    def add(self, audit_id: str, occasion: str, recipients: Iterable[Recipient]) -> int:
        """Put on record who is to be told; who is on record already stays as they are. How many were new."""
        insert = postgresql.insert if self._engine.dialect.name == "postgresql" else sqlite.insert
        once = insert(NOTIFICATIONS).on_conflict_do_nothing(index_elements=["audit_id", "occasion", "recipient"])
        # How many rows it was, only what comes back says on every database.
        statement = once.returning(NOTIFICATIONS.c.recipient)
        now = _now()
        rows = [
            {
                "audit_id": audit_id,
                "occasion": occasion,
                "recipient": one.digest,
                "name": storable(one.name)[:_MAX_NAME_CHARACTERS],
                "kind": one.kind.value,
                "state": NotificationState.WAITING.value,
                "tries": 0,
                "detail": "",
                "due_at": 0,
                "created_at": now,
                "changed_at": now,
            }
            # All writers in one order: two that waited for each other's rows would be a deadlock.
            for one in sorted(recipients, key=lambda one: one.digest)
        ]
        with self._engine.begin() as connection:
            return sum(len(connection.scalars(statement.values(**row)).all()) for row in rows)

    @outlasting
    def due(self, most: int) -> list[Notification]:
        """Those that are to be sent now, the longest due first."""
        table = NOTIFICATIONS.c
        is_due = sa.and_(table.state == NotificationState.WAITING, table.due_at <= int(self._clock()))
        statement = sa.select(NOTIFICATIONS).where(is_due).order_by(table.due_at, table.created_at).limit(most)
        with self._engine.connect() as connection:
            return [_notification(row) for row in connection.execute(statement).mappings()]

    def claim(self, one: Notification) -> Claim | None:
        """Take a notification for oneself alone; None where another has it, or it is not to be sent any more."""
        token = secrets.token_hex(8)
        return Claim(one, token) if self._claim(one, token) else None

    @outlasting
    def _claim(self, one: Notification, token: str) -> bool:
        now = int(self._clock())
        table = NOTIFICATIONS.c
        # By its own token, too: a store may go away after it took the claim and before it said so.
        mine = sa.or_(sa.and_(table.state == NotificationState.WAITING, table.due_at <= now), table.claim == token)
        values = {"state": NotificationState.SENDING, "claim": token, "due_at": now + CLAIM_S, "tries": one.tries + 1}
        with self._engine.begin() as connection:
            statement = NOTIFICATIONS.update().where(_is(one), mine)
            return connection.execute(statement.values(**values, changed_at=_now())).rowcount == 1

    def sent(self, claim: Claim) -> None:
        """The service took it."""
        self._mark(claim, NotificationState.SENT, "")

    def failed(self, claim: Claim, why: str) -> None:
        """It was not sent, and is not tried again."""
        self._mark(claim, NotificationState.FAILED, why)

    def unknown(self, claim: Claim, why: str) -> None:
        """It may have been sent, and is not tried again."""
        self._mark(claim, NotificationState.UNKNOWN, why)

    def set_back(self, claim: Claim, why: str, *, wait_s: float) -> None:
        """It was not sent, and is tried again after a while."""
        self._mark(claim, NotificationState.WAITING, why, due_at=int(self._clock() + wait_s))

    @outlasting
    def _mark(self, claim: Claim, state: NotificationState, why: str, *, due_at: int = 0) -> None:
        # Whose claim is over has no say in what was done since: it was claimed again, or given free by a person.
        mine = sa.and_(_is(claim.notification), NOTIFICATIONS.c.claim == claim.token)
        values = {"state": state, "detail": storable(why), "due_at": due_at, "changed_at": _now()}
        with self._engine.begin() as connection:
            connection.execute(NOTIFICATIONS.update().where(mine).values(**values))

    @outlasting
    def lapse(self) -> int:
        """Say of those whose claim is over that nobody knows of them; events are tried again. How many there were."""
        table = NOTIFICATIONS.c
        over = sa.and_(table.state == NotificationState.SENDING, table.due_at <= int(self._clock()))
        why = "its worker ended before it was known whether it was sent"
        unknown = {"state": NotificationState.UNKNOWN, "detail": why, "due_at": 0}
        again = {"state": NotificationState.WAITING, "detail": why, "due_at": 0}
        with self._engine.begin() as connection:
            of_kind = [
                connection.execute(NOTIFICATIONS.update().where(over, table.kind == kind).values(**values))
                for kind, values in ((RecipientKind.MESSAGE, unknown), (RecipientKind.EVENT, again))
            ]
        return sum(result.rowcount for result in of_kind)

    @outlasting
    def send_again(self, audit_id: str, name: str, *, even_sent: bool = False) -> int:
        """Have what failed, or nobody knows of, sent again because a person says so; how many those were.

        Args:
            audit_id: the audit.
            name: who is told.
            even_sent: whether what was sent is sent once more, too.
        """
        states = [NotificationState.FAILED, NotificationState.UNKNOWN]
        if even_sent:
            states.append(NotificationState.SENT)
        table, now = NOTIFICATIONS.c, int(self._clock())
        over = sa.and_(table.state == NotificationState.SENDING, table.due_at <= now)
        which = sa.and_(table.audit_id == audit_id, table.name == name, sa.or_(table.state.in_(states), over))
        values = {"state": NotificationState.WAITING, "tries": 0, "due_at": 0, "claim": None, "detail": ""}
        with self._engine.begin() as connection:
            return connection.execute(NOTIFICATIONS.update().where(which).values(**values, changed_at=_now())).rowcount

    @outlasting
    def listed(
        self, *, states: Iterable[NotificationState] = (), audit_id: str | None = None, limit: int = 100
    ) -> list[Notification]:
        """Notifications on record, the newest first. One whose claim is over is `unknown`, as it will be marked."""
        table, now = NOTIFICATIONS.c, int(self._clock())
        over = sa.and_(
            table.state == NotificationState.SENDING, table.due_at <= now, table.kind == RecipientKind.MESSAGE
        )
        wanted = list(states)
        statement = sa.select(NOTIFICATIONS).order_by(table.created_at.desc(), table.audit_id, table.recipient)
        if audit_id is not None:
            statement = statement.where(table.audit_id == audit_id)
        if wanted:
            is_wanted = sa.and_(table.state.in_(wanted), ~over)
            has_lapsed = over if NotificationState.UNKNOWN in wanted else sa.false()
            statement = statement.where(sa.or_(is_wanted, has_lapsed))
        with self._engine.connect() as connection:
            found = [_notification(row) for row in connection.execute(statement.limit(limit)).mappings()]
        return [_as_it_will_be(one, now) for one in found]


def _as_it_will_be(one: Notification, now: int) -> Notification:
    lapsed = one.state is NotificationState.SENDING and one.due_at <= now and one.kind is RecipientKind.MESSAGE
    return one._replace(state=NotificationState.UNKNOWN) if lapsed else one


def _is(one: Notification) -> sa.ColumnElement[bool]:
    table = NOTIFICATIONS.c
    same_event = sa.and_(table.audit_id == one.audit_id, table.occasion == one.occasion)
    return sa.and_(same_event, table.recipient == one.recipient)


def _notification(row: sa.RowMapping) -> Notification:
    values = {name: row[name] for name in Notification._fields}
    return Notification(**{**values, "kind": RecipientKind(row["kind"]), "state": NotificationState(row["state"])})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
