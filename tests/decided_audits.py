"""Audits on record as the scorer leaves them: decided, logged, and with their reports."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from proctor.domain.canonical import bytes_digest
from proctor.domain.decision import DecisionOutcome
from proctor.gateway.audits import LocalDesk
from proctor.router.inputs import AuditInputs
from proctor.runtime.files import write_atomic
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.signing import Ed25519Key
from proctor.scorer.page.html import render
from proctor.scorer.report.document import Report, RunFacts, to_json
from proctor.scorer.report.event import event_of
from tests.record_samples import a_key
from tests.report_samples import approved, blocked, in_review

_MAKERS = {
    DecisionOutcome.APPROVE: approved,
    DecisionOutcome.BLOCK: blocked,
    DecisionOutcome.REVIEW: in_review,
}


@cache
def report_with(outcome: DecisionOutcome) -> Report:
    """A report that ends so."""
    return _MAKERS[outcome]().report()


def put_decided(
    desk: LocalDesk,
    inputs: AuditInputs,
    report: Report,
    *,
    subject: str = "decided",
    key: Ed25519Key | None = None,
    lies_here: bool = True,
) -> str:
    """Put a decided audit with its report on record; its id.

    Args:
        desk: whose stores it is put in.
        inputs: of any audit.
        report: what it came to.
        subject: of which it is an audit.
        key: signs the entry; by default `a_key()`.
        lies_here: whether the scorer ran on this machine.
    """
    records, document = desk.records, to_json(report)
    digest = desk.artifacts().put(document)
    suite = report.suite.model_dump_json(by_alias=True)
    audit_id = records.create_audit(subject, suite, inputs.plain()).audit_id
    path = desk.settings.home / "reports" / audit_id / "report.html"
    files = {"report.json": document, "report.html": render(report, run=RunFacts(audit_id=audit_id)).encode()}
    if lies_here:
        for name, content in files.items():
            write_atomic(path.with_name(name), content)
    event = event_of(audit_id, report, digest, str(path if lies_here else Path("/elsewhere/report.html")))
    digests = {name: bytes_digest(content) for name, content in files.items()}
    assert records.decide(audit_id, event.plain(), files=digests, key=key or a_key())
    assert records.advance(audit_id, AuditState.DECIDED, expected=[AuditState.CREATED])
    return audit_id
