"""The decision log in the record store: adding an entry within a transaction, and reading what is there.

Every writer first writes the row that holds the log's end, and so waits for whoever did before it until that one's
transaction is over: under SQLite that takes the database's lock, under PostgreSQL the row's. So there is one chain,
without a lock of its own, and a program that may only insert into the log and update its end can write it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from proctor.domain.errors import StoreError
from proctor.domain.record.attestation import STATEMENT_PAYLOAD, signed_bytes, statement_bytes
from proctor.domain.record.entry import Entry, EntryKind, LoggedEntry, Signer, text_digest
from proctor.runtime.records.tables import AUDITS, DECISION_LOG, DECISION_LOG_HEAD, DECISIONS, STANDINGS

logger = logging.getLogger(__name__)

#: Entries, or decisions, in memory at a time where all are gone through.
_PAGE: Final = 200
#: States of an audit that it reaches by a decision alone.
_AFTER_DECISION: Final = ("registering", "decided")


class SigningKey(Protocol):
    """A key that signs entries."""

    @property
    def signer(self) -> Signer:
        """Whose signatures these are."""
        ...

    def sign(self, message: bytes) -> str:
        """The signature over a message, in base64."""
        ...


class NoKey(NamedTuple):
    """There is no key to sign with."""

    why: str


class Head(NamedTuple):
    """The end of a log: how many entries it has, and the digest of the last."""

    sequence: int
    digest: str | None


class DecidedRow(NamedTuple):
    """A decision as its own row has it."""

    audit_id: str
    event: str
    decided_at: str


def append(
    connection: sa.Connection,
    kind: EntryKind,
    audit_id: str,
    content: Mapping[str, Any],
    *,
    time: str,
    key: SigningKey | NoKey,
) -> Entry:
    """Add an entry to the log, as a part of the transaction that writes what it tells of; the entry as it stands there.

    An entry that cannot be signed is written all the same, and says why: a decision must not wait for a key.

    Raises:
        ValueError: the content has no canonical JSON.
        StoreError: the log has no end to add to: its row was deleted, or changed.
    """
    last = hold_log(connection)
    sequence = last.sequence + 1
    entry = Entry(
        sequence=sequence,
        previous=last.digest,
        time=time,
        kind=kind,
        audit_id=audit_id,
        content=dict(content),
        signer=None,
    )
    entry, signature = _signed(entry, key)
    text = entry.text()
    digest = text_digest(text)
    row = DECISION_LOG.insert().values(
        sequence=sequence, audit_id=audit_id, entry=text, digest=digest, signature=signature
    )
    try:
        connection.execute(row)
    except IntegrityError:
        raise StoreError(
            f"the decision log has an entry {sequence} already, and its end (decision_log_head) is said to be before "
            "it, so nothing is decided: somebody changed the store (`proctor record verify`)"
        ) from None
    head = DECISION_LOG_HEAD
    connection.execute(head.update().where(head.c.id == 1).values(sequence=sequence, digest=digest))
    return entry


def hold_log(connection: sa.Connection) -> Head:
    """Keep everybody else from adding to the log until the transaction ends; where it ends now.

    Raises:
        StoreError: the log has no end to add to: its row was deleted.
    """
    head = DECISION_LOG_HEAD
    # A write, and the same values: reading locks nothing.
    held = connection.execute(head.update().where(head.c.id == 1).values(sequence=head.c.sequence))
    if held.rowcount != 1:
        raise StoreError(
            "the decision log has lost the row that says where it ends (decision_log_head), so nothing is decided: "
            "bring back a backup, and look who deleted it"
        )
    return Head(*connection.execute(sa.select(head.c.sequence, head.c.digest).where(head.c.id == 1)).one())


def _signed(entry: Entry, key: SigningKey | NoKey) -> tuple[Entry, str | None]:
    why = key.why if isinstance(key, NoKey) else ""
    if not isinstance(key, NoKey):
        try:
            named = entry.model_copy(update={"signer": key.signer})
            return named, key.sign(signed_bytes(STATEMENT_PAYLOAD, statement_bytes(named.plain())))
        except Exception as error:
            why = f"{type(error).__name__}: {error}"[:300]
    logger.warning("entry %d of the decision log, on audit %s, is not signed: %s", entry.sequence, entry.audit_id, why)
    return entry.model_copy(update={"unsigned_because": why}), None


def logged_on(connection: sa.Connection, audit_id: str) -> list[LoggedEntry]:
    """The entries on one audit, in the log's order, as a transaction sees them."""
    found = sa.select(DECISION_LOG).where(DECISION_LOG.c.audit_id == audit_id).order_by(DECISION_LOG.c.sequence)
    rows = connection.execute(found).all()
    return [LoggedEntry(row.sequence, row.entry, row.digest, row.signature) for row in rows]


class LogView:
    """The log and the decisions as they were at one moment, however long the reading takes."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def head(self) -> Head | None:
        """What the row says that holds the log's end; None where it is gone."""
        head = DECISION_LOG_HEAD
        row = self._connection.execute(sa.select(head.c.sequence, head.c.digest).where(head.c.id == 1)).first()
        return None if row is None else Head(*row)

    def entries(self) -> Iterator[LoggedEntry]:
        """Every entry in the log's order, some at a time."""
        after: int | None = None
        while True:
            page = sa.select(DECISION_LOG).order_by(DECISION_LOG.c.sequence).limit(_PAGE)
            if after is not None:
                page = page.where(DECISION_LOG.c.sequence > after)
            rows = self._connection.execute(page).all()
            for row in rows:
                yield LoggedEntry(row.sequence, row.entry, row.digest, row.signature)
            if len(rows) < _PAGE:
                return
            after = rows[-1].sequence

    def newest(self, limit: int) -> list[LoggedEntry]:
        """The last entries, the newest first."""
        found = sa.select(DECISION_LOG).order_by(DECISION_LOG.c.sequence.desc()).limit(limit)
        rows = self._connection.execute(found).all()
        return [LoggedEntry(row.sequence, row.entry, row.digest, row.signature) for row in rows]

    def of_audit(self, audit_id: str) -> list[LoggedEntry]:
        """The entries on one audit, in the log's order."""
        return logged_on(self._connection, audit_id)

    def after(self, sequence: int, most: int) -> list[LoggedEntry]:
        """The entries behind a number, in the log's order, so many of them."""
        page = sa.select(DECISION_LOG).where(DECISION_LOG.c.sequence > sequence)
        rows = self._connection.execute(page.order_by(DECISION_LOG.c.sequence).limit(most)).all()
        return [LoggedEntry(row.sequence, row.entry, row.digest, row.signature) for row in rows]

    def decisions(self) -> Iterator[DecidedRow]:
        """Every decision by its own row, some at a time."""
        after = ""
        while True:
            page = sa.select(DECISIONS).where(DECISIONS.c.audit_id > after).order_by(DECISIONS.c.audit_id).limit(_PAGE)
            rows = self._connection.execute(page).all()
            for row in rows:
                yield DecidedRow(row.audit_id, row.event, row.decided_at)
                after = row.audit_id
            if len(rows) < _PAGE:
                return

    def standings(self) -> Iterator[sa.RowMapping]:
        """Every row of what holds, some at a time and unread."""
        after = ""
        while True:
            page = sa.select(STANDINGS).where(STANDINGS.c.audit_id > after).order_by(STANDINGS.c.audit_id).limit(_PAGE)
            rows = self._connection.execute(page).mappings().all()
            yield from rows
            if len(rows) < _PAGE:
                return
            after = rows[-1]["audit_id"]

    def not_logged(self) -> list[DecidedRow]:
        """Decisions that have no entry, in their order."""
        logged = sa.select(DECISION_LOG.c.sequence).where(DECISION_LOG.c.audit_id == DECISIONS.c.audit_id)
        order = (DECISIONS.c.decided_at, DECISIONS.c.audit_id)
        rows = self._connection.execute(sa.select(DECISIONS).where(~logged.exists()).order_by(*order)).all()
        return [DecidedRow(row.audit_id, row.event, row.decided_at) for row in rows]

    def without_decision(self) -> list[str]:
        """Audits whose state says that they are decided, and which have no decision."""
        decided = sa.select(DECISIONS.c.audit_id).where(DECISIONS.c.audit_id == AUDITS.c.audit_id)
        lost = sa.select(AUDITS.c.audit_id).where(AUDITS.c.state.in_(_AFTER_DECISION), ~decided.exists())
        return list(self._connection.scalars(lost.order_by(AUDITS.c.audit_id)))


@contextmanager
def log_view(engine: sa.Engine) -> Iterator[LogView]:
    """A view of one moment: what is decided meanwhile is not seen."""
    postgresql = engine.dialect.name == "postgresql"
    with engine.connect() as connection:
        if postgresql:
            connection.execution_options(isolation_level="REPEATABLE READ")
        else:
            # Python's driver begins no transaction for what only reads.
            connection.exec_driver_sql("BEGIN")
        try:
            yield LogView(connection)
        finally:
            connection.rollback()
