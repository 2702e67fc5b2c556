"""The record store: audits, the variant library, decisions and registrations, in SQLite or PostgreSQL.

Decisions and library rows are written once and never changed; an audit's row carries its state.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError

from proctor.domain.action import Action
from proctor.domain.errors import NewerVersionError, StoreError
from proctor.domain.measure import Measured
from proctor.domain.problems import visible
from proctor.domain.record.entry import EntryKind, LoggedEntry, decision_content
from proctor.domain.record.sign_off import ApprovalTerms
from proctor.runtime.private import prepare_database
from proctor.runtime.records.actions import Actions, note
from proctor.runtime.records.audit_list import AuditList, of_event, of_inputs, of_suite
from proctor.runtime.records.audit_state import AuditOnRecord, AuditRecord, AuditState, UnreadableAudit
from proctor.runtime.records.audited_versions import AuditedVersions
from proctor.runtime.records.baselines import Baselines
from proctor.runtime.records.costs import Costs
from proctor.runtime.records.decision_log import LogView, NoKey, SigningKey, append, hold_log, log_view
from proctor.runtime.records.deployable import DeployableVersions
from proctor.runtime.records.engine import (
    AWAY_WAITS_S,
    is_locked,
    is_passing,
    note_wait,
    open_engine,
    outlasting,
    said,
)
from proctor.runtime.records.measures import Measures, add_measure
from proctor.runtime.records.outbox import Outbox
from proctor.runtime.records.requests import AuditRequests, take
from proctor.runtime.records.schema import prepare
from proctor.runtime.records.standings import Standings, note_decision
from proctor.runtime.records.tables import (
    AUDITS,
    DECISIONS,
    FIDELITIES,
    LIBRARY,
    LIBRARY_ORIGINS,
    REGISTRATIONS,
    started_by,
)
from proctor.runtime.records.words import MAX_DETAIL_CHARACTERS as MAX_DETAIL_CHARACTERS
from proctor.runtime.records.words import storable
from proctor.runtime.retrying import retrying

__all__ = ["AuditRecord", "AuditState", "Records", "UnreadableAudit"]

logger = logging.getLogger(__name__)

#: SQLite's default limit of bound variables was 999 for many years; stay under it.
_CHUNK = 900
#: Audits in memory at a time where all are gone through.
_PAGE = 50
#: Of a decision whose report lies nowhere.
_NO_FILES: Final[Mapping[str, str]] = MappingProxyType({})
_NO_KEY_GIVEN: Final = NoKey("whoever wrote it had no key")
_NO_END: Final = ApprovalTerms()
_STATES = frozenset(state.value for state in AuditState)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _finely() -> str:
    # Versions stand in the order of their decisions, and two may be decided in one second.
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Records:
    """The record store behind an SQLAlchemy URL."""

    def __init__(self, url: str, *, migrate: bool = True) -> None:
        """Open a store, and bring its tables to this program's version where that may be done here."""
        if url.startswith("sqlite:///"):
            _prepare_file(url)
        self._engine = open_engine(url)
        self.requests = AuditRequests(self._engine)
        self.standings = Standings(self._engine)
        self.list = AuditList(self._engine)
        self.actions = Actions(self._engine)
        self.versions = AuditedVersions(self._engine, self.standings)
        self.deployable = DeployableVersions(self._engine, self.versions)
        self.measures = Measures(self._engine)
        self.baselines = Baselines(self._engine)
        self.costs = Costs(self._engine)
        self.outbox = Outbox(self._engine)
        with ExitStack() as opening:
            opening.callback(self._engine.dispose)
            try:
                self._open(migrate)
            except sa.exc.SQLAlchemyError as error:
                raise StoreError(f"the record store {self._engine.url!r} cannot be opened: {error}") from error
            opening.pop_all()

    @outlasting
    def _open(self, migrate: bool) -> None:
        if self._engine.dialect.name == "sqlite":
            # SQLite waits for a lock where a statement begins, and not where the way of writing changes: of two workers
            # that meet at a new file, one is refused at once.
            retrying(AWAY_WAITS_S, on=is_locked, note=note_wait)(self._let_readers_pass)
        prepare(self._engine, migrate=migrate)

    def _let_readers_pass(self) -> None:
        """Readers (the command line) must not wait for a writer (a worker)."""
        with self._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=WAL")

    def close(self) -> None:
        """Give back the connections."""
        self._engine.dispose()

    def ping(self) -> None:
        """Ask the store for nothing.

        Raises:
            StoreError: when it does not answer.
        """
        try:
            with self._engine.connect() as connection:
                connection.execute(sa.select(AUDITS.c.audit_id).limit(1))
        except DBAPIError as error:
            raise StoreError(f"the record store does not answer: {said(error)}") from error

    def create_audit(
        self,
        subject: str,
        suite: str,
        inputs: Mapping[str, Any],
        *,
        ordinal: int | None = None,
        request: str | None = None,
        action: Action | None = None,
    ) -> AuditRecord:
        """Add the next audit of a subject, as the one of a request where one is named, with the action that began it.

        Args:
            subject: what is audited.
            suite: as it is written.
            inputs: what the router keeps beside it.
            ordinal: its number among the subject's audits, for who has looked which was the last; None is the next.
            request: whose audit it becomes.
            action: what began it.

        Not given twice by itself: a transaction may have been committed whose end was not heard of, and there would be
        two audits.

        Raises:
            IntegrityError: when the subject has an audit of that number.
            StoreError: when the store went away meanwhile. Whether the audit is on record is not known then.
            RequestTakenError: when the request has an audit already; there is no other then.
        """
        try:
            return self.audit(self._create_audit(subject, suite, inputs, ordinal, request, action))
        except DBAPIError as error:
            if not is_passing(error):
                raise
            raise StoreError(
                f"the record store went away while an audit was put on record ({said(error)}): give the same command "
                "again, which goes on with the audit if it is there"
            ) from error

    def _create_audit(
        self,
        subject: str,
        suite: str,
        inputs: Mapping[str, Any],
        ordinal: int | None,
        request: str | None,
        action: Action | None,
    ) -> str:
        now = _now()
        with self._engine.begin() as connection:
            if ordinal is None:
                last = connection.scalar(sa.select(sa.func.max(AUDITS.c.ordinal)).where(AUDITS.c.subject == subject))
                ordinal = (last or 0) + 1
            audit_id = f"{subject}-{ordinal}"
            connection.execute(
                AUDITS.insert().values(
                    audit_id=audit_id,
                    subject=subject,
                    ordinal=ordinal,
                    suite=suite,
                    inputs=_inputs_json(inputs),
                    state=AuditState.CREATED,
                    detail="",
                    created_at=now,
                    **of_suite(suite),
                    **of_inputs(inputs),
                )
            )
            if action is not None:
                note(connection, audit_id, action, at=now)
            if request is not None:
                take(connection, request, audit_id)
        return audit_id

    @outlasting
    def latest_audit(self, subject: str) -> AuditRecord | None:
        """The newest audit of a subject.

        Raises:
            NewerVersionError: when it needs a newer Proctor.
        """
        statement = sa.select(AUDITS).where(AUDITS.c.subject == subject).order_by(AUDITS.c.ordinal.desc()).limit(1)
        with self._engine.connect() as connection:
            row = connection.execute(statement).mappings().first()
        return _record(row) if row is not None else None

    @outlasting
    def audit(self, audit_id: str) -> AuditRecord:
        """One audit.

        Raises:
            StoreError: when there is none of that id.
            NewerVersionError: when it needs a newer Proctor.
        """
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(AUDITS).where(AUDITS.c.audit_id == audit_id)).mappings().first()
        if row is None:
            raise StoreError(f"there is no audit {audit_id!r} in the record store")
        return _record(row)

    @outlasting
    def running_audits(self) -> list[AuditRecord]:
        """Audits that have not ended, without those that need a newer Proctor: they are another's to take on."""
        ended = [state.value for state in AuditState if state.ended]
        statement = sa.select(AUDITS).where(AUDITS.c.state.not_in(ended)).order_by(AUDITS.c.audit_id)
        with self._engine.connect() as connection:
            found = [_record_or_unreadable(row) for row in connection.execute(statement).mappings()]
        for unreadable in found:
            if isinstance(unreadable, UnreadableAudit):
                logger.warning("audit %s is left to others: %s", unreadable.audit_id, unreadable.why)
        return [record for record in found if isinstance(record, AuditRecord)]

    @outlasting
    def audits(
        self, *, prefix: str = "", limit: int = 100, skip: int = 0, submitter: str | None = None
    ) -> list[AuditRecord | UnreadableAudit]:
        """Audits on record, the newest first: at most `limit` behind the first `skip`.

        Of those whose id begins with `prefix`, and which `submitter` started last, where one is named. What needs a
        newer Proctor is named, and does not stand in the way of the others.
        """
        newest = sa.select(AUDITS).order_by(AUDITS.c.created_at.desc(), AUDITS.c.audit_id.desc())
        statement = newest.where(AUDITS.c.audit_id.startswith(prefix, autoescape=True)).limit(limit).offset(skip)
        if submitter is not None:
            statement = statement.where(started_by(submitter))
        with self._engine.connect() as connection:
            return [_record_or_unreadable(row) for row in connection.execute(statement).mappings()]

    def each_audit(self) -> Iterator[AuditOnRecord]:
        """Every audit with its decision, as text and unread, some at a time. For whoever must not miss one."""
        statement = (
            sa.select(AUDITS, DECISIONS.c.event, DECISIONS.c.decided_at)
            .outerjoin(DECISIONS, DECISIONS.c.audit_id == AUDITS.c.audit_id)
            .order_by(AUDITS.c.audit_id)
            .limit(_PAGE)
        )
        last = ""
        while True:
            with self._engine.connect() as connection:
                rows = list(connection.execute(statement.where(AUDITS.c.audit_id > last)).mappings())
            for row in rows:
                yield AuditOnRecord(**{name: row[name] for name in AuditOnRecord._fields})
                last = row["audit_id"]
            if len(rows) < _PAGE:
                return

    @outlasting
    def on_record(self, audit_id: str) -> AuditOnRecord | None:
        """An audit with its decision, as text and unread; None where there is none of that id."""
        joined = sa.select(AUDITS, DECISIONS.c.event, DECISIONS.c.decided_at).outerjoin(
            DECISIONS, DECISIONS.c.audit_id == AUDITS.c.audit_id
        )
        with self._engine.connect() as connection:
            row = connection.execute(joined.where(AUDITS.c.audit_id == audit_id)).mappings().first()
        return None if row is None else AuditOnRecord(**{name: row[name] for name in AuditOnRecord._fields})

    @outlasting
    def advance(
        self,
        audit_id: str,
        state: AuditState,
        *,
        expected: Sequence[AuditState],
        expected_inputs: Mapping[str, Any] | None = None,
        detail: str = "",
        inputs: Mapping[str, Any] | None = None,
        action: Action | None = None,
    ) -> bool:
        """Move an audit to a state, if it still is in one of the expected ones; False when another was faster.

        A state may come back with other inputs: who writes `inputs` gives those that it read as `expected_inputs`, and
        is refused when another has written meanwhile. False may also be said of a move that was made, where the store
        went away before it said so: the audit is then taken on by the reconciler. `action` is of who moves it, where
        that is a caller, and is put on record with a move that is made.
        """
        values: dict[str, Any] = {"state": state, "detail": storable(detail)}
        if inputs is not None:
            values |= {"inputs": _inputs_json(inputs), **of_inputs(inputs)}
        statement = AUDITS.update().where(AUDITS.c.audit_id == audit_id, AUDITS.c.state.in_(list(expected)))
        if expected_inputs is not None:
            statement = statement.where(AUDITS.c.inputs == _inputs_json(expected_inputs))
        with self._engine.begin() as connection:
            moved = connection.execute(statement.values(**values)).rowcount == 1
            if moved and action is not None:
                note(connection, audit_id, action, at=_now())
        return moved

    @outlasting
    def library_get(self, keys: Sequence[str]) -> dict[str, str]:
        """Rows of the variant library by key, as the JSON they were written in; keys without a row are left out."""
        found: dict[str, str] = {}
        with self._engine.connect() as connection:
            for chunk in _chunks(keys):
                statement = sa.select(LIBRARY.c.key, LIBRARY.c.row).where(LIBRARY.c.key.in_(chunk))
                for key, row in connection.execute(statement):
                    found[key] = row
        return found

    @outlasting
    def library_put(self, rows: Mapping[str, Mapping[str, Any]], origin: Mapping[str, str] | None = None) -> int:
        """Append rows to the variant library; a key that is there already stays as it is. Returns how many were new.

        Args:
            rows: rows by key.
            origin: what made them: `source`, `proctor`, `gate` and `file`, kept beside each row that is new.
        """
        there = self.library_get(list(rows))
        new = {key: row for key, row in rows.items() if key not in there}
        if not new:
            return 0
        try:
            self._library_append(new, origin)
            return len(new)
        except IntegrityError:
            # Another worker wrote one of the keys meanwhile: fall back to one by one, first write wins.
            return sum(self._library_put_one(key, row, origin) for key, row in new.items())

    @outlasting
    def library_origins(self, keys: Sequence[str]) -> dict[str, dict[str, str]]:
        """What made the rows of these keys, and when (`created_at`); rows of before this was kept are left out."""
        found: dict[str, dict[str, str]] = {}
        with self._engine.connect() as connection:
            for chunk in _chunks(keys):
                statement = sa.select(LIBRARY_ORIGINS).where(LIBRARY_ORIGINS.c.key.in_(chunk))
                for row in connection.execute(statement).mappings():
                    found[row["key"]] = {name: value for name, value in row.items() if name != "key"}
        return found

    def _library_append(self, rows: Mapping[str, Mapping[str, Any]], origin: Mapping[str, str] | None) -> None:
        # All writers in one order: two that held rows which the other waits for would be a deadlock.
        keys = sorted(rows)
        with self._engine.begin() as connection:
            connection.execute(
                LIBRARY.insert(), [{"key": key, "row": json.dumps(dict(rows[key]), sort_keys=True)} for key in keys]
            )
            # A damaged row may have been deleted by hand, and its origin have stayed.
            for chunk in _chunks(keys):
                connection.execute(LIBRARY_ORIGINS.delete().where(LIBRARY_ORIGINS.c.key.in_(chunk)))
            if origin is not None:
                written = {**origin, "created_at": _now()}
                connection.execute(LIBRARY_ORIGINS.insert(), [{"key": key, **written} for key in keys])

    def _library_put_one(self, key: str, row: Mapping[str, Any], origin: Mapping[str, str] | None) -> bool:
        try:
            self._library_append({key: row}, origin)
            return True
        except IntegrityError:
            return False

    def fidelity_put(self, key: str, strategy: str, benchmark: str, row: Mapping[str, Any]) -> bool:
        """Record what rewording by a strategy cost a clean model; False when the key has a row, which then stays."""
        return self._insert_once(
            FIDELITIES,
            key=key,
            strategy=strategy,
            benchmark=benchmark,
            row=json.dumps(dict(row), sort_keys=True),
            created_at=_now(),
        )

    @outlasting
    def fidelity_rows(self, strategy: str, benchmark: str) -> dict[str, str]:
        """Rows of a strategy on a benchmark by key, as JSON, in the order of their keys."""
        statement = (
            sa.select(FIDELITIES.c.key, FIDELITIES.c.row)
            .where(FIDELITIES.c.strategy == strategy, FIDELITIES.c.benchmark == benchmark)
            .order_by(FIDELITIES.c.key)
        )
        with self._engine.connect() as connection:
            return {found.key: found.row for found in connection.execute(statement)}

    @outlasting
    def decide(
        self,
        audit_id: str,
        event: Mapping[str, Any],
        *,
        files: Mapping[str, str] = _NO_FILES,
        key: SigningKey | NoKey = _NO_KEY_GIVEN,
        approval: ApprovalTerms = _NO_END,
        measured: Measured | None = None,
    ) -> bool:
        """Record the decision of an audit and its entry in the decision log; False when it has one, which then stays.

        Row, entry, what holds by it and its figures are one transaction: there is never one without the others.

        Args:
            audit_id: the audit.
            event: the decision event, as it goes out.
            files: names of what lies in the report's folder, each with its digest.
            key: what signs the entry.
            approval: when an approval ends by itself.
            measured: the audit's figures, for comparing it with others.

        Raises:
            StoreError: when the log has lost its end, and nothing can be added.
        """
        now = _now()
        content = decision_content(event, decided_at=now, files=files, approval=approval.plain())
        with self._engine.connect() as connection:
            try:
                # First: of two deciders of an audit the second fails here, before it holds up the log.
                connection.execute(
                    DECISIONS.insert().values(
                        audit_id=audit_id, event=json.dumps(dict(event), sort_keys=True), decided_at=now
                    )
                )
            except IntegrityError:
                return False
            if measured is not None:
                add_measure(connection, audit_id, measured, decided_at=_finely())
            note_decision(connection, append(connection, EntryKind.DECISION, audit_id, content, time=now, key=key), key)
            connection.execute(AUDITS.update().where(AUDITS.c.audit_id == audit_id).values(**of_event(event)))
            connection.commit()
        return True

    @outlasting
    def take_in(self, key: SigningKey | NoKey) -> list[str]:
        """Add an entry, marked so, for every decision that has none; the audits whose decisions these are.

        A Proctor of before there was a log leaves such decisions while a deployment is upgraded.

        Raises:
            StoreError: when a decision cannot be read, or the log has lost its end. Nothing is added then.
        """
        now, taken = _now(), list[str]()
        with self._engine.begin() as connection:
            hold_log(connection)
            for row in LogView(connection).not_logged():
                try:
                    event = json.loads(row.event)
                    content = decision_content(event, decided_at=row.decided_at, files={}, taken_in=True)
                    entry = append(connection, EntryKind.DECISION, row.audit_id, content, time=now, key=key)
                    note_decision(connection, entry, key)
                except (ValueError, AttributeError) as error:
                    raise StoreError(f"the decision of audit {row.audit_id} cannot be read: {error}") from None
                taken.append(row.audit_id)
        return taken

    @outlasting
    def logged(self, audit_id: str) -> list[LoggedEntry]:
        """What the decision log has of an audit, in its order."""
        with log_view(self._engine) as view:
            return view.of_audit(audit_id)

    @contextmanager
    def log_view(self) -> Iterator[LogView]:
        """The decision log and the decisions at one moment.

        Raises:
            StoreError: when the store goes away meanwhile.
        """
        try:
            with log_view(self._engine) as view:
                yield view
        except DBAPIError as error:
            raise StoreError(f"the record store cannot be read: {said(error)}") from error

    @outlasting
    def decision(self, audit_id: str) -> dict[str, Any] | None:
        """The decision event of an audit, as plain data."""
        with self._engine.connect() as connection:
            event = connection.scalar(sa.select(DECISIONS.c.event).where(DECISIONS.c.audit_id == audit_id))
        return json.loads(event) if event is not None else None

    def register(self, audit_id: str, registry_version: str) -> bool:
        """Record under which registry version a decision stands; first write wins."""
        return self._insert_once(REGISTRATIONS, audit_id=audit_id, registry_version=registry_version)

    @outlasting
    def registration(self, audit_id: str) -> str | None:
        """The registry version that holds an audit's decision."""
        with self._engine.connect() as connection:
            version: str | None = connection.scalar(
                sa.select(REGISTRATIONS.c.registry_version).where(REGISTRATIONS.c.audit_id == audit_id)
            )
        return version

    @outlasting
    def _insert_once(self, table: sa.Table, **values: Any) -> bool:
        try:
            with self._engine.begin() as connection:
                connection.execute(table.insert().values(**values))
            return True
        except IntegrityError:
            return False


def _prepare_file(url: str) -> None:
    name = sa.make_url(url).database or ":memory:"
    if name != ":memory:" and not name.startswith("file:"):
        try:
            prepare_database(Path(name))
        except OSError as error:
            raise StoreError(f"the record store {name} cannot be opened: {error.strerror}") from error


def _inputs_json(inputs: Mapping[str, Any]) -> str:
    return json.dumps(dict(inputs), sort_keys=True)


def _chunks(keys: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(keys), _CHUNK):
        yield list(keys[start : start + _CHUNK])


def _record_or_unreadable(row: sa.RowMapping) -> AuditRecord | UnreadableAudit:
    try:
        return _record(row)
    except NewerVersionError as error:
        return UnreadableAudit(row["audit_id"], row["created_at"], str(error))


def _record(row: sa.RowMapping) -> AuditRecord:
    if row["state"] not in _STATES:
        raise NewerVersionError(
            f"audit {row['audit_id']} needs a newer Proctor: its state is {visible(row['state'])}, which this one does "
            "not know"
        )
    return AuditRecord(
        audit_id=row["audit_id"],
        subject=row["subject"],
        ordinal=row["ordinal"],
        suite=row["suite"],
        inputs_json=row["inputs"],
        state=AuditState(row["state"]),
        detail=row["detail"],
        created_at=row["created_at"],
    )
