"""The attestations of an audit's entries, as files beside its report."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from proctor.domain.canonical import canonical_json
from proctor.domain.record.attestation import ATTESTATION, entry_envelope
from proctor.domain.record.entry import EntryKind, plain_of
from proctor.runtime.files import write_atomic
from proctor.runtime.records.store import Records

logger = logging.getLogger(__name__)

#: Of every attestation that lies in a report's folder.
ATTESTATIONS: Final = "attestation*.json"


def lay_down_attestations(records: Records, home: Path, audit_id: str) -> None:
    """Put what the log says of an audit beside its report, for other tools, and as a witness of the log.

    One that is there stays: what it bears witness to is what was written first. The record stands without it, so what
    cannot be written is said in the log of the program alone.

    Args:
        records: the record store.
        home: whose `reports` hold the report, as far as it lies on this machine.
        audit_id: the audit.
    """
    folder = home / "reports" / audit_id
    try:
        for logged in records.logged(audit_id):
            entry = plain_of(logged.text)
            # By its number: an audit may be signed off more than once.
            decides = entry["kind"] == EntryKind.DECISION
            path = folder / (ATTESTATION if decides else f"attestation-{logged.sequence}.json")
            if not path.exists():
                write_atomic(path, canonical_json(entry_envelope(entry, logged.signature)))
    except (OSError, ValueError, LookupError) as error:
        logger.warning("audit %s: its attestations are not all beside the report: %s", audit_id, error)
