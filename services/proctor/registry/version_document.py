"""What stands of a version as one JSON document, for registries that keep files. Pure."""

from __future__ import annotations

from typing import Any, Final

from proctor.domain.decision import DecisionOutcome
from proctor.domain.weights import of_all
from proctor.registry.promotion import HeldVersion
from proctor.registry.version_record import SuiteRecord, VersionRecord, score_words, sha256_of

FORMAT: Final = "proctor-version/1"


def document(record: VersionRecord, version: str) -> dict[str, Any]:
    """All of it but the evidence's files.

    Args:
        record: what stands.
        version: what the registry calls the version.
    """
    return {
        **summary(record, version),
        "reasons": [reason.plain() for reason in record.event.reasons],
        "suites": [_suite(one) for one in record.suites],
    }


def summary(record: VersionRecord, version: str) -> dict[str, Any]:
    """The decision, by what it can be checked, and its figures."""
    event = record.event
    score, interval = score_words(record.contamination_score)
    return {
        "format": FORMAT,
        "decision": event.outcome.value,
        "scope": None if event.scope is None else event.scope.value,
        "model_id": event.model_id,
        "model_digest": event.model_digest,
        "weights": of_all([one.event.weights for one in record.suites if one.event is not None]),
        "version": version,
        "audit_id": event.audit_id,
        "audit_suite_id": event.audit_suite_id,
        "report_sha256": sha256_of(event.report_digest),
        "report_url": record.report_url,
        "fingerprint": event.fingerprint,
        "protocol_digest": event.protocol_digest,
        "contamination_score": score,
        "contamination_score_interval": interval,
        "attestation_sha256": record.attestation,
        "record_entry": record.sequence,
    }


def held_by(said: dict[str, Any], *, name: str, version: str, model_digest: str | None) -> HeldVersion:
    """What a document says of a version, for whoever holds it against the record. It may say anything.

    Args:
        said: the document.
        name: of the model in the registry.
        version: of which it is the document.
        model_digest: of the weights, by whoever knows best.
    """

    def text(key: str) -> str | None:
        value = said.get(key)
        return value if isinstance(value, str) else None

    report = text("report_sha256")
    return HeldVersion(
        name=name,
        version=version,
        model_digest=model_digest,
        audit_id=text("audit_id"),
        outcome=text("decision"),
        report_digest=None if report is None else f"sha256:{report}",
        fingerprint=text("fingerprint"),
    )


def approved_later(said: dict[str, Any], sequence: int) -> bool:
    """Whether a document is of an approval that rests on a later entry of the log."""
    entry = said.get("record_entry")
    return said.get("decision") == DecisionOutcome.APPROVE and type(entry) is int and entry > sequence


def _suite(one: SuiteRecord) -> dict[str, Any]:
    event = one.event
    return {
        "audit_suite_id": one.audit_suite_id,
        "decision": one.outcome.value,
        "said": one.said,
        "audit_id": None if event is None else event.audit_id,
        "report_sha256": None if event is None else sha256_of(event.report_digest),
        "report_url": one.report_url,
        "contamination_score": score_words(one.contamination_score)[0],
    }
