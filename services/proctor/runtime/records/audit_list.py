"""Audits as a list shows them, found by what stands in columns of their own, a page at a time.

The columns repeat what is in an audit's suite, inputs and decision. Whoever writes those writes these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from proctor.domain.submitter import LOCAL_NAME
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.engine import outlasting
from proctor.runtime.records.standings import outcome_at
from proctor.runtime.records.tables import AUDITS, DECISIONS, STANDINGS

#: Rows in memory at a time where many are filled in.
_PAGE: Final = 200
_MOST: Final = {"model_id": 200, "suite_id": 200, "submitter": 64, "outcome": 16}
#: Of what went wrong, in a list.
_DETAIL_CHARACTERS: Final = 300
_ENDED: Final = tuple(state.value for state in AuditState if state.ended)


class ListedAudit(NamedTuple):
    """One audit as a list shows it."""

    audit_id: str
    suite_id: str
    model_id: str
    state: str
    """As it is stored: of a newer Proctor, a word that this one does not know."""
    outcome: str | None
    """What stands; None until it is decided."""
    created_at: str
    submitter: str
    detail: str
    """The beginning of why it failed."""
    paused: bool


class Place(NamedTuple):
    """Where in the list an audit stands."""

    created_at: str
    audit_id: str


class Wanted(NamedTuple):
    """Which audits a list is to hold; None where it does not matter."""

    state: str | None = None
    outcome: str | None = None
    model_id: str | None = None
    suite_id: str | None = None
    submitter: str | None = None


def of_suite(suite: str) -> dict[str, str | None]:
    """The columns that repeat what is in a suite's JSON."""
    said = _said(suite)
    model = said.get("model_config")
    return {
        "model_id": _word("model_id", model.get("model_id") if isinstance(model, dict) else None),
        "suite_id": _word("suite_id", said.get("audit_suite_id")),
    }


def of_inputs(inputs: Mapping[str, Any]) -> dict[str, str | None]:
    """The column that repeats what is in an audit's inputs."""
    return {"submitter": _word("submitter", inputs.get("submitter", LOCAL_NAME))}


def of_event(event: Mapping[str, Any]) -> dict[str, str | None]:
    """The column that repeats what is in a decision, and then what stands instead of it."""
    return {"outcome": _word("outcome", event.get("outcome"))}


class AuditList:
    """The list, over the tables that `Records` opens."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @outlasting
    def page(self, wanted: Wanted, *, limit: int, before: Place | None = None) -> list[ListedAudit]:
        """Audits, the newest first: at most `limit`, behind the one at `before`."""
        place = (AUDITS.c.created_at, AUDITS.c.audit_id)
        found = sa.select(AUDITS.c.audit_id).order_by(*(column.desc() for column in place)).limit(limit)
        for name, value in wanted._asdict().items():
            if value is not None:
                found = found.where(AUDITS.c[name] == value)
        if before is not None:
            found = found.where(sa.tuple_(*place) < sa.tuple_(*map(sa.literal, before)))
        # Their rows are long, and read only where it is known which they are.
        rows = sa.select(
            AUDITS.c.audit_id,
            AUDITS.c.suite_id,
            AUDITS.c.model_id,
            AUDITS.c.state,
            outcome_at(datetime.now(UTC)).label("outcome"),
            AUDITS.c.created_at,
            AUDITS.c.submitter,
            sa.func.substr(AUDITS.c.detail, 1, _DETAIL_CHARACTERS).label("detail"),
            sa.case((AUDITS.c.state.in_(_ENDED), "{}"), else_=AUDITS.c.inputs).label("inputs"),
            sa.case((AUDITS.c.model_id.is_(None), AUDITS.c.suite), else_="{}").label("suite"),
        ).where(AUDITS.c.audit_id.in_(found))
        rows = rows.outerjoin_from(AUDITS, STANDINGS, STANDINGS.c.audit_id == AUDITS.c.audit_id)
        with self._engine.connect() as connection:
            listed = [_listed(row) for row in connection.execute(rows.order_by(*(one.desc() for one in place))).all()]
        return listed

    @outlasting
    def fill_in(self) -> int:
        """Fill in the columns of what an earlier Proctor wrote meanwhile; how many rows that were.

        One that runs beside this one while a deployment is upgraded knows nothing of them.
        """
        filled = 0
        event = sa.select(DECISIONS.c.event).where(DECISIONS.c.audit_id == AUDITS.c.audit_id).scalar_subquery()
        rows = sa.select(AUDITS.c.audit_id, AUDITS.c.suite, AUDITS.c.inputs, event.label("event"))
        decided = sa.and_(AUDITS.c.state == AuditState.DECIDED.value, AUDITS.c.outcome.is_(None))
        after = ""
        while True:
            lacking = rows.where(AUDITS.c.audit_id > after, sa.or_(AUDITS.c.submitter.is_(None), decided))
            with self._engine.begin() as connection:
                page = connection.execute(lacking.order_by(AUDITS.c.audit_id).limit(_PAGE)).all()
                for row in page:
                    columns = {
                        **of_suite(row.suite),
                        **of_inputs(_said(row.inputs)),
                        # What a person signed meanwhile is not undone.
                        "outcome": sa.func.coalesce(AUDITS.c.outcome, of_event(_said(row.event or ""))["outcome"]),
                    }
                    connection.execute(AUDITS.update().where(AUDITS.c.audit_id == row.audit_id).values(**columns))
            filled += len(page)
            if len(page) < _PAGE:
                return filled
            after = page[-1].audit_id


def _listed(row: Any) -> ListedAudit:
    suite = of_suite(row.suite) if row.model_id is None else {"model_id": row.model_id, "suite_id": row.suite_id}
    return ListedAudit(
        audit_id=row.audit_id,
        suite_id=suite["suite_id"] or "",
        model_id=suite["model_id"] or "",
        state=row.state,
        outcome=row.outcome,
        created_at=row.created_at,
        submitter=row.submitter or "",
        detail=row.detail,
        paused=bool(_said(row.inputs).get("paused")),
    )


def _said(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _word(name: str, value: Any) -> str | None:
    # What no column holds is left out, and shown from where it stands.
    return value[: _MOST[name]] if isinstance(value, str) and value.isprintable() else None
