"""What a registry is given of a version: what stands, with its evidence, from the record and the artifact store."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from proctor.domain.canonical import bytes_digest, canonical_json
from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import NewerVersionError, RegistryError, StoreError
from proctor.domain.estimate import Estimate
from proctor.domain.record.attestation import ATTESTATION, entry_envelope
from proctor.domain.record.entry import EntryKind, plain_of
from proctor.domain.standing import StandingKind
from proctor.domain.version_decision import SuiteDecision, VersionDecision, version_decision
from proctor.registry.version_record import (
    MAX_SUITES,
    REPORT,
    REPORT_DIGEST,
    REPORT_PAGE,
    SUITE,
    SuiteRecord,
    VersionRecord,
    attestation_digest,
    sha256_of,
)
from proctor.runtime.artifacts.store import ArtifactStore
from proctor.runtime.public_address import report_address
from proctor.runtime.records.audited_versions import OnRecord, VersionName
from proctor.runtime.records.store import Records

logger = logging.getLogger(__name__)

#: A report's page that is larger stays where it is: MLflow takes it, and no browser shows it.
_MAX_FILE_BYTES: Final = 24 << 20


class Sources(NamedTuple):
    """Where what stands is read."""

    records: Records
    artifacts: ArtifactStore
    dashboard_url: str | None
    clock: Callable[[], datetime]


def standing_record(sources: Sources, event: DecisionEvent, version: VersionName) -> VersionRecord:
    """What stands of the version that an event's audit is of.

    Args:
        sources: where it is read.
        event: the decision, as it is on record, of an audit of the version's weights.
        version: as its registry names it.

    Raises:
        RegistryError: the audit has no decision that counts.
        NewerVersionError: a decision needs a newer Proctor.
        StoreError: the record store does not answer.
    """
    found = sources.records.versions.on_record(version, event.model_id, event.model_digest)
    decision = version_decision(found.asked, found.standings, sources.clock())
    deciding = None if decision is None else decision.deciding(found.events)
    if decision is None or deciding is None:
        raise RegistryError(
            f"what stands for audit {event.audit_id} is not on record, so nothing is written: `proctor record verify` "
            "says what is wrong with its decision"
        )
    evidence = {one.audit_id: _Evidence(sources, found.events[one.audit_id]) for one in _audited(decision, found)}
    chosen = evidence.get(deciding.audit_id) or _Evidence(sources, deciding)
    return VersionRecord(
        event=deciding.model_copy(update={"outcome": decision.outcome, "reasons": decision.reasons(found.events)}),
        suites=tuple(_suite(one, found, evidence, sources) for one in decision.suites),
        contamination_score=chosen.contamination_score,
        report_url=_report_url(sources, deciding),
        attestation=chosen.attestation_digest,
        sequence=decision.sequence,
        files={audit_id: one.files for audit_id, one in evidence.items()},
    )


class _Evidence:
    """What is kept of an audit. What is gone is left out, and said in the worker's log."""

    def __init__(self, sources: Sources, event: DecisionEvent) -> None:
        self._sources = sources
        files: dict[str, bytes | None] = {SUITE: sources.records.audit(event.audit_id).suite.encode()}
        document = self._kept(event.report_digest)
        decided, envelope = self._entry(event.audit_id)
        page = (decided.get("files") or {}).get(REPORT_PAGE)
        files[REPORT] = document
        files[REPORT_PAGE] = self._kept(page) if isinstance(page, str) else None
        files[ATTESTATION] = envelope
        if document is not None:
            files[REPORT_DIGEST] = f"{sha256_of(event.report_digest)}  {REPORT}\n".encode()
        self.files: Mapping[str, bytes] = {
            name: content for name, content in files.items() if content is not None and len(content) <= _MAX_FILE_BYTES
        }
        self.contamination_score = None if document is None else _score(document)
        self.attestation_digest = None if envelope is None else attestation_digest(envelope)

    def _kept(self, digest: str) -> bytes | None:
        try:
            content = self._sources.artifacts.get(digest)
        except StoreError as error:
            logger.warning("evidence is not logged with the version: %s", error)
            return None
        return content if bytes_digest(content) == digest else None

    def _entry(self, audit_id: str) -> tuple[dict[str, Any], bytes | None]:
        """The content of the decision's entry in the log, and its attestation."""
        for logged in self._sources.records.logged(audit_id):
            try:
                entry = plain_of(logged.text)
                if entry["kind"] == EntryKind.DECISION:
                    return entry["content"], canonical_json(entry_envelope(entry, logged.signature))
            except (ValueError, LookupError, TypeError) as error:
                logger.warning("audit %s: no attestation is logged with the version: %s", audit_id, error)
        return {}, None


def _audited(decision: VersionDecision, found: OnRecord) -> list[DecisionEvent]:
    audits = [one.audit_id for one in decision.suites[:MAX_SUITES] if one.audit_id is not None]
    return [found.events[audit_id] for audit_id in audits if audit_id in found.events]


def _suite(one: SuiteDecision, found: OnRecord, evidence: Mapping[str, _Evidence], sources: Sources) -> SuiteRecord:
    event = found.events.get(one.audit_id or "")
    kept = evidence.get(one.audit_id or "")
    return SuiteRecord(
        audit_suite_id=one.audit_suite_id,
        outcome=one.outcome,
        said=_said(one),
        event=event,
        contamination_score=None if kept is None else kept.contamination_score,
        report_url="" if event is None else _report_url(sources, event),
    )


def _said(one: SuiteDecision) -> str:
    standing = one.standing
    if standing is None:
        return one.waiting
    if standing.kind is StandingKind.SIGN_OFF and standing.by is not None:
        return f"{standing.outcome.value} signed by {standing.by.name} after {standing.decided.value}"
    if standing.kind is StandingKind.EXPIRY:
        return standing.reason or "the approval has ended"
    return f"decided on {standing.at[:10]}"


def _report_url(sources: Sources, event: DecisionEvent) -> str:
    if sources.dashboard_url is None:
        return event.report_path
    return report_address(sources.dashboard_url, event.audit_id)


def _score(document: bytes) -> Estimate | None:
    """The Contamination Score of a report; None where the channel did not run, or the report is none."""
    try:
        found = (json.loads(document).get("evidence") or {}).get("perturbation")
        return None if found is None else Estimate.model_validate(found["contamination_score"])
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError, ValidationError, NewerVersionError):
        logger.warning("a report says nothing readable of its Contamination Score")
        return None
