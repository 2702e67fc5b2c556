"""Audits that were asked for by a registry, or under a caller's key: on record before anybody is told so, each once.

A request's key is its identity (registry, model, version and suite), and a unique one: however many events, gateways
and reconcilers ask, there is one row, and one audit. The audit's row and its id in the request are written in one
transaction (`Records.create_audit`), so whoever dies in between leaves neither.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from proctor.domain.errors import ProctorError, StoreError
from proctor.runtime.records.engine import outlasting, said
from proctor.runtime.records.tables import AUDIT_REQUESTS, REGISTRY_CURSORS
from proctor.runtime.records.together import Together
from proctor.runtime.records.words import storable

#: SQLite's default limit of bound variables was 999 for many years.
_CHUNK: Final = 400


class RequestTakenError(ProctorError):
    """Another has begun the audit of a request meanwhile; nothing was put on record."""


class RequestState(StrEnum):
    """What became of a request."""

    REQUESTED = "requested"
    """Waits for a gateway that has its suite."""
    STARTED = "started"
    """Its audit is on record, which the router takes on whether it was told or not."""
    REFUSED = "refused"
    """It cannot be started as it is; `detail` says why."""
    SKIPPED = "skipped"
    """The registry says by now that no rule is of it."""


class NewRequest(NamedTuple):
    """An audit that is asked for."""

    key: str
    registry: str
    model: str
    version: str
    suite_digest: str
    origin: str
    facts: dict[str, Any] | None
    """What the event said of the version; None where the registry is to be asked."""
    suite_id: str = ""
    """Empty where it does not matter: no version waits for it."""


class AuditRequest(NamedTuple):
    """The same, as it is on record."""

    key: str
    registry: str
    model: str
    version: str
    suite_digest: str
    origin: str
    facts: dict[str, Any] | None
    state: RequestState
    detail: str
    audit_id: str | None
    due_at: int
    """When it is looked at next, in seconds since 1970."""
    created_at: str
    suite_id: str = ""


class AuditRequests:
    """The requests of a record store."""

    def __init__(self, engine: sa.Engine, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._clock = clock
        self._together = Together(self._add)

    def add(self, requests: Sequence[NewRequest]) -> frozenset[str]:
        """Put those on record that are not there yet, all or none; returns the keys of those that were new.

        What threads ask for at once is one transaction. Not patient with a store that is away: the sender of an event
        asks again, and others wait meanwhile.

        Raises:
            StoreError: when the store does not take them.
        """
        return self._together(requests) & {one.key for one in requests} if requests else frozenset()

    def _add(self, requests: Sequence[NewRequest]) -> frozenset[str]:
        insert = postgresql.insert if self._engine.dialect.name == "postgresql" else sqlite.insert
        statement = (
            insert(AUDIT_REQUESTS).on_conflict_do_nothing(index_elements=["key"]).returning(AUDIT_REQUESTS.c.key)
        )
        # All writers in one order: two that waited for each other's rows would be a deadlock.
        rows = [self._row(one) for one in sorted({one.key: one for one in requests}.values(), key=lambda one: one.key)]
        try:
            with self._engine.begin() as connection:
                # Which rows it was, only what comes back says on every database.
                return frozenset(key for row in rows for key in connection.scalars(statement.values(**row)))
        except DBAPIError as error:
            raise StoreError(f"the record store did not take a request for an audit: {said(error)}") from error

    def _row(self, one: NewRequest) -> dict[str, Any]:
        texts = {"model": storable(one.model), "version": storable(one.version), "facts": _facts_json(one.facts)}
        state = {"state": RequestState.REQUESTED, "detail": "", "due_at": 0, "audit_id": None}
        created = datetime.now(UTC).isoformat(timespec="seconds")
        return {**one._asdict(), **texts, **state, "created_at": created}

    @outlasting
    def find(self, keys: Iterable[str]) -> dict[str, AuditRequest]:
        """Requests by their keys; those that are not there are left out."""
        wanted, found = sorted(set(keys)), dict[str, AuditRequest]()
        with self._engine.connect() as connection:
            for start in range(0, len(wanted), _CHUNK):
                chunk = wanted[start : start + _CHUNK]
                rows = connection.execute(sa.select(AUDIT_REQUESTS).where(AUDIT_REQUESTS.c.key.in_(chunk)))
                found |= {row["key"]: _request(row) for row in rows.mappings()}
        return found

    @outlasting
    def listed(self, *, limit: int = 100) -> list[AuditRequest]:
        """Requests, the newest first."""
        newest = sa.select(AUDIT_REQUESTS).order_by(AUDIT_REQUESTS.c.created_at.desc(), AUDIT_REQUESTS.c.key)
        with self._engine.connect() as connection:
            return [_request(row) for row in connection.execute(newest.limit(limit)).mappings()]

    @outlasting
    def claim(self, suite_digests: Sequence[str], *, hold_s: float, most: int = 1) -> list[AuditRequest]:
        """The requests that have waited longest, for this process alone for so many seconds.

        Args:
            suite_digests: the suites that this process has.
            hold_s: after which another may take them, should this process be gone.
            most: how many.
        """
        now = int(self._clock())
        waits = sa.and_(
            AUDIT_REQUESTS.c.state == RequestState.REQUESTED,
            AUDIT_REQUESTS.c.due_at <= now,
            AUDIT_REQUESTS.c.suite_digest.in_(list(suite_digests)),
        )
        order = AUDIT_REQUESTS.c.due_at, AUDIT_REQUESTS.c.created_at, AUDIT_REQUESTS.c.key
        with self._engine.connect() as connection:
            found = connection.execute(sa.select(AUDIT_REQUESTS).where(waits).order_by(*order).limit(most)).mappings()
            waiting = {row["key"]: _request(row) for row in found}
        if not waiting:
            return []
        mine = AUDIT_REQUESTS.update().where(waits, AUDIT_REQUESTS.c.key.in_(list(waiting)))
        with self._engine.begin() as connection:
            claimed = set(
                connection.scalars(mine.values(due_at=now + max(1, int(hold_s))).returning(AUDIT_REQUESTS.c.key))
            )
        return [one for key, one in waiting.items() if key in claimed]

    @outlasting
    def settle(self, key: str, state: RequestState, detail: str = "") -> None:
        """Say what became of a request that has no audit."""
        self._change(key, {"state": state, "detail": storable(detail)})

    @outlasting
    def set_back(self, key: str, detail: str, *, wait_s: float) -> None:
        """Have a request looked at again after a while, and say why it waits."""
        self._change(key, {"detail": storable(detail), "due_at": int(self._clock() + wait_s)})

    def attach(self, key: str, audit_id: str) -> bool:
        """Say which audit a request came to; False when it has another one, which then stays."""
        mine = sa.or_(AUDIT_REQUESTS.c.audit_id.is_(None), AUDIT_REQUESTS.c.audit_id == audit_id)
        values = {"audit_id": audit_id, "state": RequestState.STARTED, "detail": ""}
        statement = AUDIT_REQUESTS.update().where(AUDIT_REQUESTS.c.key == key, mine).values(**values)
        with self._engine.begin() as connection:
            return connection.execute(statement).rowcount == 1

    @outlasting
    def reopen(self, suite_digests: Sequence[str]) -> int:
        """Have refused requests looked at again, because what stood in their way may be mended."""
        statement = AUDIT_REQUESTS.update().where(
            AUDIT_REQUESTS.c.state == RequestState.REFUSED, AUDIT_REQUESTS.c.suite_digest.in_(list(suite_digests))
        )
        with self._engine.begin() as connection:
            return connection.execute(statement.values(state=RequestState.REQUESTED, due_at=0)).rowcount

    @outlasting
    def revive(self, key: str, facts: dict[str, Any]) -> bool:
        """Have a refused or skipped request looked at again, because the registry says something else by now."""
        statement = AUDIT_REQUESTS.update().where(
            AUDIT_REQUESTS.c.key == key,
            AUDIT_REQUESTS.c.state.in_([RequestState.REFUSED, RequestState.SKIPPED]),
            AUDIT_REQUESTS.c.facts != _facts_json(facts),
        )
        values = {"state": RequestState.REQUESTED, "due_at": 0, "facts": _facts_json(facts)}
        with self._engine.begin() as connection:
            return connection.execute(statement.values(**values)).rowcount == 1

    @outlasting
    def cursor(self, name: str) -> str:
        """How far a registry was read; empty where it was not, or from its beginning again."""
        statement = sa.select(REGISTRY_CURSORS.c.cursor).where(REGISTRY_CURSORS.c.name == name)
        with self._engine.connect() as connection:
            return connection.scalar(statement) or ""

    @outlasting
    def move_cursor(self, name: str, cursor: str) -> None:
        """Keep how far a registry was read; the last word counts."""
        insert = postgresql.insert if self._engine.dialect.name == "postgresql" else sqlite.insert
        statement = insert(REGISTRY_CURSORS).values(name=name, cursor=cursor)
        with self._engine.begin() as connection:
            connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"cursor": cursor}))

    def _change(self, key: str, values: dict[str, Any]) -> None:
        # What has its audit stays with it, whoever was slower says.
        waits = AUDIT_REQUESTS.c.audit_id.is_(None)
        with self._engine.begin() as connection:
            connection.execute(AUDIT_REQUESTS.update().where(AUDIT_REQUESTS.c.key == key, waits).values(**values))


def take(connection: sa.Connection, key: str, audit_id: str) -> None:
    """Within the transaction that puts an audit on record: make it the one of a request.

    Raises:
        RequestTakenError: when the request has one already, or there is no such request.
    """
    statement = AUDIT_REQUESTS.update().where(AUDIT_REQUESTS.c.key == key, AUDIT_REQUESTS.c.audit_id.is_(None))
    values = {"audit_id": audit_id, "state": RequestState.STARTED, "detail": ""}
    if connection.execute(statement.values(**values)).rowcount != 1:
        raise RequestTakenError(f"request {key} has its audit already")


def _request(row: sa.RowMapping) -> AuditRequest:
    values = {name: row[name] for name in AuditRequest._fields}
    facts = json.loads(row["facts"]) if row["facts"] else None
    return AuditRequest(**{**values, "facts": facts, "state": RequestState(row["state"])})


def _facts_json(facts: dict[str, Any] | None) -> str:
    # Escaped: no store is given a NUL or half of a surrogate pair.
    return "" if facts is None else json.dumps(facts, sort_keys=True)
