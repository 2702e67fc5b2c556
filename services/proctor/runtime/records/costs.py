"""What audits used, by the month in which they ended or stopped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from proctor.domain.usage import Usage
from proctor.runtime.records.engine import outlasting
from proctor.runtime.records.tables import AUDIT_COSTS, AUDIT_MEASURES

_UNITS: Final = tuple(Usage.model_fields)
#: Combinations of submitter, suite and model that are told apart in a month; the rest are one.
MAX_LINES: Final = 5_000


class CostLine(NamedTuple):
    """What one submitter's audits of one model by one suite used in a month."""

    submitter: str
    suite_id: str
    model_id: str
    audits: int
    amounts: tuple[float, ...]
    """In the order of `Usage`'s fields: thousands of lines are added up for a page."""


class MonthTotal(NamedTuple):
    """What all audits of a month used."""

    month: str
    audits: int
    used: Usage


class Costs:
    """What was used, on record."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @outlasting
    def note(self, audit_id: str, month: str, used: Usage, *, submitter: str, suite_id: str, model_id: str) -> None:
        """Note what an audit used in all by now; what it used in earlier months stays theirs.

        Args:
            audit_id: the audit.
            month: now, as YYYY-MM.
            used: in all.
            submitter: whose audit it is.
            suite_id: its suite.
            model_id: its model.
        """
        key = (AUDIT_COSTS.c.audit_id == audit_id, AUDIT_COSTS.c.month == month)
        try:
            with self._engine.begin() as connection:
                others = sa.select(AUDIT_COSTS).where(AUDIT_COSTS.c.audit_id == audit_id, AUDIT_COSTS.c.month != month)
                earlier = Usage.total(_used(row) for row in connection.execute(others).mappings())
                values = {
                    "submitter": submitter,
                    "suite_id": suite_id,
                    "model_id": model_id,
                    **used.beyond(earlier).model_dump(),
                }
                if not connection.execute(AUDIT_COSTS.update().where(*key).values(values)).rowcount:
                    connection.execute(AUDIT_COSTS.insert().values(audit_id=audit_id, month=month, **values))
        except IntegrityError:
            # Another router noted the same end at the same moment.
            return

    @outlasting
    def of_audit(self, audit_id: str) -> Usage | None:
        """What an audit used by the time at which it last stopped; None where nothing is noted."""
        wanted = sa.select(AUDIT_COSTS).where(AUDIT_COSTS.c.audit_id == audit_id)
        with self._engine.connect() as connection:
            noted = [_used(row) for row in connection.execute(wanted).mappings()]
        return Usage.total(noted) if noted else None

    @outlasting
    def of_month(self, month: str, *, submitter: str | None = None) -> list[CostLine]:
        """What was used in a month, by submitter, suite and model."""
        whose = (AUDIT_COSTS.c.submitter, AUDIT_COSTS.c.suite_id, AUDIT_COSTS.c.model_id)
        wanted = _sums(*whose).where(AUDIT_COSTS.c.month == month).group_by(*whose).order_by(*whose).limit(MAX_LINES)
        if submitter is not None:
            wanted = wanted.where(AUDIT_COSTS.c.submitter == submitter)
        with self._engine.connect() as connection:
            rows = connection.execute(wanted)
            return [CostLine(row[0], row[1], row[2], row[3], tuple(row[4:])) for row in rows]

    @outlasting
    def months(self, *, since: str, until: str, submitter: str | None = None) -> list[MonthTotal]:
        """What was used in each month of a span, the earliest first; both its ends are part of it."""
        month = AUDIT_COSTS.c.month
        wanted = _sums(month).where(month >= since, month <= until).group_by(month).order_by(month)
        if submitter is not None:
            wanted = wanted.where(AUDIT_COSTS.c.submitter == submitter)
        with self._engine.connect() as connection:
            rows = connection.execute(wanted).mappings().all()
        return [MonthTotal(row["month"], row["audits"], _used(row)) for row in rows]

    @outlasting
    def unnoted(self, month: str, *, submitter: str | None = None) -> int:
        """Audits decided in a month that have no cost on record: they are older than that, or asked nobody."""
        there = sa.select(AUDIT_COSTS.c.audit_id).where(AUDIT_COSTS.c.audit_id == AUDIT_MEASURES.c.audit_id)
        at = AUDIT_MEASURES.c.decided_at
        wanted = sa.select(sa.func.count()).where(at >= month, at < _after(month), ~there.exists())
        if submitter is not None:
            wanted = wanted.where(AUDIT_MEASURES.c.submitter == submitter)
        with self._engine.connect() as connection:
            return int(connection.scalar(wanted.select_from(AUDIT_MEASURES)) or 0)


def usage_of(amounts: Iterable[Any]) -> Usage:
    """What amounts in the order of the fields come to."""
    # PostgreSQL's sum of large integers is a decimal.
    pairs = zip(_UNITS, amounts, strict=True)
    return Usage(**{unit: float(amount) if unit == "cost" else int(amount) for unit, amount in pairs})


def _after(month: str) -> str:
    year, number = int(month[:4]), int(month[5:])
    return f"{year + 1:04}-01" if number == 12 else f"{year:04}-{number + 1:02}"


def _sums(*columns: sa.Column[Any]) -> sa.Select[Any]:
    sums = (sa.func.sum(AUDIT_COSTS.c[unit]).label(unit) for unit in _UNITS)
    return sa.select(*columns, sa.func.count().label("audits"), *sums)


def _used(row: Any) -> Usage:
    return usage_of(row[unit] for unit in _UNITS)
