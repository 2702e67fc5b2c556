"""The scorer's tasks: grades as answers come in; then one decision on record, a report, and the decision event."""

from __future__ import annotations

import logging
from functools import cache
from importlib.metadata import version

from pydantic import ValidationError

from proctor import __version__
from proctor.domain.canonical import bytes_digest
from proctor.domain.corpus_search import CorpusSearch, Searched
from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import ProctorError
from proctor.domain.looks import LookSeen
from proctor.domain.manifest import AuditManifest, VariantIndex
from proctor.domain.messages import AuditScored, GradeShards, ScoreAudit, ShardsGraded
from proctor.domain.panel import Panel
from proctor.domain.record.sign_off import ApprovalTerms
from proctor.evidence.perturbation.clean_control import OnRecord
from proctor.runtime.artifacts.chunks import StoredItems, StoredVariants
from proctor.runtime.artifacts.store import ArtifactStore, get_model
from proctor.runtime.files import write_atomic
from proctor.runtime.messaging.events import publish_decision
from proctor.runtime.messaging.tasks import handles, send, worker_artifacts, worker_records, worker_settings
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.records.attestations import lay_down_attestations
from proctor.runtime.records.decision_log import NoKey
from proctor.runtime.records.decisions import decision_of
from proctor.runtime.signing import Ed25519Key, open_signing_key
from proctor.runtime.traces import tracing
from proctor.scorer.channels.channel import ChannelInputs, ControlAsked, FreshAsked, NotAudited
from proctor.scorer.channels.registry import files_of
from proctor.scorer.grading.ahead import RecentGrades, grade_and_store
from proctor.scorer.grading.loading import StoredMessages, StoredStage, load_rows, load_shown
from proctor.scorer.grading.programs import Programs
from proctor.scorer.grading.targets import TargetsCache
from proctor.scorer.logged import with_origin
from proctor.scorer.looking import Looks, look_at
from proctor.scorer.measuring import measured
from proctor.scorer.page.html import render
from proctor.scorer.report.assembly import Asked, assemble, suspects
from proctor.scorer.report.document import RunFacts, to_json
from proctor.scorer.report.event import event_of
from proctor.scorer.score import score
from proctor.scorer.weights import with_weights

logger = logging.getLogger(__name__)
_targets = TargetsCache(programs=Programs(lambda: worker_settings().code_execution))
_recent = RecentGrades()


def _not_scored(message: ScoreAudit, cause: str) -> None:
    send(AuditScored(audit_id=message.audit_id, error=f"scoring failed: {cause}", look=message.look))


@handles(ScoreAudit, given_up=_not_scored, failed=_not_scored)
def score_audit(message: ScoreAudit) -> None:
    """Grade, weigh, decide, report; then publish the decision that is on record.

    Run twice, it finds the decision of the first run on record and publishes that one again. At a look of a sequential
    audit that does not end there it says so, and what it saw: twice the same.
    """
    with tracing.span("decide") as span:
        manifest = get_model(worker_artifacts(), message.manifest, AuditManifest)
        found = _decide(message.audit_id, manifest, message.searched)
        if isinstance(found, LookSeen):
            span.set({"proctor.look": found.number})
            send(AuditScored(audit_id=message.audit_id, look=message.look, seen=found))
            return
        span.set({"proctor.decision": found.outcome.value})
    send(AuditScored(audit_id=message.audit_id, look=message.look))
    publish_decision(found)


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
        targets = _targets.get(store, message.items, message.extractor, message.fresh, message.control)
    except (ProctorError, ValidationError) as error:
        logger.warning("audit %s: nothing is graded before its end: %s", message.audit_id, error)
        return
    graded = grade_and_store(store, message.shards, targets)
    _recent.note(graded)
    if graded:
        send(ShardsGraded(audit_id=message.audit_id, graded=graded))


def _decide(audit_id: str, manifest: AuditManifest, searched: Searched | None = None) -> DecisionEvent | LookSeen:
    """The decision on record, or made now; or what a look saw after which further items are asked."""
    store, records = worker_artifacts(), worker_records()
    on_record = records.decision(audit_id)
    if on_record is not None:
        lay_down_attestations(records, worker_settings().home, audit_id)
        return decision_of(audit_id, on_record)
    suite = manifest.suite
    manifest = manifest.model_copy(update={"answered": _recent.filled_in(manifest.answered)})
    items, variants = StoredItems(store, manifest.items), StoredVariants(store, manifest.variants)
    made = variants.summary()
    beside = manifest.fresh, None if manifest.control is None else manifest.control.items
    targets = _targets.get(store, manifest.items, suite.metric.extractor, *beside)
    with tracing.span("load grades"):
        rows = load_rows(store, manifest, targets)
    clean_models = OnRecord(made.controls, manifest.model_digest, variants.index.rewordings_digest)
    stages = {kind: StoredStage(store, digest) for kind, digest in manifest.asked.items()}
    looks = None if manifest.looks is None else Looks.of(suite, manifest.looks)
    inputs = ChannelInputs(
        suite if looks is None else looks.suite_now,
        items,
        rows,
        clean_models,
        StoredMessages(store, manifest),
        stages,
        _fresh(store, manifest),
        searched=_searched(store, searched),
        control=_control(store, manifest),
    )
    with tracing.span("weigh"):
        result = score(inputs)
    sequential = None
    if looks is not None:
        taken = look_at(looks, result)
        if isinstance(taken, LookSeen):
            return taken
        result, sequential = taken
    decision = with_origin(with_weights(result.decision, suite, manifest.weights_known), manifest.card)
    wanted = {item.item_id for item in suspects(result.evidence)}
    report = assemble(
        manifest,
        Asked(items, made, variants),
        rows,
        load_shown(store, manifest, targets, rows, wanted),
        result.evidence,
        decision,
        versions={"proctor": __version__, "numpy": version("numpy"), "scipy": version("scipy")},
        sequential=sequential,
    )
    causes = tuple(sorted({f"A shard was given up: {dead.cause}" for dead in manifest.dead}))
    path = worker_settings().home / "reports" / audit_id / "report.html"
    document = to_json(report)
    digest = store.put(document)
    page = render(report, run=RunFacts(audit_id=audit_id, notes=causes), digest=digest)
    files = {
        path.with_suffix(".json").name: document,
        path.name: page.encode("utf-8"),
        **dict(files_of(result.evidence)),
    }
    for name, content in files.items():
        write_atomic(path.with_name(name), content)
    # For who logs it with the model version, perhaps on another machine; the decision's entry has its digest.
    store.put(files[path.name])
    event = event_of(audit_id, report, digest, str(path))
    digests = {name: bytes_digest(content) for name, content in files.items()}
    terms = ApprovalTerms(
        expires_after_days=suite.governance.approval_expires_after_days,
        ends_when_superseded=suite.governance.approval_ends_when_superseded,
    )
    kept = measured(report)
    if not records.decide(audit_id, event.plain(), files=digests, key=_signing_key(), approval=terms, measured=kept):
        decided = records.decision(audit_id)
        assert decided is not None
        event = decision_of(audit_id, decided)
    else:
        metrics.decided(event.outcome)
    lay_down_attestations(records, worker_settings().home, audit_id)
    return event


def _fresh(store: ArtifactStore, manifest: AuditManifest) -> FreshAsked | None:
    """The fresh items of an audit, and what reference models answered; None where it asked none."""
    if manifest.fresh is None:
        return None
    panel = None if manifest.panel is None else get_model(store, manifest.panel, Panel)
    return FreshAsked(StoredItems(store, manifest.fresh), panel)


def _searched(store: ArtifactStore, searched: Searched | None) -> CorpusSearch | NotAudited | None:
    """What was found in training data, or why nothing was searched; None where the suite names none."""
    if searched is None:
        return None
    if searched.found is None:
        return NotAudited(f"the training data could not be searched: {searched.error}")
    return get_model(store, searched.found, CorpusSearch)


def _control(store: ArtifactStore, manifest: AuditManifest) -> ControlAsked | None:
    """The control items of an audit; None where it asked none."""
    if manifest.control is None:
        return None
    reworded = get_model(store, manifest.control.variants, VariantIndex)
    return ControlAsked(StoredItems(store, manifest.control.items), reworded.n_items_with_variants)


def _signing_key() -> Ed25519Key | NoKey:
    try:
        return _opened_signing_key(worker_settings().home, worker_settings().signing_key)
    except (ProctorError, OSError) as error:
        # Not remembered: what kept the key from being made may be over by the next decision.
        return NoKey(f"no key could be used: {error}"[:300])


_opened_signing_key = cache(open_signing_key)
