"""The record store: audits, the variant library, decisions and registrations, in SQLite or PostgreSQL.

Decisions and library rows are written once and never changed; an audit's row carries its state.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from proctor.domain.errors import StoreError
from proctor.runtime.audit_state import AuditRecord, AuditState
from proctor.runtime.record_tables import (
    AUDITS,
    DECISIONS,
    FIDELITIES,
    LIBRARY,
    LIBRARY_ORIGINS,
    METADATA,
    REGISTRATIONS,
)

__all__ = ["AuditRecord", "AuditState", "Records"]

#: SQLite's default limit of bound variables was 999 for many years; stay under it.
_CHUNK = 900
#: A writer may wait this long for another process' transaction.
_LOCK_TIMEOUT_S = 30.0


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Records:
    """The record store behind an SQLAlchemy URL."""

    def __init__(self, url: str) -> None:
        connect_args: dict[str, Any] = {}
        if url.startswith("sqlite:///"):
            Path(url.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
            connect_args["timeout"] = _LOCK_TIMEOUT_S
        self._engine = sa.create_engine(url, connect_args=connect_args)
        try:
            if url.startswith("sqlite:///"):
                with self._engine.connect() as connection:
                    # Readers (the command line) must not wait for a writer (a worker).
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
            self._create_tables()
        except sa.exc.SQLAlchemyError as error:
            raise StoreError(f"the record store {self._engine.url!r} cannot be opened: {error}") from error

    def _create_tables(self) -> None:
        try:
            METADATA.create_all(self._engine)
        except sa.exc.OperationalError:
            # Several workers start at once; the one that lost the race to create a table finds it there.
            METADATA.create_all(self._engine)

    def close(self) -> None:
        """Give back the connections."""
        self._engine.dispose()

    def create_audit(self, subject: str, suite: str, inputs: Mapping[str, Any]) -> AuditRecord:
        """Add the next audit of a subject (the key of registry, model, version and suite)."""
        with self._engine.begin() as connection:
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
                    created_at=_now(),
                )
            )
        return self.audit(audit_id)

    def latest_audit(self, subject: str) -> AuditRecord | None:
        """The newest audit of a subject."""
        statement = sa.select(AUDITS).where(AUDITS.c.subject == subject).order_by(AUDITS.c.ordinal.desc()).limit(1)
        with self._engine.connect() as connection:
            row = connection.execute(statement).mappings().first()
        return _record(row) if row is not None else None

    def audit(self, audit_id: str) -> AuditRecord:
        """One audit.

        Raises:
            StoreError: when there is none of that id.
        """
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(AUDITS).where(AUDITS.c.audit_id == audit_id)).mappings().first()
        if row is None:
            raise StoreError(f"there is no audit {audit_id!r} in the record store")
        return _record(row)

    def running_audits(self) -> list[AuditRecord]:
        """Audits that have not ended."""
        ended = [state.value for state in AuditState if state.ended]
        statement = sa.select(AUDITS).where(AUDITS.c.state.not_in(ended)).order_by(AUDITS.c.audit_id)
        with self._engine.connect() as connection:
            return [_record(row) for row in connection.execute(statement).mappings()]

    def audits(self, *, prefix: str = "", limit: int = 100) -> list[AuditRecord]:
        """Audits on record, the newest first: at most `limit`, and of those whose id begins with `prefix`."""
        newest = sa.select(AUDITS).order_by(AUDITS.c.created_at.desc(), AUDITS.c.audit_id.desc()).limit(limit)
        statement = newest.where(AUDITS.c.audit_id.startswith(prefix, autoescape=True))
        with self._engine.connect() as connection:
            return [_record(row) for row in connection.execute(statement).mappings()]

    def advance(
        self,
        audit_id: str,
        state: AuditState,
        *,
        expected: Sequence[AuditState],
        expected_inputs: Mapping[str, Any] | None = None,
        detail: str = "",
        inputs: Mapping[str, Any] | None = None,
    ) -> bool:
        """Move an audit to a state, if it still is in one of the expected ones; False when another was faster.

        A state may come back with other inputs: who writes `inputs` gives those that it read as `expected_inputs`, and
        is refused when another has written meanwhile.
        """
        values: dict[str, Any] = {"state": state, "detail": detail}
        if inputs is not None:
            values["inputs"] = _inputs_json(inputs)
        statement = AUDITS.update().where(AUDITS.c.audit_id == audit_id, AUDITS.c.state.in_(list(expected)))
        if expected_inputs is not None:
            statement = statement.where(AUDITS.c.inputs == _inputs_json(expected_inputs))
        with self._engine.begin() as connection:
            return connection.execute(statement.values(**values)).rowcount == 1

    def library_get(self, keys: Sequence[str]) -> dict[str, str]:
        """Rows of the variant library by key, as the JSON they were written in; keys without a row are left out."""
        found: dict[str, str] = {}
        with self._engine.connect() as connection:
            for chunk in _chunks(keys):
                statement = sa.select(LIBRARY.c.key, LIBRARY.c.row).where(LIBRARY.c.key.in_(chunk))
                for key, row in connection.execute(statement):
                    found[key] = row
        return found

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
        with self._engine.begin() as connection:
            connection.execute(
                LIBRARY.insert(),
                [{"key": key, "row": json.dumps(dict(row), sort_keys=True)} for key, row in rows.items()],
            )
            # A damaged row may have been deleted by hand, and its origin have stayed.
            for chunk in _chunks(list(rows)):
                connection.execute(LIBRARY_ORIGINS.delete().where(LIBRARY_ORIGINS.c.key.in_(chunk)))
            if origin is not None:
                written = {**origin, "created_at": _now()}
                connection.execute(LIBRARY_ORIGINS.insert(), [{"key": key, **written} for key in rows])

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

    def fidelity_rows(self, strategy: str, benchmark: str) -> dict[str, str]:
        """Rows of a strategy on a benchmark by key, as JSON, in the order of their keys."""
        statement = (
            sa.select(FIDELITIES.c.key, FIDELITIES.c.row)
            .where(FIDELITIES.c.strategy == strategy, FIDELITIES.c.benchmark == benchmark)
            .order_by(FIDELITIES.c.key)
        )
        with self._engine.connect() as connection:
            return {found.key: found.row for found in connection.execute(statement)}

    def decide(self, audit_id: str, event: Mapping[str, Any]) -> bool:
        """Record the decision of an audit; False when it has one already, which then stays."""
        return self._insert_once(
            DECISIONS, audit_id=audit_id, event=json.dumps(dict(event), sort_keys=True), decided_at=_now()
        )

    def decision(self, audit_id: str) -> dict[str, Any] | None:
        """The decision event of an audit, as plain data."""
        with self._engine.connect() as connection:
            event = connection.scalar(sa.select(DECISIONS.c.event).where(DECISIONS.c.audit_id == audit_id))
        return json.loads(event) if event is not None else None

    def register(self, audit_id: str, registry_version: str) -> bool:
        """Record under which registry version a decision stands; first write wins."""
        return self._insert_once(REGISTRATIONS, audit_id=audit_id, registry_version=registry_version)

    def registration(self, audit_id: str) -> str | None:
        """The registry version that holds an audit's decision."""
        with self._engine.connect() as connection:
            version: str | None = connection.scalar(
                sa.select(REGISTRATIONS.c.registry_version).where(REGISTRATIONS.c.audit_id == audit_id)
            )
        return version

    def _insert_once(self, table: sa.Table, **values: Any) -> bool:
        try:
            with self._engine.begin() as connection:
                connection.execute(table.insert().values(**values))
            return True
        except IntegrityError:
            return False


def _inputs_json(inputs: Mapping[str, Any]) -> str:
    return json.dumps(dict(inputs), sort_keys=True)


def _chunks(keys: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(keys), _CHUNK):
        yield list(keys[start : start + _CHUNK])


def _record(row: sa.RowMapping) -> AuditRecord:
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
