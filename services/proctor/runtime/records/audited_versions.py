"""What is on record of a version of a model: the suites that were asked for, what stands of those that ran, and where
its decision was written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from proctor.domain.decision import DecisionEvent
from proctor.domain.registered_version import RegistryKind
from proctor.domain.standing import Standing
from proctor.domain.version_decision import AskedSuite
from proctor.runtime.records.decisions import decision_of
from proctor.runtime.records.engine import outlasting
from proctor.runtime.records.requests import RequestState
from proctor.runtime.records.standings import Standings
from proctor.runtime.records.tables import (
    AUDIT_REQUESTS,
    AUDITS,
    DECISION_LOG,
    DECISIONS,
    REGISTRATIONS,
    REGISTRY_WRITES,
)
from proctor.runtime.records.words import storable

#: Audits of one version's weights that are looked at, the newest first; whoever audits it more often has superseded the
#: others.
MAX_AUDITS: Final = 500


class VersionName(NamedTuple):
    """A version as its registry names it."""

    registry: RegistryKind | None
    """None where triggers know no such registry, and nothing can have been asked for."""
    name: str
    version: str


class OnRecord(NamedTuple):
    """What is on record of a version."""

    asked: tuple[AskedSuite, ...]
    standings: tuple[Standing, ...]
    """Of every audit of its weights, in the order in which they were decided."""
    events: dict[str, DecisionEvent]
    """The decisions of these audits."""
    registrations: frozenset[str]
    """The versions on which a decision on these weights was written."""


class RegistryWrite(NamedTuple):
    """What became of the last attempt to write an audit's decision to the registry."""

    audit_id: str
    registry_version: str | None
    outcome: str
    """The version's, as it was to be written."""
    error: str
    """Empty where it was written."""
    at: str


class AuditedVersions:
    """Versions as a record store knows them.

    Args:
        engine: of the store.
        standings: its standings.
    """

    def __init__(self, engine: sa.Engine, standings: Standings) -> None:
        self._engine = engine
        self._standings = standings

    @outlasting
    def on_record(self, version: VersionName, model_id: str, model_digest: str) -> OnRecord:
        """All of it.

        Raises:
            NewerVersionError: a decision needs a newer Proctor.
            StoreError: a standing cannot be read.
        """
        found = self._standings.standings(model_id=model_id, model_digest=model_digest, limit=MAX_AUDITS)
        audits = [one.audit_id for one in found]
        with self._engine.connect() as connection:
            order = _decided_at(connection, audits)
            events = _events(connection, audits)
            registered = sa.select(REGISTRATIONS.c.registry_version).where(REGISTRATIONS.c.audit_id.in_(audits))
            registrations = frozenset(connection.scalars(registered))
            asked = asked_suites(
                connection,
                AUDIT_REQUESTS.c.registry == ("" if version.registry is None else version.registry.value),
                AUDIT_REQUESTS.c.model == storable(version.name),
                AUDIT_REQUESTS.c.version == storable(version.version),
            )
        # What is not in the log any more was decided before all that is; `proctor record verify` tells of it.
        standings = sorted(found, key=lambda one: (order.get(one.audit_id, 0), one.audit_id))
        return OnRecord(asked, tuple(standings), events, registrations)

    @outlasting
    def asked_version(self, audit_id: str, registry: RegistryKind) -> str | None:
        """The version of a registry for which a trigger asked for an audit; None where none did."""
        statement = sa.select(AUDIT_REQUESTS.c.version).where(
            AUDIT_REQUESTS.c.audit_id == audit_id, AUDIT_REQUESTS.c.registry == registry.value
        )
        with self._engine.connect() as connection:
            return connection.scalar(statement.order_by(AUDIT_REQUESTS.c.key).limit(1))

    @outlasting
    def note_write(self, audit_id: str, outcome: str, version: str | None, error: str = "") -> None:
        """Keep what became of an attempt to write to the registry; the last one counts."""
        insert = postgresql.insert if self._engine.dialect.name == "postgresql" else sqlite.insert
        values = {
            "registry_version": version,
            "outcome": outcome,
            "error": storable(error),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        statement = insert(REGISTRY_WRITES).values(audit_id=audit_id, **values)
        with self._engine.begin() as connection:
            connection.execute(statement.on_conflict_do_update(index_elements=["audit_id"], set_=values))

    @outlasting
    def last_write(self, audit_id: str) -> RegistryWrite | None:
        """What became of the last attempt; None where there was none."""
        statement = sa.select(REGISTRY_WRITES).where(REGISTRY_WRITES.c.audit_id == audit_id)
        with self._engine.connect() as connection:
            row = connection.execute(statement).mappings().first()
        return None if row is None else RegistryWrite(**row)


def _decided_at(connection: sa.Connection, audits: Sequence[str]) -> dict[str, int]:
    first = sa.func.min(DECISION_LOG.c.sequence)
    statement = sa.select(DECISION_LOG.c.audit_id, first).where(DECISION_LOG.c.audit_id.in_(audits))
    rows = connection.execute(statement.group_by(DECISION_LOG.c.audit_id)).all()
    return {row[0]: row[1] for row in rows}


def _events(connection: sa.Connection, audits: Sequence[str]) -> dict[str, DecisionEvent]:
    statement = sa.select(DECISIONS.c.audit_id, DECISIONS.c.event).where(DECISIONS.c.audit_id.in_(audits))
    return {audit_id: decision_of(audit_id, json.loads(event)) for audit_id, event in connection.execute(statement)}


def asked_suites(connection: sa.Connection, *of: sa.ColumnElement[bool]) -> tuple[AskedSuite, ...]:
    """The suites that triggers asked for, of the requests that meet the conditions, in the order of asking."""
    requests = AUDIT_REQUESTS
    statement = (
        sa.select(requests, AUDITS.c.state.label("audit_state"), AUDITS.c.detail.label("audit_detail"))
        .outerjoin(AUDITS, AUDITS.c.audit_id == requests.c.audit_id)
        .where(*of, requests.c.state != RequestState.SKIPPED)
        .order_by(requests.c.created_at, requests.c.key)
    )
    return tuple(_asked(row) for row in connection.execute(statement).mappings())


def _asked(row: sa.RowMapping) -> AskedSuite:
    return AskedSuite(
        audit_suite_id=row["suite_id"],
        suite_digest=row["suite_digest"],
        audit_id=row["audit_id"],
        at=row["created_at"],
        waiting=_waiting(row),
    )


def _waiting(row: sa.RowMapping) -> str:
    if row["audit_id"] is None:
        state = RequestState(row["state"])
        if state is RequestState.REFUSED:
            return f"its audit cannot be begun: {row['detail']}"
        return f"its audit is asked for and not begun{': ' + row['detail'] if row['detail'] else ''}"
    if row["audit_state"] in ("failed", "cancelled"):
        why = f": {row['audit_detail']}" if row["audit_detail"] else ""
        return f"audit {row['audit_id']} {'was cancelled' if row['audit_state'] == 'cancelled' else 'failed'}{why}"
    return f"audit {row['audit_id']} is under way"
