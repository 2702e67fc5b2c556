"""The scorer's tasks: grades as answers come in; then one decision on record, a report, and the decision event."""

from __future__ import annotations

import logging
from importlib.metadata import version

from pydantic import ValidationError

from proctor import __version__
from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import ProctorError
from proctor.domain.manifest import AuditManifest
from proctor.domain.messages import AuditScored, GradeShards, ScoreAudit, ShardsGraded
from proctor.evidence.perturbation.clean_control import OnRecord
from proctor.runtime.artifacts.chunks import StoredItems, StoredVariants
from proctor.runtime.artifacts.store import get_model
from proctor.runtime.files import write_atomic
from proctor.runtime.messaging.events import publish_decision
from proctor.runtime.messaging.tasks import handles, send, worker_artifacts, worker_records, worker_settings
from proctor.runtime.records.decisions import decision_of
from proctor.scorer.channels.channel import ChannelInputs
from proctor.scorer.channels.registry import files_of
from proctor.scorer.grading.ahead import RecentGrades, grade_and_store
from proctor.scorer.grading.loading import StoredMessages, StoredStage, load_rows, load_shown
from proctor.scorer.grading.targets import TargetsCache
from proctor.scorer.page.html import render
from proctor.scorer.report.assembly import Asked, assemble, suspects
from proctor.scorer.report.document import Report, RunFacts, to_json
from proctor.scorer.score import score

logger = logging.getLogger(__name__)
_targets = TargetsCache()
_recent = RecentGrades()


def _not_scored(message: ScoreAudit, cause: str) -> None:
    send(AuditScored(audit_id=message.audit_id, error=f"scoring failed: {cause}"))


@handles(ScoreAudit, given_up=_not_scored, failed=_not_scored)
def score_audit(message: ScoreAudit) -> None:
    """Grade, weigh, decide, report; then publish the decision that is on record.

    Run twice, it finds the decision of the first run on record and publishes that one again.
    """
    event = _decide(message.audit_id, get_model(worker_artifacts(), message.manifest, AuditManifest))
    send(AuditScored(audit_id=message.audit_id))
    if worker_settings().registry_uri:
        publish_decision(event)


def _not_graded(message: GradeShards, cause: str) -> None:
    logger.error("audit %s: %d shards are not graded before its end: %s", message.audit_id, len(message.shards), cause)


@handles(GradeShards, given_up=_not_graded, often=True)
def grade_shards(message: GradeShards) -> None:
    """Grade shards as they are answered, and say where the grades are.

    A shard that cannot be graded is left out of the answer: it is tried again when the audit is scored, which then
    fails with the reason. What is graded when changes no result.
    """
    store = worker_artifacts()
    try:
        targets = _targets.get(store, message.items, message.extractor)
    except (ProctorError, ValidationError) as error:
        logger.warning("audit %s: nothing is graded before its end: %s", message.audit_id, error)
        return
    graded = grade_and_store(store, message.shards, targets)
    _recent.note(graded)
    if graded:
        send(ShardsGraded(audit_id=message.audit_id, graded=graded))


def _decide(audit_id: str, manifest: AuditManifest) -> DecisionEvent:
    store, records = worker_artifacts(), worker_records()
    on_record = records.decision(audit_id)
    if on_record is not None:
        return decision_of(audit_id, on_record)
    suite = manifest.suite
    manifest = manifest.model_copy(update={"answered": _recent.filled_in(manifest.answered)})
    items, variants = StoredItems(store, manifest.items), StoredVariants(store, manifest.variants)
    made = variants.summary()
    targets = _targets.get(store, manifest.items, suite.metric.extractor)
    rows = load_rows(store, manifest, targets)
    clean_models = OnRecord(made.controls, manifest.model_digest, variants.index.rewordings_digest)
    stages = {kind: StoredStage(store, digest) for kind, digest in manifest.asked.items()}
    result = score(ChannelInputs(suite, items, rows, clean_models, StoredMessages(store, manifest), stages))
    wanted = {item.item_id for item in suspects(result.evidence)}
    report = assemble(
        manifest,
        Asked(items, made, variants),
        rows,
        load_shown(store, manifest, targets, rows, wanted),
        result.evidence,
        result.decision,
        versions={"proctor": __version__, "numpy": version("numpy"), "scipy": version("scipy")},
    )
    causes = tuple(sorted({f"A shard was given up: {dead.cause}" for dead in manifest.dead}))
    path = worker_settings().home / "reports" / audit_id / "report.html"
    document = to_json(report)
    digest = store.put(document)
    write_atomic(path.with_suffix(".json"), document)
    page = render(report, run=RunFacts(audit_id=audit_id, notes=causes), digest=digest)
    write_atomic(path, page.encode("utf-8"))
    for name, content in files_of(result.evidence):
        write_atomic(path.with_name(name), content)
    event = _event(audit_id, report, digest, str(path))
    if not records.decide(audit_id, event.plain()):
        decided = records.decision(audit_id)
        assert decided is not None
        return decision_of(audit_id, decided)
    return event


def _event(audit_id: str, report: Report, digest: str, path: str) -> DecisionEvent:
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
        }
    )
