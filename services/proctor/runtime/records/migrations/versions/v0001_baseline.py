"""The tables as they were when versions began. Stores that were made before are adopted if they have just these."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from proctor.domain.errors import StoreError

revision = "0001"
down_revision = None

_BASELINE = sa.MetaData()

sa.Table(
    "audits",
    _BASELINE,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("subject", sa.String(64), nullable=False, index=True),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("suite", sa.Text, nullable=False),
    sa.Column("inputs", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
    sa.UniqueConstraint("subject", "ordinal"),
)
sa.Table(
    "variant_library",
    _BASELINE,
    sa.Column("key", sa.String(80), primary_key=True),
    sa.Column("row", sa.Text, nullable=False),
)
sa.Table(
    "variant_library_origins",
    _BASELINE,
    sa.Column("key", sa.String(80), primary_key=True),
    sa.Column("source", sa.String(16), nullable=False),
    sa.Column("proctor", sa.String(64), nullable=False),
    sa.Column("gate", sa.String(64), nullable=False),
    sa.Column("file", sa.String(80), nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
)
sa.Table(
    "strategy_fidelities",
    _BASELINE,
    sa.Column("key", sa.String(80), primary_key=True),
    sa.Column("strategy", sa.String(200), nullable=False, index=True),
    sa.Column("benchmark", sa.String(128), nullable=False, index=True),
    sa.Column("row", sa.Text, nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
)
sa.Table(
    "decisions",
    _BASELINE,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("decided_at", sa.String(32), nullable=False),
)
sa.Table(
    "registrations",
    _BASELINE,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("registry_version", sa.String(200), nullable=False),
)


def upgrade() -> None:
    """Make the tables that are not there. Earlier Proctors, too, added whole tables to what they found."""
    connection = op.get_bind()
    there = sa.inspect(connection)
    for table in _BASELINE.sorted_tables:
        if there.has_table(table.name):
            _check(table, {column["name"] for column in there.get_columns(table.name)})
    _BASELINE.create_all(connection)


def _check(table: sa.Table, found: set[str]) -> None:
    missing, unknown = sorted({*table.columns.keys()} - found), sorted(found - {*table.columns.keys()})
    if missing or unknown:
        differences = [f"lacks {', '.join(missing)}"] if missing else []
        differences += [f"has {', '.join(unknown)} besides"] if unknown else []
        raise StoreError(
            f"the record store has no schema version, and its table {table.name} is not as Proctor made it: it "
            f"{' and '.join(differences)}; nothing was changed. Bring back a backup, or the columns, and try again"
        )
