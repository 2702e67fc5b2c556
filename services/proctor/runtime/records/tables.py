"""Tables of the record store."""

from __future__ import annotations

import json

import sqlalchemy as sa

METADATA = sa.MetaData()

AUDITS = sa.Table(
    "audits",
    METADATA,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("subject", sa.String(64), nullable=False, index=True),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("suite", sa.Text, nullable=False),
    sa.Column("inputs", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("detail", sa.Text, nullable=False, default=""),
    sa.Column("created_at", sa.String(32), nullable=False),
    # What lists are looked through by, beside where it comes from: the suite, the inputs, and what stands (`outcome`).
    # A row of an earlier Proctor's has none of it until `AuditList.fill_in`.
    sa.Column("model_id", sa.String(200)),
    sa.Column("suite_id", sa.String(200)),
    sa.Column("submitter", sa.String(64)),
    sa.Column("outcome", sa.String(16)),
    sa.UniqueConstraint("subject", "ordinal"),
    # All that a list is looked through by, so that what is rare is found without the rows, whose suites are long.
    sa.Index("audits_newest", "created_at", "audit_id", "state", "outcome", "model_id", "suite_id", "submitter"),
    sa.Index("audits_of_model", "model_id", "created_at", "audit_id"),
    sa.Index("audits_of_suite", "suite_id", "created_at", "audit_id"),
    sa.Index("audits_in_state", "state", "created_at", "audit_id"),
    sa.Index("audits_of_outcome", "outcome", "created_at", "audit_id"),
)
LIBRARY = sa.Table(
    "variant_library",
    METADATA,
    sa.Column("key", sa.String(80), primary_key=True),
    sa.Column("row", sa.Text, nullable=False),
)
#: What made a row of the library. A table of its own, because rows were written before it was.
LIBRARY_ORIGINS = sa.Table(
    "variant_library_origins",
    METADATA,
    sa.Column("key", sa.String(80), primary_key=True),
    sa.Column("source", sa.String(16), nullable=False),
    sa.Column("proctor", sa.String(64), nullable=False),
    sa.Column("gate", sa.String(64), nullable=False),
    sa.Column("file", sa.String(80), nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
)
FIDELITIES = sa.Table(
    "strategy_fidelities",
    METADATA,
    sa.Column("key", sa.String(80), primary_key=True),
    sa.Column("strategy", sa.String(200), nullable=False, index=True),
    sa.Column("benchmark", sa.String(128), nullable=False, index=True),
    sa.Column("row", sa.Text, nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
)
DECISIONS = sa.Table(
    "decisions",
    METADATA,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("decided_at", sa.String(32), nullable=False),
)
REGISTRATIONS = sa.Table(
    "registrations",
    METADATA,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("registry_version", sa.String(200), nullable=False),
)
#: What became of the last attempt to write an audit's decision to the registry.
REGISTRY_WRITES = sa.Table(
    "registry_writes",
    METADATA,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("registry_version", sa.String(200)),
    sa.Column("outcome", sa.String(16), nullable=False),
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("at", sa.String(32), nullable=False),
)
#: The decision log. Rows are added and never changed: the migration lays triggers that refuse the rest.
DECISION_LOG = sa.Table(
    "decision_log",
    METADATA,
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("audit_id", sa.String(64), nullable=False, index=True),
    sa.Column("entry", sa.Text, nullable=False),
    sa.Column("digest", sa.String(71), nullable=False),
    sa.Column("signature", sa.String(88)),
)
#: The log's end, in one row. Whoever adds an entry writes it first, and so holds up the next one who does.
DECISION_LOG_HEAD = sa.Table(
    "decision_log_head",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("sequence", sa.Integer, nullable=False),
    sa.Column("digest", sa.String(71)),
)
#: What holds for each decided audit now. Derived: it follows from the log, whose entry is written with it.
STANDINGS = sa.Table(
    "standings",
    METADATA,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("outcome", sa.String(16), nullable=False),
    sa.Column("decided", sa.String(16), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("by_name", sa.Text),
    sa.Column("by_via", sa.Text),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("reference", sa.Text, nullable=False),
    sa.Column("at", sa.String(32), nullable=False),
    sa.Column("expires_at", sa.String(32)),
    sa.Column("sequence", sa.Integer, nullable=False),
    sa.Column("audit_suite_id", sa.Text, nullable=False),
    sa.Column("model_id", sa.Text, nullable=False),
    sa.Column("model_digest", sa.Text, nullable=False),
    sa.Column("protocol_digest", sa.Text, nullable=False),
    sa.Column("ends_when_superseded", sa.Boolean, nullable=False),
    #: Whether a person is to look.
    sa.Column("waits", sa.Boolean, nullable=False),
    #: The entry of which the registry's queue was told.
    sa.Column("told", sa.Integer, nullable=False),
    sa.Index("standings_newest", "at", "audit_id"),
    sa.Index("standings_waiting", "waits", "at", "audit_id"),
    sa.Index("standings_expiring", "outcome", "expires_at", "audit_id"),
    sa.Index("standings_of_weights", "model_digest"),
    sa.Index("standings_of_model", "model_id", "audit_suite_id"),
    sa.Index(
        "standings_untold",
        "audit_id",
        sqlite_where=sa.text("told < sequence"),
        postgresql_where=sa.text("told < sequence"),
    ),
)
#: Audits that were asked for, each once: by a registry's event, by the reconciler, or under a caller's own key.
AUDIT_REQUESTS = sa.Table(
    "audit_requests",
    METADATA,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("registry", sa.String(32), nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("suite_digest", sa.String(80), nullable=False),
    sa.Column("origin", sa.String(32), nullable=False),
    sa.Column("facts", sa.Text, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("audit_id", sa.String(64)),
    sa.Column("due_at", sa.BigInteger, nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
    #: The suite's id; empty where it is not known.
    sa.Column("suite_id", sa.Text, nullable=False, server_default=""),
    sa.Index("audit_requests_waiting", "state", "due_at"),
    sa.Index("audit_requests_of_version", "registry", "model", "version"),
)
#: How far the reconciler has read a registry.
REGISTRY_CURSORS = sa.Table(
    "registry_cursors",
    METADATA,
    sa.Column("name", sa.String(80), primary_key=True),
    sa.Column("cursor", sa.Text, nullable=False),
)
#: Who is told of what happened to an audit, each once, and what became of it.
NOTIFICATIONS = sa.Table(
    "notifications",
    METADATA,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("occasion", sa.String(64), primary_key=True),
    sa.Column("recipient", sa.String(71), primary_key=True),
    sa.Column("name", sa.String(400), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("claim", sa.String(32)),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("due_at", sa.BigInteger, nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
    sa.Column("changed_at", sa.String(32), nullable=False),
    sa.Index("notifications_due", "state", "due_at"),
)
#: What callers did. Rows are added and never changed, as in the log.
ACTIONS = sa.Table(
    "actions",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("audit_id", sa.String(64), index=True),
    sa.Column("action", sa.String(32), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("via", sa.Text, nullable=False),
    sa.Column("at", sa.String(32), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    # An id is given once, even where somebody took the last row away.
    sqlite_autoincrement=True,
)


def started_by(submitter: str) -> sa.ColumnElement[bool]:
    """That an audit was started last by a submitter."""
    # As the inputs are written. No text in them can look so: its quotes are escaped. Of a row that an earlier Proctor
    # wrote beside this one, which filled in no column.
    written = f'"submitter": {json.dumps(submitter)}'
    not_filled_in = sa.and_(AUDITS.c.submitter.is_(None), AUDITS.c.inputs.contains(written, autoescape=True))
    return sa.or_(AUDITS.c.submitter == submitter, not_filled_in)


#: The figures of each decided audit, for comparing audits with each other.
AUDIT_MEASURES = sa.Table(
    "audit_measures",
    METADATA,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("suite_id", sa.Text, nullable=False),
    sa.Column("model_id", sa.String(200), nullable=False),
    sa.Column("model_digest", sa.String(80), nullable=False),
    sa.Column("benchmark_name", sa.String(128), nullable=False),
    sa.Column("benchmark_digest", sa.String(80), nullable=False),
    sa.Column("content_digest", sa.String(80)),
    sa.Column("protocol_digest", sa.String(80), nullable=False),
    sa.Column("verdict", sa.String(16), nullable=False),
    sa.Column("outcome", sa.String(16), nullable=False),
    sa.Column("score", sa.Double),
    sa.Column("score_low", sa.Double),
    sa.Column("score_high", sa.Double),
    sa.Column("inflation", sa.Double),
    sa.Column("inflation_low", sa.Double),
    sa.Column("inflation_high", sa.Double),
    sa.Column("level", sa.Double, nullable=False),
    sa.Column("n_items", sa.Integer, nullable=False),
    sa.Column("submitter", sa.String(64), nullable=False),
    sa.Column("decided_at", sa.String(32), nullable=False),
    sa.Index("audit_measures_of_model", "model_id", "decided_at"),
    sa.Index("audit_measures_of_benchmark", "benchmark_digest", "decided_at"),
    sa.Index("audit_measures_by_name", "benchmark_name", "decided_at"),
    sa.Index("audit_measures_by_content", "content_digest", "decided_at"),
    sa.Index("audit_measures_newest", "decided_at"),
    sa.Index("audit_measures_of_submitter", "submitter", "decided_at"),
)
#: The ids of an audit's items, once for all audits that asked the same ones.
ITEM_LISTS = sa.Table(
    "item_lists",
    METADATA,
    sa.Column("digest", sa.String(80), primary_key=True),
    sa.Column("ids", sa.LargeBinary, nullable=False),
)
#: What a model answered to each of them, in a row an audit.
ITEM_COUNTS = sa.Table(
    "item_counts",
    METADATA,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("item_list", sa.String(80), nullable=False),
    sa.Column("counts", sa.LargeBinary, nullable=False),
)
#: Audits of what was in production when somebody said so: the floor of later versions.
BASELINES = sa.Table(
    "baselines",
    METADATA,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("model_id", sa.String(200), nullable=False),
    sa.Column("suite_id", sa.Text, nullable=False),
    sa.Column("registered_name", sa.Text, nullable=False),
    sa.Column("registered_version", sa.Text, nullable=False),
    sa.Column("alias", sa.Text),
    sa.Column("submitter", sa.String(64), nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
    sa.Index("baselines_of_model", "model_id", "created_at"),
)
#: What an audit used in a month. One that goes on in another month has a row of each.
AUDIT_COSTS = sa.Table(
    "audit_costs",
    METADATA,
    sa.Column("audit_id", sa.String(64), primary_key=True),
    sa.Column("month", sa.String(7), primary_key=True),
    sa.Column("submitter", sa.String(64), nullable=False),
    sa.Column("suite_id", sa.Text, nullable=False),
    sa.Column("model_id", sa.String(200), nullable=False),
    sa.Column("trials", sa.BigInteger, nullable=False),
    sa.Column("input_tokens", sa.BigInteger, nullable=False),
    sa.Column("output_tokens", sa.BigInteger, nullable=False),
    sa.Column("cost", sa.Double, nullable=False),
    sa.Column("unpriced_trials", sa.BigInteger, nullable=False),
    sa.Column("unpriced_input_tokens", sa.BigInteger, nullable=False),
    sa.Column("unpriced_output_tokens", sa.BigInteger, nullable=False),
    # All that a month's sums need: no row is looked up for them.
    sa.Index(
        "audit_costs_of_month",
        "month",
        "submitter",
        "suite_id",
        "model_id",
        "trials",
        "input_tokens",
        "output_tokens",
        "cost",
        "unpriced_trials",
        "unpriced_input_tokens",
        "unpriced_output_tokens",
    ),
)
