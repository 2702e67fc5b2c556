"""The figures of decided audits, by model and by benchmark. Every question has a bound on what it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from proctor.domain.channel_results import Verdict
from proctor.domain.measure import Bounded, Measure, Measured
from proctor.domain.submitter import LOCAL_NAME
from proctor.runtime.records.engine import outlasting
from proctor.runtime.records.item_counts import ItemColumns, PackedItems, pack, unpack
from proctor.runtime.records.tables import (
    AUDIT_MEASURES,
    AUDITS,
    DECISIONS,
    ITEM_COUNTS,
    ITEM_LISTS,
    REGISTRATIONS,
)

#: Rows that a list of names is made of: the newest.
_LOOKED_AT: Final = 1_000
_CHUNK: Final = 400
_FIGURES: Final = ("score", "inflation")


class StoredMeasure(NamedTuple):
    """The figures of an audit on record."""

    audit_id: str
    measure: Measure
    submitter: str
    decided_at: str
    registry_version: str | None
    """The version that the decision was written on; None where it was not written."""


class Asked(NamedTuple):
    """An audit that asked a benchmark's items."""

    audit_id: str
    model_id: str
    model_digest: str
    n_items: int


class Audited(NamedTuple):
    """Something that was audited of late: a model, or a benchmark."""

    name: str
    digest: str
    """Of a benchmark; of a model's newest weights."""
    last: str
    """When the last of its audits was decided."""


class Undone(NamedTuple):
    """A decision that has no figures yet."""

    audit_id: str
    event: str
    decided_at: str


def add_measure(connection: sa.Connection, audit_id: str, measured: Measured, *, decided_at: str) -> None:
    """Add an audit's figures as a part of a transaction. Those that are there stay."""
    inputs = connection.scalar(sa.select(AUDITS.c.inputs).where(AUDITS.c.audit_id == audit_id))
    submitter = LOCAL_NAME if inputs is None else str(json.loads(inputs).get("submitter", LOCAL_NAME))
    packed = pack(measured.items)
    _add(connection, ITEM_LISTS, digest=packed.item_list, ids=packed.ids)
    _add(connection, ITEM_COUNTS, audit_id=audit_id, item_list=packed.item_list, counts=packed.counts)
    plain = measured.measure.plain()
    figures = {name: plain.pop(name) for name in _FIGURES}
    for name, figure in figures.items():
        plain |= {name: figure["value"], f"{name}_low": figure["low"], f"{name}_high": figure["high"]}
    _add(connection, AUDIT_MEASURES, audit_id=audit_id, submitter=submitter, decided_at=decided_at, **plain)


def _add(connection: sa.Connection, table: sa.Table, **values: Any) -> None:
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    connection.execute(insert(table).values(**values).on_conflict_do_nothing())


class Measures:
    """The figures on record."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @outlasting
    def add(self, audit_id: str, measured: Measured, *, decided_at: str) -> None:
        """Add the figures of an audit that was decided before they were kept."""
        with self._engine.begin() as connection:
            add_measure(connection, audit_id, measured, decided_at=decided_at)

    @outlasting
    def of_audits(self, audit_ids: Sequence[str]) -> dict[str, StoredMeasure]:
        """The figures of some audits; those without are left out."""
        found = {}
        with self._engine.connect() as connection:
            for start in range(0, len(audit_ids), _CHUNK):
                wanted = _measures().where(AUDIT_MEASURES.c.audit_id.in_(list(audit_ids[start : start + _CHUNK])))
                found.update({row["audit_id"]: _stored(row) for row in connection.execute(wanted).mappings()})
        return found

    def of_model(
        self, model_id: str, *, limit: int, suite_id: str | None = None, submitter: str | None = None
    ) -> list[StoredMeasure]:
        """The audits of a model's versions, those that were decided last first."""
        wanted = _measures().where(AUDIT_MEASURES.c.model_id == model_id)
        if suite_id is not None:
            wanted = wanted.where(AUDIT_MEASURES.c.suite_id == suite_id)
        return self._newest(wanted, limit, submitter)

    @outlasting
    def of_benchmark(self, digest: str, *, limit: int, submitter: str | None = None) -> list[Asked]:
        """The audits that asked a benchmark's items and were valid, those that were decided last first."""
        columns = AUDIT_MEASURES.c
        wanted = sa.select(columns.audit_id, columns.model_id, columns.model_digest, columns.n_items).where(
            columns.benchmark_digest == digest, columns.verdict != Verdict.INVALID
        )
        order = (columns.decided_at.desc(), columns.audit_id.desc())
        with self._engine.connect() as connection:
            rows = connection.execute(_visible(wanted, submitter).order_by(*order).limit(limit))
            return [Asked(*row) for row in rows]

    @outlasting
    def _newest(self, wanted: sa.Select[Any], limit: int, submitter: str | None) -> list[StoredMeasure]:
        order = (AUDIT_MEASURES.c.decided_at.desc(), AUDIT_MEASURES.c.audit_id.desc())
        statement = _visible(wanted, submitter).order_by(*order).limit(limit)
        with self._engine.connect() as connection:
            return [_stored(row) for row in connection.execute(statement).mappings()]

    @outlasting
    def items(self, audit_ids: Sequence[str]) -> dict[str, ItemColumns]:
        """What models answered to each item of these audits.

        Raises:
            StoreError: when a row was damaged.
        """
        found: dict[str, ItemColumns] = {}
        with self._engine.connect() as connection:
            for start in range(0, len(audit_ids), _CHUNK):
                wanted = sa.select(ITEM_COUNTS).where(
                    ITEM_COUNTS.c.audit_id.in_(list(audit_ids[start : start + _CHUNK]))
                )
                rows = connection.execute(wanted).all()
                # An item list is long, and the same for many audits: each is read once.
                digests = sorted({row.item_list for row in rows})
                lists = sa.select(ITEM_LISTS).where(ITEM_LISTS.c.digest.in_(digests))
                ids = {row.digest: bytes(row.ids) for row in connection.execute(lists)}
                for row in rows:
                    packed = PackedItems(row.item_list, ids.get(row.item_list, b""), bytes(row.counts))
                    found[row.audit_id] = unpack(packed)
        return found

    def models(self, *, limit: int, submitter: str | None = None) -> list[Audited]:
        """Models of which versions were audited of late, each once, the last first."""
        return self._audited(
            AUDIT_MEASURES.c.model_id, AUDIT_MEASURES.c.model_digest, limit, submitter, by_digest=False
        )

    def benchmarks(self, *, limit: int, submitter: str | None = None) -> list[Audited]:
        """Benchmarks that were asked of late, each once by its digest, the last first."""
        name, digest = AUDIT_MEASURES.c.benchmark_name, AUDIT_MEASURES.c.benchmark_digest
        return self._audited(name, digest, limit, submitter, by_digest=True)

    @outlasting
    def _audited(
        self, name: sa.Column[Any], digest: sa.Column[Any], limit: int, submitter: str | None, *, by_digest: bool
    ) -> list[Audited]:
        wanted = sa.select(name.label("name"), digest.label("digest"), AUDIT_MEASURES.c.decided_at)
        order = AUDIT_MEASURES.c.decided_at.desc()
        statement = _visible(wanted, submitter).order_by(order).limit(_LOOKED_AT)
        found: dict[str, Audited] = {}
        with self._engine.connect() as connection:
            for row in connection.execute(statement):
                found.setdefault(row.digest if by_digest else row.name, Audited(row.name, row.digest, row.decided_at))
        return list(found.values())[:limit]

    @outlasting
    def named(self, benchmark: str, *, submitter: str | None = None) -> list[Audited]:
        """The benchmarks that a name stands for, or a digest: of its items, or of its file."""
        columns = AUDIT_MEASURES.c
        found: dict[str, Audited] = {}
        with self._engine.connect() as connection:
            for column in (columns.benchmark_digest, columns.content_digest, columns.benchmark_name):
                wanted = sa.select(columns.benchmark_name, columns.benchmark_digest, columns.decided_at)
                statement = _visible(wanted.where(column == benchmark), submitter)
                for row in connection.execute(statement.order_by(columns.decided_at.desc()).limit(_LOOKED_AT)):
                    one = Audited(row.benchmark_name, row.benchmark_digest, row.decided_at)
                    found.setdefault(row.benchmark_digest, one)
                if found:
                    break
        return list(found.values())

    @outlasting
    def undone(self, *, limit: int, after: str = "") -> list[Undone]:
        """Decisions without figures, in the order of their audits' ids behind one."""
        there = sa.select(AUDIT_MEASURES.c.audit_id).where(AUDIT_MEASURES.c.audit_id == DECISIONS.c.audit_id)
        wanted = sa.select(DECISIONS).where(DECISIONS.c.audit_id > after, ~there.exists())
        with self._engine.connect() as connection:
            rows = connection.execute(wanted.order_by(DECISIONS.c.audit_id).limit(limit))
            return [Undone(row.audit_id, row.event, row.decided_at) for row in rows]

    def each_undone(self, *, limit: int) -> Iterator[Undone]:
        """The same, some at a time."""
        after, left = "", limit
        while left > 0:
            page = self.undone(limit=min(left, 100), after=after)
            yield from page
            if not page:
                return
            after, left = page[-1].audit_id, left - len(page)


def _measures() -> sa.Select[Any]:
    joined = AUDIT_MEASURES.outerjoin(REGISTRATIONS, REGISTRATIONS.c.audit_id == AUDIT_MEASURES.c.audit_id)
    return sa.select(AUDIT_MEASURES, REGISTRATIONS.c.registry_version).select_from(joined)


def _visible(wanted: sa.Select[Any], submitter: str | None) -> sa.Select[Any]:
    return wanted if submitter is None else wanted.where(AUDIT_MEASURES.c.submitter == submitter)


def _stored(row: sa.RowMapping) -> StoredMeasure:
    figures = {name: Bounded(value=row[name], low=row[f"{name}_low"], high=row[f"{name}_high"]) for name in _FIGURES}
    plain = {name: row[name] for name in Measure.model_fields if name not in figures}
    return StoredMeasure(
        row["audit_id"],
        Measure.model_validate({**plain, **figures}),
        row["submitter"],
        row["decided_at"],
        row["registry_version"],
    )
