"""The tags of a decision on a model version, in the order in which they are written: evidence first. Pure."""

from __future__ import annotations

import re
from typing import Final

from proctor.domain.canonical import short_id
from proctor.domain.weights import of_all
from proctor.registry.version_record import MAX_SUITES, SuiteRecord, VersionRecord, score_words, sha256_of

DECISION_TAG: Final = "proctor.decision"
#: How far the decision's evidence reaches past the wording: `proctor.domain.scope.Scope`.
SCOPE_TAG: Final = "proctor.scope"
#: What the tag says of a decision of before there was a scope, where that of another audit stands there.
NO_SCOPE: Final = "not recorded"
#: How the digest of the weights is known: `proctor.domain.weights.Weights`.
WEIGHTS_TAG: Final = "proctor.weights"
#: What the tag says where a Proctor of before there were kinds decided.
NO_WEIGHTS: Final = "not recorded"
AUDIT_ID_TAG: Final = "proctor.audit_id"
FINGERPRINT_TAG: Final = "proctor.fingerprint"
REPORT_TAG: Final = "proctor.report_sha256"
#: The entry of the decision log that the version's decision rests on.
ENTRY_TAG: Final = "proctor.record_entry"
#: The run that holds the evidence, where the version has none of its own.
RUN_TAG: Final = "proctor.run_id"
EVIDENCE_TAG: Final = "proctor.evidence"
SUITE_PREFIX: Final = "proctor.suite."
#: What a Proctor wrote of before there were suites; it is read where nothing newer stands, and taken away.
OLD_REPORT_TAG: Final = "proctor.report_digest"
_OLD_TAGS: Final = frozenset({OLD_REPORT_TAG, "proctor.report"})
_OLD_PREFIX: Final = "proctor.audit."

#: The size that every MLflow backend guarantees for a tag's value, in bytes of UTF-8.
MAX_TAG_BYTES: Final = 5_000
_CUT_MARK: Final = " … [cut]"
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_KEPT_CHARACTERS: Final = 40


def version_tags(record: VersionRecord) -> dict[str, str]:
    """All of them, without what only the registry can say."""
    event = record.event
    score, interval = score_words(record.contamination_score)
    reasons = "; ".join(f"{reason.code}: {reason.text}" for reason in event.reasons)
    tags = {
        # Before all else: no approval is ever readable without it.
        **({} if event.scope is None else {SCOPE_TAG: event.scope.value}),
        **{key: value for one in record.suites[:MAX_SUITES] for key, value in _suite_tags(one).items()},
        FINGERPRINT_TAG: event.fingerprint,
        "proctor.protocol_digest": event.protocol_digest,
        REPORT_TAG: sha256_of(event.report_digest),
        "proctor.report_url": record.report_url,
        "proctor.contamination_score": score,
        "proctor.contamination_score_interval": interval,
        **({} if record.attestation is None else {"proctor.attestation": f"sha256:{record.attestation}"}),
        "proctor.audit_suite_id": event.audit_suite_id,
        "proctor.suites": _count(record.suites),
        "proctor.reasons": reasons,
        ENTRY_TAG: str(record.sequence),
        AUDIT_ID_TAG: event.audit_id,
        WEIGHTS_TAG: of_all([one.event.weights for one in record.suites if one.event is not None]) or NO_WEIGHTS,
        DECISION_TAG: event.outcome.value,
    }
    return {key: cut_to_tag(value) for key, value in tags.items()}


def is_stale(key: str, tags: dict[str, str]) -> bool:
    """Whether a tag that a version has is one of ours which says nothing of what stands now."""
    ours = key.startswith((SUITE_PREFIX, _OLD_PREFIX)) or key in _OLD_TAGS or key == "proctor.attestation"
    return ours and key not in tags


def suite_key(audit_suite_id: str) -> str:
    """The part of a key that names a suite: its id, or what is left of an odd one and a digest of all of it."""
    if _PLAIN_ID.fullmatch(audit_suite_id):
        return audit_suite_id
    kept = re.sub(r"[^A-Za-z0-9_-]+", "_", audit_suite_id[:_KEPT_CHARACTERS]).strip("_")
    # No plain id has the colon.
    return f"{kept}:{short_id([audit_suite_id])}"


def cut_to_tag(text: str, max_bytes: int = MAX_TAG_BYTES) -> str:
    """The text, shortened with a mark where it is longer than a tag's value may be, never inside a character."""
    data = text.encode("utf-8", errors="replace")
    if len(data) <= max_bytes:
        return data.decode("utf-8")
    room = max_bytes - len(_CUT_MARK.encode())
    return data[:room].decode("utf-8", errors="ignore") + _CUT_MARK


def _suite_tags(one: SuiteRecord) -> dict[str, str]:
    prefix = SUITE_PREFIX + suite_key(one.audit_suite_id)
    if one.event is None:
        return {f"{prefix}.decision": one.outcome.value, f"{prefix}.said": one.said}
    return {
        f"{prefix}.audit_id": one.event.audit_id,
        f"{prefix}.report_sha256": sha256_of(one.event.report_digest),
        f"{prefix}.said": one.said,
        f"{prefix}.decision": one.outcome.value,
    }


def _count(suites: tuple[SuiteRecord, ...]) -> str:
    outcomes = [one.outcome.value for one in suites]
    counts = ", ".join(f"{outcomes.count(one)} {one}" for one in ("block", "review", "approve") if one in outcomes)
    return f"{len(suites)}: {counts}"
