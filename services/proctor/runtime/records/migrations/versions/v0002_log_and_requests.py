"""The decision log, what holds by it, what callers did, audits that a registry asks for, trends, and notifications.

Decisions that are on record already are taken in, in their order, as entries marked so. A Proctor of version 1 does not
look at the other tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from proctor.domain.canonical import bytes_digest, canonical_json
from proctor.domain.problems import visible

revision = "0002"
down_revision = "0001"

_ONLY_ADDED = "the decision log is only ever added to"
_PAGE = 500


def upgrade() -> None:
    """Make the tables. What is written in the log from then on cannot be changed."""
    _make_decision_log()
    _make_audit_requests()
    _make_standings()
    _make_lists_quick()
    _make_actions()
    _make_registry_writes()
    _make_trends()
    _make_notifications()


def _make_decision_log() -> None:
    op.create_table(
        "decision_log",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("audit_id", sa.String(64), nullable=False, index=True),
        sa.Column("entry", sa.Text, nullable=False),
        sa.Column("digest", sa.String(71), nullable=False),
        sa.Column("signature", sa.String(88)),
    )
    op.create_table(
        "decision_log_head",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(71)),
    )
    sequence, digest = _take_in(op.get_bind())
    op.execute(
        sa.text("INSERT INTO decision_log_head (id, sequence, digest) VALUES (1, :sequence, :digest)").bindparams(
            sequence=sequence, digest=digest
        )
    )
    _only_add("decision_log", _ONLY_ADDED)


def _make_audit_requests() -> None:
    op.create_table(
        "audit_requests",
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
    )
    op.create_index("audit_requests_waiting", "audit_requests", ["state", "due_at"])
    op.create_table(
        "registry_cursors",
        sa.Column("name", sa.String(80), primary_key=True),
        sa.Column("cursor", sa.Text, nullable=False),
    )


def _make_standings() -> None:
    op.create_table(
        "standings",
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
        sa.Column("waits", sa.Boolean, nullable=False),
        sa.Column("told", sa.Integer, nullable=False),
    )
    _derive_standings(op.get_bind())
    op.create_index("standings_newest", "standings", ["at", "audit_id"])
    op.create_index("standings_waiting", "standings", ["waits", "at", "audit_id"])
    op.create_index("standings_expiring", "standings", ["outcome", "expires_at", "audit_id"])
    op.create_index("standings_of_weights", "standings", ["model_digest"])
    op.create_index("standings_of_model", "standings", ["model_id", "audit_suite_id"])
    untold = sa.text("told < sequence")
    op.create_index("standings_untold", "standings", ["audit_id"], sqlite_where=untold, postgresql_where=untold)


def _derive_standings(connection: sa.Connection) -> None:
    """Write what holds for each decision that was taken in: what was decided."""
    insert = sa.text(
        "INSERT INTO standings (audit_id, outcome, decided, kind, reason, reference, at, sequence, audit_suite_id, "
        "model_id, model_digest, protocol_digest, ends_when_superseded, waits, told) VALUES (:audit_id, :outcome, "
        ":outcome, 'decision', '', '', :at, :sequence, :suite, :model, :weights, :protocol, :ends, :waits, :sequence)"
    )
    page = sa.text("SELECT sequence, entry FROM decision_log WHERE sequence > :last ORDER BY sequence LIMIT :most")
    last = 0
    while found := connection.execute(page, {"last": last, "most": _PAGE}).all():
        last = found[-1].sequence
        rows = [row for one in found if (row := _standing(one.sequence, json.loads(one.entry))) is not None]
        if rows:
            connection.execute(insert, rows)


def _standing(sequence: int, entry: dict[str, Any]) -> dict[str, Any] | None:
    event = entry["content"]["event"]
    if not isinstance(event, dict) or event.get("outcome") not in ("approve", "review", "block"):
        return None
    names = {
        "suite": "auditSuiteId", "model": "modelId", "weights": "modelDigest", "protocol": "protocolDigest",
    }  # fmt: skip
    return {
        "audit_id": entry["audit_id"],
        "outcome": event["outcome"],
        "at": entry["content"]["decided_at"],
        "sequence": sequence,
        **{name: visible(str(event.get(key) or ""))[:400] for name, key in names.items()},
        "ends": False,
        "waits": event["outcome"] != "approve",
    }


def _make_lists_quick() -> None:
    """Copy what audits are looked for by out of their JSON, and lay indices over it."""
    for name, length in (("model_id", 200), ("suite_id", 200), ("submitter", 64), ("outcome", 16)):
        op.add_column("audits", sa.Column(name, sa.String(length)))
    update = sa.text(
        "UPDATE audits SET model_id = :model_id, suite_id = :suite_id, submitter = :submitter, outcome = :outcome "
        "WHERE audit_id = :audit_id"
    )
    after, page = (
        "",
        sa.text(
            "SELECT audits.audit_id, suite, inputs, event FROM audits LEFT JOIN decisions USING (audit_id) "
            "WHERE audits.audit_id > :after ORDER BY audits.audit_id LIMIT :most"
        ),
    )
    connection = op.get_bind()
    while rows := connection.execute(page, {"after": after, "most": _PAGE}).all():
        connection.execute(update, [{"audit_id": row.audit_id, **_looked_for_by(row)} for row in rows])
        after = rows[-1].audit_id
    op.create_index(
        "audits_newest",
        "audits",
        ["created_at", "audit_id", "state", "outcome", "model_id", "suite_id", "submitter"],
    )
    op.create_index("audits_of_model", "audits", ["model_id", "created_at", "audit_id"])
    op.create_index("audits_of_suite", "audits", ["suite_id", "created_at", "audit_id"])
    op.create_index("audits_in_state", "audits", ["state", "created_at", "audit_id"])
    op.create_index("audits_of_outcome", "audits", ["outcome", "created_at", "audit_id"])


def _looked_for_by(row: Any) -> dict[str, str | None]:
    suite, inputs, event = _said(row.suite), _said(row.inputs), _said(row.event or "")
    model = suite.get("model_config")
    return {
        "model_id": _word(model.get("model_id") if isinstance(model, dict) else None, 200),
        "suite_id": _word(suite.get("audit_suite_id"), 200),
        "submitter": _word(inputs.get("submitter", "local"), 64),
        "outcome": _word(event.get("outcome"), 16),
    }


def _said(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _word(value: Any, most: int) -> str | None:
    return value[:most] if isinstance(value, str) and value.isprintable() else None


def _make_actions() -> None:
    op.create_table(
        "actions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("audit_id", sa.String(64), index=True),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("via", sa.Text, nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    _only_add("actions", "actions are only ever added to")


def _make_registry_writes() -> None:
    op.add_column("audit_requests", sa.Column("suite_id", sa.Text, nullable=False, server_default=""))
    op.create_index("audit_requests_of_version", "audit_requests", ["registry", "model", "version"])
    op.create_table(
        "registry_writes",
        sa.Column("audit_id", sa.String(64), primary_key=True),
        sa.Column("registry_version", sa.String(200)),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("at", sa.String(32), nullable=False),
    )


def _make_trends() -> None:
    """Tables of figures, which audits that were decided before come into by `proctor records measure`."""
    op.create_table(
        "audit_measures",
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
    )
    op.create_index("audit_measures_of_model", "audit_measures", ["model_id", "decided_at"])
    op.create_index("audit_measures_of_benchmark", "audit_measures", ["benchmark_digest", "decided_at"])
    op.create_index("audit_measures_by_name", "audit_measures", ["benchmark_name", "decided_at"])
    op.create_index("audit_measures_by_content", "audit_measures", ["content_digest", "decided_at"])
    op.create_index("audit_measures_newest", "audit_measures", ["decided_at"])
    op.create_index("audit_measures_of_submitter", "audit_measures", ["submitter", "decided_at"])
    op.create_table(
        "item_lists",
        sa.Column("digest", sa.String(80), primary_key=True),
        sa.Column("ids", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "item_counts",
        sa.Column("audit_id", sa.String(64), primary_key=True),
        sa.Column("item_list", sa.String(80), nullable=False),
        sa.Column("counts", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "baselines",
        sa.Column("audit_id", sa.String(64), primary_key=True),
        sa.Column("model_id", sa.String(200), nullable=False),
        sa.Column("suite_id", sa.Text, nullable=False),
        sa.Column("registered_name", sa.Text, nullable=False),
        sa.Column("registered_version", sa.Text, nullable=False),
        sa.Column("alias", sa.Text),
        sa.Column("submitter", sa.String(64), nullable=False),
        sa.Column("created_at", sa.String(32), nullable=False),
    )
    op.create_index("baselines_of_model", "baselines", ["model_id", "created_at"])
    _make_costs()


def _make_costs() -> None:
    used = ("trials", "input_tokens", "output_tokens")
    unpriced = ("unpriced_trials", "unpriced_input_tokens", "unpriced_output_tokens")
    op.create_table(
        "audit_costs",
        sa.Column("audit_id", sa.String(64), primary_key=True),
        sa.Column("month", sa.String(7), primary_key=True),
        sa.Column("submitter", sa.String(64), nullable=False),
        sa.Column("suite_id", sa.Text, nullable=False),
        sa.Column("model_id", sa.String(200), nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in used),
        sa.Column("cost", sa.Double, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in unpriced),
    )
    whose = ("month", "submitter", "suite_id", "model_id")
    op.create_index("audit_costs_of_month", "audit_costs", [*whose, *used, "cost", *unpriced])


def _make_notifications() -> None:
    op.create_table(
        "notifications",
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
    )
    op.create_index("notifications_due", "notifications", ["state", "due_at"])


def _take_in(connection: sa.Connection) -> tuple[int, str | None]:
    """Write an entry for each decision; the number and the digest of the last one."""
    # The form of an entry as it is in this version, whatever it becomes later.
    insert = sa.text(
        "INSERT INTO decision_log (sequence, audit_id, entry, digest) VALUES (:sequence, :audit_id, :entry, :digest)"
    )
    now, sequence, digest = datetime.now(UTC).isoformat(timespec="seconds"), 0, None
    for page in _decisions(connection):
        rows = []
        for audit_id, event, decided_at in page:
            sequence += 1
            entry = canonical_json(
                {
                    "version": 1,
                    "sequence": sequence,
                    "previous": digest,
                    "time": now,
                    "kind": "decision",
                    "audit_id": audit_id,
                    "content": _content(event, decided_at),
                    "signer": None,
                    "unsigned_because": "taken in: it was decided before there was a log",
                }
            )
            digest = bytes_digest(entry)
            rows.append({"sequence": sequence, "audit_id": audit_id, "entry": entry.decode(), "digest": digest})
        connection.execute(insert, rows)
    return sequence, digest


def _decisions(connection: sa.Connection) -> Iterator[list[Any]]:
    after: dict[str, str] = {"at": "", "id": ""}
    # By their place and not by an offset: a page costs the same wherever it is.
    page = sa.text(
        "SELECT audit_id, event, decided_at FROM decisions "
        "WHERE decided_at > :at OR (decided_at = :at AND audit_id > :id) ORDER BY decided_at, audit_id LIMIT :most"
    )
    while rows := connection.execute(page, {**after, "most": _PAGE}).all():
        yield list(rows)
        after = {"at": rows[-1].decided_at, "id": rows[-1].audit_id}


def _content(event: str, decided_at: str) -> dict[str, Any]:
    names = {
        "report": "reportDigest", "fingerprint": "fingerprint", "protocol": "protocolDigest", "weights": "modelDigest",
    }  # fmt: skip
    content: dict[str, Any] = {"decided_at": decided_at, "files": {}, "taken_in": True}
    try:
        said = json.loads(event)
        canonical_json(said)
        return {**content, "event": said, "digests": {name: said.get(key) for name, key in names.items()}}
    except (ValueError, AttributeError):
        # Edited by hand, or with what canonical JSON has no form for: kept as it is, and no store is lost for it.
        return {**content, "event": None, "event_text": event, "digests": dict.fromkeys(names)}


def _only_add(table: str, words: str) -> None:
    """Have the database refuse to change or delete a table's rows."""
    if op.get_bind().dialect.name != "postgresql":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{words}'); END"
            )
        return
    op.execute(
        f"CREATE FUNCTION {table}_is_only_added_to() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{words}'; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_is_only_added_to()"
    )
