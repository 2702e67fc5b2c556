"""The event in which the decision of a report leaves. Pure."""

from __future__ import annotations

from proctor.domain.decision import DecisionEvent
from proctor.scorer.report.document import Report


def event_of(audit_id: str, report: Report, digest: str, path: str) -> DecisionEvent:
    """Lay out a report's decision as an event.

    Args:
        audit_id: the run's, which stands in no report.
        report: the report.
        digest: of its document, `report_digest(report)`.
        path: of its page, on the machine that scored.
    """
    return DecisionEvent.model_validate(
        {
            "auditId": audit_id,
            "auditSuiteId": report.suite.audit_suite_id,
            "modelId": report.subject.model_id,
            "modelDigest": report.subject.digest,
            "outcome": report.decision.outcome,
            "reasons": report.decision.reasons,
            "fingerprint": report.fingerprint,
            "protocolDigest": report.protocol_digest,
            "reportDigest": digest,
            "reportPath": path,
            "nItems": report.counts.items_audited,
            "scope": report.decision.scope,
            "weights": report.subject.weights,
        }
    )
