"""The scorer's task: completions in, one decision on record, a report, and the decision event out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.metadata import version

from proctor import __version__
from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import ProctorError
from proctor.domain.manifest import AuditManifest, CompletionSet, ItemSet, RewriteSet, VariantSet
from proctor.domain.messages import AuditScored, ScoreAudit
from proctor.domain.trial import Arm, Shard
from proctor.formats.router_table_writing import ROUTER_TABLE, router_table
from proctor.runtime.artifacts import ArtifactStore, get_model
from proctor.runtime.events import publish_decision
from proctor.runtime.files import write_atomic
from proctor.runtime.tasks import handles, send, worker_artifacts, worker_records, worker_settings
from proctor.scorer.assembly import assemble
from proctor.scorer.html import render
from proctor.scorer.report import Report, RunFacts, report_digest, to_json
from proctor.scorer.score import AskedTrial, clean_models, score

logger = logging.getLogger(__name__)


@handles(ScoreAudit)
def score_audit(message: ScoreAudit) -> None:
    """Grade, weigh, decide, report; then publish the decision that is on record.

    Run twice, it finds the decision of the first run on record and publishes that one again.
    """
    try:
        event = _decide(message.audit_id, get_model(worker_artifacts(), message.manifest, AuditManifest))
    except ProctorError as error:
        send(AuditScored(audit_id=message.audit_id, error=str(error)))
        return
    except Exception as error:
        # A task that raises would be acknowledged and its audit wait for ever.
        logger.exception("scoring of audit %s failed", message.audit_id)
        send(AuditScored(audit_id=message.audit_id, error=f"scoring failed: {type(error).__name__}: {error}"))
        return
    send(AuditScored(audit_id=message.audit_id))
    if worker_settings().registry_uri:
        publish_decision(event)


def _decide(audit_id: str, manifest: AuditManifest) -> DecisionEvent:
    store, records = worker_artifacts(), worker_records()
    on_record = records.decision(audit_id)
    if on_record is not None:
        return DecisionEvent.model_validate(on_record)
    items = get_model(store, manifest.items, ItemSet)
    variants = get_model(store, manifest.variants, VariantSet)
    result = score(
        manifest.suite,
        items.items,
        list(_asked(manifest, store)),
        clean_models(manifest, variants),
        _messages(manifest, store),
    )
    report = assemble(
        manifest,
        items,
        variants,
        result.answers,
        result.evidence,
        result.decision,
        versions={"proctor": __version__, "numpy": version("numpy"), "scipy": version("scipy")},
    )
    causes = tuple(sorted({f"A shard was given up: {dead.cause}" for dead in manifest.dead}))
    path = worker_settings().home / "reports" / audit_id / "report.html"
    write_atomic(path.with_suffix(".json"), to_json(report))
    write_atomic(path, render(report, run=RunFacts(audit_id=audit_id, notes=causes)).encode("utf-8"))
    if (noise := result.evidence.noise) is not None and noise.settings:
        write_atomic(path.with_name(ROUTER_TABLE), router_table(noise.settings))
    store.put(to_json(report))
    event = _event(audit_id, report, str(path))
    if not records.decide(audit_id, event.plain()):
        return DecisionEvent.model_validate(records.decision(audit_id))
    return event


def _messages(manifest: AuditManifest, store: ArtifactStore) -> dict[tuple[Arm, str, int], str]:
    """What the routers wrote, by arm, item and router; a call that failed left no message."""
    if manifest.transmitted is None:
        return {}
    return {
        (trial.arm, trial.item_id, trial.router_index): completion.text
        for trial, completion in _asked(get_model(store, manifest.transmitted, RewriteSet), store)
        if completion is not None and completion.error is None
    }


def _asked(manifest: AuditManifest | RewriteSet, store: ArtifactStore) -> Iterator[AskedTrial]:
    for answered in manifest.answered:
        completions = {
            completion.trial_id: completion
            for completion in get_model(store, answered.completions, CompletionSet).completions
        }
        for trial in get_model(store, answered.shard, Shard).trials:
            yield AskedTrial(trial, completions.get(trial.trial_id))
    for dead in manifest.dead:
        for trial in get_model(store, dead.shard, Shard).trials:
            yield AskedTrial(trial, None)


def _event(audit_id: str, report: Report, path: str) -> DecisionEvent:
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
            "reportDigest": report_digest(report),
            "reportPath": path,
            "nItems": report.counts.items_audited,
        }
    )
