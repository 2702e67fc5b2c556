"""What is on record of a version that somebody wants to deploy, held to the signed log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import sqlalchemy as sa

from proctor.domain.admission.reference import ModelReference
from proctor.domain.admission.verdict import Facts
from proctor.domain.decision import DecisionEvent, DecisionOutcome
from proctor.domain.record.attested import Surroundings, fault_of_standing
from proctor.domain.record.chain import Trust
from proctor.domain.record.entry import LoggedEntry
from proctor.domain.registered_version import registered_name
from proctor.domain.standing import Standing
from proctor.domain.version_decision import AskedSuite, VersionDecision, version_decision
from proctor.runtime.records.audited_versions import AuditedVersions, VersionName, asked_suites
from proctor.runtime.records.decision_log import logged_on
from proctor.runtime.records.engine import outlasting
from proctor.runtime.records.requests import RequestState
from proctor.runtime.records.tables import (
    AUDIT_REQUESTS,
    DECISION_LOG,
    DECISION_LOG_HEAD,
    REGISTRATIONS,
    STANDINGS,
)
from proctor.runtime.records.words import storable

#: Weights under one version that are looked at: more than one is a fault already.
_MOST_WEIGHTS: Final = 4


class _Weights(NamedTuple):
    model_id: str
    digest: str


class Moment(NamedTuple):
    """By what it is known whether anything of any version changed since."""

    entries: int
    registrations: int
    requests: int
    waiting: int
    """Requests without an audit."""
    under_way: int
    """Requests whose audit has no standing yet."""


class DeployableVersions:
    """Versions by the names that workloads have for them.

    Args:
        engine: of the store.
        versions: as they were audited.
        clock: the time.
    """

    def __init__(
        self, engine: sa.Engine, versions: AuditedVersions, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._engine = engine
        self._versions = versions
        self._clock = clock

    @outlasting
    def facts(self, reference: ModelReference, trust: Trust) -> Facts:
        """All that is on record of a version now.

        Raises:
            NewerVersionError: a decision needs a newer Proctor.
            StoreError: the store does not answer, or a standing cannot be read.
        """
        with self._engine.connect() as connection:
            weights = _weights(connection, reference)
            versions = _registered(connection, weights) if reference.is_digest else (reference.version,)
            asked = _asked(connection, reference.name, versions)
        if len(weights) > 1:
            return Facts(None, {}, {}, tuple(one.digest for one in weights))
        if not weights:
            return Facts(version_decision(asked, (), self._clock()), {}, {})
        found = self._versions.on_record(VersionName(None, *weights[0]), *weights[0])
        decision = version_decision(asked, found.standings, self._clock())
        faults = {} if decision is None else self._faults(decision, found.events, trust)
        return Facts(decision, found.events, faults, (weights[0].digest,))

    @outlasting
    def named(self, most: int) -> list[ModelReference]:
        """The versions that the record knows, under each name that it has for them; of the newest audits, so many."""
        newest = STANDINGS.c.at.desc(), STANDINGS.c.audit_id.desc()
        weights = sa.select(STANDINGS.c.model_id, STANDINGS.c.model_digest).order_by(*newest).limit(most)
        registered = (
            sa.select(STANDINGS.c.model_id, REGISTRATIONS.c.registry_version)
            .join(REGISTRATIONS, REGISTRATIONS.c.audit_id == STANDINGS.c.audit_id)
            .order_by(*newest)
            .limit(most)
        )
        requests = AUDIT_REQUESTS
        asked = (
            sa.select(requests.c.model, requests.c.version)
            .where(requests.c.state != RequestState.SKIPPED)
            .order_by(requests.c.created_at.desc(), requests.c.key)
            .limit(most)
        )
        with self._engine.connect() as connection:
            rows = [(row[0], row[1]) for one in (registered, weights, asked) for row in connection.execute(one)]
        return list(dict.fromkeys(ModelReference(registered_name(name), version) for name, version in rows))

    @outlasting
    def moment(self) -> Moment:
        """What changes whenever something of a version does, but for the time that ends an approval."""
        standing = sa.select(STANDINGS.c.audit_id).where(STANDINGS.c.audit_id == AUDIT_REQUESTS.c.audit_id).exists()
        counts = (
            sa.select(sa.func.coalesce(sa.func.max(DECISION_LOG.c.sequence), 0)),
            sa.select(sa.func.count()).select_from(REGISTRATIONS),
            sa.select(sa.func.count()).select_from(AUDIT_REQUESTS),
            sa.select(sa.func.count()).select_from(AUDIT_REQUESTS).where(AUDIT_REQUESTS.c.audit_id.is_(None)),
            sa.select(sa.func.count())
            .select_from(AUDIT_REQUESTS)
            .where(AUDIT_REQUESTS.c.audit_id.is_not(None), ~standing),
        )
        with self._engine.connect() as connection:
            return Moment(*(connection.scalar(count) or 0 for count in counts))

    def _faults(self, decision: VersionDecision, events: dict[str, DecisionEvent], trust: Trust) -> dict[str, str]:
        approvals = [
            one.standing
            for one in decision.suites
            if one.standing is not None and one.standing.outcome is DecisionOutcome.APPROVE
        ]
        if decision.outcome is not DecisionOutcome.APPROVE:
            return {}
        found = dict[str, str]()
        for standing in approvals:
            event = events.get(standing.audit_id)
            fault = "its decision is gone." if event is None else self._fault(standing, event, trust)
            if fault is not None:
                found[standing.audit_id] = fault
        return found

    def _fault(self, standing: Standing, event: DecisionEvent, trust: Trust) -> str | None:
        with self._engine.connect() as connection:
            entries = logged_on(connection, standing.audit_id)
            around = _around(connection, entries)
        return fault_of_standing(standing, event.plain(), entries, around, trust)


def _weights(connection: sa.Connection, reference: ModelReference) -> list[_Weights]:
    """The weights that are on record under a name."""
    names, version = _model_ids(reference.name), storable(reference.version)
    chosen = sa.select(STANDINGS.c.model_id, STANDINGS.c.model_digest).where(STANDINGS.c.model_id.in_(names))
    if reference.is_digest:
        statements = [chosen.where(STANDINGS.c.model_digest == version)]
    else:
        registered = chosen.join(REGISTRATIONS, REGISTRATIONS.c.audit_id == STANDINGS.c.audit_id)
        asked = chosen.join(AUDIT_REQUESTS, AUDIT_REQUESTS.c.audit_id == STANDINGS.c.audit_id)
        statements = [
            registered.where(REGISTRATIONS.c.registry_version == version),
            # Decided, and not written to the registry yet.
            asked.where(
                AUDIT_REQUESTS.c.version == version,
                AUDIT_REQUESTS.c.model.in_(_registry_names(reference.name)),
                AUDIT_REQUESTS.c.state != RequestState.SKIPPED,
            ),
        ]
    rows = [row for one in statements for row in connection.execute(one.distinct().limit(_MOST_WEIGHTS))]
    return list(dict.fromkeys(_Weights(row[0], row[1]) for row in rows))


def _registered(connection: sa.Connection, weights: Sequence[_Weights]) -> tuple[str, ...]:
    """The versions on which decisions on these weights were written."""
    statement = (
        sa.select(REGISTRATIONS.c.registry_version)
        .join(STANDINGS, STANDINGS.c.audit_id == REGISTRATIONS.c.audit_id)
        .where(
            STANDINGS.c.model_id.in_([one.model_id for one in weights]),
            STANDINGS.c.model_digest.in_([one.digest for one in weights]),
        )
    )
    return tuple(connection.scalars(statement.distinct()))


def _asked(connection: sa.Connection, name: str, versions: Sequence[str]) -> tuple[AskedSuite, ...]:
    if not versions:
        return ()
    return asked_suites(
        connection,
        AUDIT_REQUESTS.c.model.in_(_registry_names(name)),
        AUDIT_REQUESTS.c.version.in_([storable(one) for one in versions]),
    )


def _model_ids(name: str) -> list[str]:
    # No model id has a '~': a registry's name that does not take '/' has it in its place.
    return sorted({storable(name), storable(name.replace("~", "/"))})


def _registry_names(name: str) -> list[str]:
    return sorted({*_model_ids(name), storable(registered_name(name))})


def _around(connection: sa.Connection, entries: Sequence[LoggedEntry]) -> Surroundings:
    numbers = {one.sequence + step for one in entries for step in (-1, 1)}
    rows = connection.execute(sa.select(DECISION_LOG).where(DECISION_LOG.c.sequence.in_(sorted(numbers)))).all()
    head = connection.execute(
        sa.select(DECISION_LOG_HEAD.c.sequence, DECISION_LOG_HEAD.c.digest).where(DECISION_LOG_HEAD.c.id == 1)
    ).first()
    others = {row.sequence: LoggedEntry(row.sequence, row.entry, row.digest, row.signature) for row in rows}
    return Surroundings(others, *((0, None) if head is None else head))
