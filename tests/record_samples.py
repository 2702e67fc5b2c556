"""Logs of decisions for tests, made by the store itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from proctor.domain.canonical import bytes_digest
from proctor.domain.record.attestation import STATEMENT_PAYLOAD, signed_bytes, statement_bytes
from proctor.domain.record.entry import Entry, EntryKind, LoggedEntry, decision_content, text_digest
from proctor.runtime.records.engine import open_engine
from proctor.runtime.records.store import Records
from proctor.runtime.signing import Ed25519Key

DIGESTS = {name: bytes_digest(name.encode()) for name in ("weights", "fingerprint", "protocol")}


def a_key(seed: int = 1) -> Ed25519Key:
    """A key that is the same for the same seed."""
    return Ed25519Key(Ed25519PrivateKey.from_private_bytes(seed.to_bytes(32, "big")))


def an_event(audit_id: str, report: bytes = b"{}", **other: Any) -> dict[str, Any]:
    """A decision event as the scorer writes it."""
    return {
        "auditId": audit_id,
        "auditSuiteId": "suite",
        "modelId": "org/modèle",
        "modelDigest": DIGESTS["weights"],
        "outcome": "approve",
        "reasons": [{"code": "clean", "text": "Both upper bounds are within the limits."}],
        "fingerprint": DIGESTS["fingerprint"],
        "protocolDigest": DIGESTS["protocol"],
        "reportDigest": bytes_digest(report),
        "reportPath": "/home/reports/report.html",
        "nItems": 500,
        **other,
    }


def a_log(n: int, key: Ed25519Key | None = None, *, unsigned: Sequence[int] = (), start: int = 1) -> list[LoggedEntry]:
    """A log of so many decisions, made by the definition and not by the store.

    Args:
        n: entries.
        key: signs them; by default `a_key()`.
        unsigned: numbers of entries that nobody signed.
        start: differs in the audits of two logs.
    """
    key = key or a_key()
    log, previous = list[LoggedEntry](), None
    for number in range(1, n + 1):
        audit_id = f"audit{start + number}-1"
        entry = Entry(
            sequence=number,
            previous=previous,
            time="2026-11-23T05:00:00+00:00",
            kind=EntryKind.DECISION,
            audit_id=audit_id,
            content=decision_content(an_event(audit_id), decided_at="2026-11-23T05:00:00+00:00", files={}),
            signer=None if number in unsigned else key.signer,
            unsigned_because="the disk was full" if number in unsigned else "",
        )
        log.append(written(entry, key))
        previous = log[-1].digest
    return log


def written(entry: Entry, key: Ed25519Key) -> LoggedEntry:
    """An entry as it is kept, signed by the key where it names a signer."""
    message = signed_bytes(STATEMENT_PAYLOAD, statement_bytes(entry.plain()))
    text = entry.text()
    return LoggedEntry(entry.sequence, text, text_digest(text), key.sign(message) if entry.signer else None)


@contextmanager
def by_hand(records_url: str) -> Iterator[sa.Connection]:
    """What whoever can write to the database does: the triggers that keep accidents off are no obstacle to him."""
    engine = open_engine(records_url)
    try:
        with engine.begin() as connection:
            if engine.dialect.name == "postgresql":
                connection.exec_driver_sql("ALTER TABLE IF EXISTS decision_log DISABLE TRIGGER ALL")
            else:
                for change in ("update", "delete"):
                    connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS decision_log_no_{change}")
            yield connection
    finally:
        engine.dispose()


def decide(records_url: str, n: int, key: Ed25519Key | None = None) -> list[str]:
    """Put so many decisions on record; the audits' ids."""
    audits = list[str]()
    with closing(Records(records_url)) as records:
        for number in range(n):
            audit_id = records.create_audit(f"subject{number}", "{}", {}).audit_id
            assert records.decide(audit_id, an_event(audit_id), key=key or a_key())
            audits.append(audit_id)
    return audits


def lay(folder: Path, name: str, data: bytes) -> Path:
    """A file in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    return path
