"""The report of an audit, as it was written or made anew from its document, and nothing that is not what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from proctor.domain.canonical import bytes_digest
from proctor.domain.errors import StoreError
from proctor.domain.record.entry import EntryKind, plain_of
from proctor.gateway.audits import LocalDesk
from proctor.gateway.desk import UnknownAuditError
from proctor.runtime.records.decisions import decision_of
from proctor.scorer.page.html import render
from proctor.scorer.report.document import Report, RunFacts

#: A report has its style in itself and no script, and is held to that.
REPORT_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox"
)
#: As Proctor makes them: no other is made a path of.
_AUDIT_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
#: Of a page with everything open.
_MOST_BYTES: Final = 64 << 20


def page_of(desk: LocalDesk, audit: str) -> bytes:
    """The report's page: the scorer's, where it lies here and is what the decision log says, else made anew.

    Raises:
        UnknownAuditError: there is no such audit, or it has no decision yet.
        StoreError: its document is nowhere, or is another version's.
    """
    audit_id = desk.find(audit)
    digest = _report_digest(desk, audit_id)
    for written in _written(desk, audit_id, "report.html"):
        if bytes_digest(written) in _files(desk, audit_id, "report.html"):
            return written
    document = _document(desk, audit_id, digest)
    try:
        report = Report.model_validate_json(document)
    except ValidationError:
        raise StoreError(
            f"the report of audit {audit_id} was written by another version of Proctor: its page lies with whoever "
            "scored it, and its document can be downloaded"
        ) from None
    return render(report, run=RunFacts(audit_id=audit_id), digest=digest).encode()


def document_of(desk: LocalDesk, audit: str) -> bytes:
    """The report's document, which has the digest that the decision names.

    Raises:
        UnknownAuditError: there is no such audit, or it has no decision yet.
        StoreError: it is nowhere.
    """
    audit_id = desk.find(audit)
    return _document(desk, audit_id, _report_digest(desk, audit_id))


def _report_digest(desk: LocalDesk, audit_id: str) -> str:
    event = desk.records.decision(audit_id)
    if event is None:
        raise UnknownAuditError(f"audit {audit_id} has no report yet: it has not been decided")
    return decision_of(audit_id, event).report_digest


def _document(desk: LocalDesk, audit_id: str, digest: str) -> bytes:
    for written in _written(desk, audit_id, "report.json"):
        if bytes_digest(written) == digest:
            return written
    return desk.artifacts().get(digest)


def _written(desk: LocalDesk, audit_id: str, name: str) -> Iterator[bytes]:
    """What the scorer laid into this home under a name, if it did. The path in a decision's event is not gone by."""
    if not _AUDIT_ID.fullmatch(audit_id):
        return
    path: Path = desk.settings.home / "reports" / audit_id / name
    try:
        if path.stat().st_size <= _MOST_BYTES:
            yield path.read_bytes()
    except OSError:
        return


def _files(desk: LocalDesk, audit_id: str, name: str) -> Iterator[Any]:
    """The digests of a file that the decision log has."""
    for logged in desk.records.logged(audit_id):
        try:
            entry = plain_of(logged.text)
            if entry["kind"] == EntryKind.DECISION:
                yield entry["content"]["files"].get(name)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue
