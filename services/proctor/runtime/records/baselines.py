"""Which audits are floors: of the version of a model that was in production when somebody said so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from proctor.runtime.records.engine import outlasting
from proctor.runtime.records.tables import BASELINES
from proctor.runtime.records.words import storable

_MOST: Final = 200


class Baseline(NamedTuple):
    """An audit that is the floor of a model's later versions."""

    audit_id: str
    model_id: str
    suite_id: str
    registered_name: str
    registered_version: str
    alias: str | None
    """By which the version was named; None where its number was given."""
    submitter: str
    created_at: str = ""


class Baselines:
    """The floors on record. The newest of a model and suite counts, and none is forgotten."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @outlasting
    def add(self, baseline: Baseline) -> None:
        """Record an audit as a floor; one that is a floor already stays what it is."""
        # The newest counts, and two may be recorded in one second.
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        texts = {name: None if text is None else storable(text) for name, text in baseline._asdict().items()}
        insert = postgresql.insert if self._engine.dialect.name == "postgresql" else sqlite.insert
        with self._engine.begin() as connection:
            connection.execute(insert(BASELINES).values({**texts, "created_at": now}).on_conflict_do_nothing())

    @outlasting
    def newest(
        self, *, model_id: str | None = None, submitter: str | None = None, limit: int = _MOST
    ) -> list[Baseline]:
        """Floors of a model, or of all, the newest first."""
        wanted = sa.select(BASELINES).order_by(BASELINES.c.created_at.desc(), BASELINES.c.audit_id.desc()).limit(limit)
        if model_id is not None:
            wanted = wanted.where(BASELINES.c.model_id == model_id)
        if submitter is not None:
            wanted = wanted.where(BASELINES.c.submitter == submitter)
        with self._engine.connect() as connection:
            return [Baseline(**row) for row in connection.execute(wanted).mappings()]
