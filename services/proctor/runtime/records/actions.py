"""Who did what, and when: a row for each change that a caller made, in the transaction that made it.

Rows are added and never changed; the migration lays triggers that refuse the rest.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

from proctor.domain.action import Action, ActionOnRecord
from proctor.domain.submitter import BY_TERMINAL
from proctor.runtime.login_name import login_name
from proctor.runtime.records.engine import outlasting
from proctor.runtime.records.tables import ACTIONS
from proctor.runtime.records.words import storable


def note(connection: sa.Connection, audit_id: str | None, action: Action, *, at: str) -> None:
    """Write what was done, as a part of the transaction that does it.

    Args:
        connection: in whose transaction.
        audit_id: the audit that it was done to; None for what is of no audit.
        action: what, and who did it.
        at: when, as every time of the store is written.
    """
    detail = dict(action.detail)
    if action.by.via == BY_TERMINAL:
        # All who sit at a terminal have one name; whose login it was is what the machine knows of them.
        detail["user"] = login_name()
    connection.execute(
        ACTIONS.insert().values(
            audit_id=audit_id,
            action=action.verb.value,
            name=storable(action.by.name),
            via=storable(action.by.via),
            at=at,
            # Escaped: no store is given a NUL or half of a surrogate pair.
            detail=json.dumps(detail, sort_keys=True),
        )
    )


class Actions:
    """The actions in a record store."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @outlasting
    def of(self, audit_id: str) -> list[ActionOnRecord]:
        """What was done to an audit, in its order."""
        rows = sa.select(ACTIONS).where(ACTIONS.c.audit_id == audit_id).order_by(ACTIONS.c.id)
        return self._read(rows)

    @outlasting
    def newest(self, limit: int, *, before: int | None = None) -> list[ActionOnRecord]:
        """What was done last, the newest first.

        Args:
            limit: how many.
            before: the id of an action; those that are older than it.
        """
        rows = sa.select(ACTIONS).order_by(ACTIONS.c.id.desc()).limit(limit)
        return self._read(rows if before is None else rows.where(ACTIONS.c.id < before))

    def _read(self, statement: sa.Select[Any]) -> list[ActionOnRecord]:
        with self._engine.connect() as connection:
            return [
                ActionOnRecord(**{**row, "detail": json.loads(row["detail"])})
                for row in connection.execute(statement).mappings()
            ]
