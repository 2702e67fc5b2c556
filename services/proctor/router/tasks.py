"""The router's tasks: each takes an audit one step on, and may run twice without harm.

Steps are guarded by the state on record (`Records.advance` moves it only from an expected one) and by the ledger, so
a message that is delivered twice, or replayed after an interruption, finds its work done and does nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from proctor.domain.canonical import digest_matches
from proctor.domain.decision import DecisionEvent
from proctor.domain.manifest import AnsweredShard, AuditManifest, DeadShard, ItemSet, VariantSet
from proctor.domain.messages import (
    AuditScored,
    BuildVariants,
    DecisionWritten,
    EndpointProbed,
    ProbeEndpoint,
    Reconcile,
    RunShard,
    ScoreAudit,
    ShardAnswered,
    StartAudit,
    VariantsBuilt,
)
from proctor.domain.trial import Shard
from proctor.router.audit import AuditInputs, AuditView, view
from proctor.router.ledger import LEASE, Ledger, PlannedShard
from proctor.router.plan import plan_shards, plan_trials, too_many_dead
from proctor.runtime.artifacts import get_model, put_model
from proctor.runtime.events import publish_decision
from proctor.runtime.records import AuditState
from proctor.runtime.tasks import app, handles, send, worker_artifacts, worker_records, worker_settings

logger = logging.getLogger(__name__)

#: Shards of one audit that are published at a time: one that runs, one that waits behind it, so that the worker
#: never idles and the backlog stays in the ledger.
WINDOW = 2
RECONCILE_INTERVAL_S = 30.0
_RUNNING = [state for state in AuditState if not state.ended]


@cache
def _ledger() -> Ledger:
    return Ledger(worker_settings().ledger_url)


def _advance(audit: AuditView, state: AuditState, *expected: AuditState, detail: str = "", **changes: Any) -> bool:
    inputs = audit.inputs.model_copy(update=changes).plain() if changes else None
    return worker_records().advance(audit.audit_id, state, expected=expected, detail=detail, inputs=inputs)


def _fail(audit: AuditView, detail: str) -> None:
    logger.error("audit %s failed: %s", audit.audit_id, detail)
    worker_records().advance(audit.audit_id, AuditState.FAILED, expected=_RUNNING, detail=detail)


@handles(StartAudit)
def start(message: StartAudit) -> None:
    """Begin an audit, or go on with one that was interrupted or failed.

    What is decided, answered or reworded already is found again on the way, so there is one way only.
    """
    audit = view(worker_records(), message.audit_id)
    if audit.record.state is AuditState.DECIDED:
        return
    event = worker_records().decision(audit.audit_id)
    if event is not None:
        if _advance(audit, AuditState.REGISTERING, *AuditState):
            publish_decision(DecisionEvent.model_validate(event))
        return
    _ledger().restart(audit.audit_id)
    if _advance(audit, AuditState.PROBING, *_RUNNING, AuditState.FAILED):
        send(ProbeEndpoint(audit_id=audit.audit_id, endpoint=audit.inputs.endpoint))


@handles(EndpointProbed)
def endpoint_probed(message: EndpointProbed) -> None:
    """Go on to rewording, if the endpoint serves the pinned model."""
    audit = view(worker_records(), message.audit_id)
    if audit.record.state is not AuditState.PROBING:
        return
    if not message.ok:
        _fail(audit, message.detail)
        return
    pinned = audit.inputs.model_digest or audit.suite.model.model_version
    if message.model_digest is not None and not digest_matches(pinned, message.model_digest):
        _fail(
            audit,
            f"the endpoint {audit.inputs.endpoint.url} serves {message.model_digest}, but the audit is of {pinned}; "
            "start a new audit with that version, or point the endpoint at this one",
        )
        return
    if _advance(
        audit,
        AuditState.REWORDING,
        AuditState.PROBING,
        model_digest=message.model_digest or pinned,
        model_digest_verified=message.model_digest is not None,
        server=message.server,
    ):
        send(
            BuildVariants(
                audit_id=audit.audit_id,
                items=audit.inputs.items,
                settings=audit.inputs.perturbation,
                rewordings=audit.inputs.rewordings,
                calibration=audit.inputs.calibration,
                benchmark=audit.suite.dataset.benchmark_name,
                contents=audit.inputs.contents,
            )
        )


@handles(VariantsBuilt)
def variants_built(message: VariantsBuilt) -> None:
    """Lay the trials down in the ledger and begin to dispatch."""
    audit = view(worker_records(), message.audit_id)
    if audit.record.state is not AuditState.REWORDING:
        return
    if message.variants is None:
        _fail(audit, message.error or "the perturbation service gave no variants and no reason")
        return
    store = worker_artifacts()
    items = get_model(store, audit.inputs.items, ItemSet).items
    variants = get_model(store, message.variants, VariantSet).variants
    shards = [
        PlannedShard(shard.shard_id, len(shard.trials), put_model(store, shard))
        for shard in plan_shards(plan_trials(items, variants, audit.suite.prompt))
    ]
    _ledger().plan(audit.audit_id, shards)
    if _advance(audit, AuditState.ANSWERING, AuditState.REWORDING, variants=message.variants):
        _go_on(audit.audit_id)


@handles(ShardAnswered)
def shard_answered(message: ShardAnswered) -> None:
    """Record an answer, or its failure, and dispatch what comes next."""
    ledger = _ledger()
    if message.completions is not None:
        outcome = ledger.record(message.audit_id, message.shard_id, message.completions)
    else:
        cause = message.error or "the inference worker gave no completions and no reason"
        outcome = ledger.fail(
            message.audit_id, message.shard_id, message.attempt, cause=cause, retryable=message.retryable
        )
        logger.warning("shard %s, attempt %d, is %s: %s", message.shard_id, message.attempt, outcome, cause)
    if outcome not in ("duplicate", "stale", "unknown"):
        _go_on(message.audit_id)


@handles(Reconcile)
def reconcile(message: Reconcile) -> None:
    """Give overdue shards to another worker, and finish what was complete when its messenger died."""
    del message
    for record in worker_records().running_audits():
        if record.state is not AuditState.ANSWERING:
            continue
        for shard_id, attempt in _ledger().overdue(record.audit_id):
            cause = f"no answer within {LEASE.total_seconds():.0f} s: the message or its worker was lost"
            outcome = _ledger().fail(record.audit_id, shard_id, attempt, cause=cause, retryable=True)
            logger.warning("shard %s of audit %s was overdue: %s", shard_id, record.audit_id, outcome)
        _go_on(record.audit_id)


def _go_on(audit_id: str) -> None:
    """Dispatch what the window has room for, or finish when nothing is left.

    Asks the ledger whether the audit is complete instead of trusting the one 'complete' answer: the worker that got
    that answer may have died with it.
    """
    audit = view(worker_records(), audit_id)
    if audit.record.state is not AuditState.ANSWERING:
        return
    if _ledger().is_complete(audit_id):
        _finish(audit)
        return
    for shard in _ledger().lease(audit_id, window=WINDOW):
        send(
            RunShard(
                audit_id=audit_id,
                shard_id=shard.shard_id,
                attempt=shard.attempt,
                shard=shard.digest,
                endpoint=audit.inputs.endpoint.model_copy(update={"model_version": audit.inputs.model_digest}),
                decoding=audit.suite.decoding,
                deadline_s=LEASE.total_seconds() * 0.8,
            )
        )


def _finish(audit: AuditView) -> None:
    ledger = _ledger()
    entries, done, dead = ledger.entries(audit.audit_id), ledger.done(audit.audit_id), ledger.dead(audit.audit_id)
    if too_many_dead(_planned_shards(entries) if dead else (), dead):
        n_dead = sum(entry.n_trials for entry in entries if entry.shard_id in dead)
        planned = sum(entry.n_trials for entry in entries)
        _fail(audit, f"{n_dead} of {planned} trials got no answer; the last failure: {list(dead.values())[-1]}")
        return
    inputs: AuditInputs = audit.inputs
    assert inputs.variants is not None
    assert inputs.model_digest is not None
    manifest = AuditManifest(
        audit_id=audit.audit_id,
        suite=audit.resolved_suite,
        card=audit.card,
        model_digest=inputs.model_digest,
        model_digest_verified=inputs.model_digest_verified,
        server=inputs.server,
        items=inputs.items,
        variants=inputs.variants,
        answered=tuple(
            AnsweredShard(shard=entry.digest, completions=done[entry.shard_id])
            for entry in entries
            if entry.shard_id in done
        ),
        dead=tuple(
            DeadShard(shard=entry.digest, cause=dead[entry.shard_id]) for entry in entries if entry.shard_id in dead
        ),
    )
    digest = put_model(worker_artifacts(), manifest)
    if _advance(audit, AuditState.SCORING, AuditState.ANSWERING):
        send(ScoreAudit(audit_id=audit.audit_id, manifest=digest))


def _planned_shards(entries: Sequence[PlannedShard]) -> Iterator[Shard]:
    return (get_model(worker_artifacts(), entry.digest, Shard) for entry in entries)


@handles(AuditScored)
def scored(message: AuditScored) -> None:
    """The decision is on record: wait for the registry, or end here where there is none."""
    audit = view(worker_records(), message.audit_id)
    if message.error is not None:
        _fail(audit, message.error)
        return
    after = AuditState.REGISTERING if worker_settings().registry_uri else AuditState.DECIDED
    _advance(audit, after, AuditState.SCORING)


@handles(DecisionWritten)
def decision_written(message: DecisionWritten) -> None:
    """The registry has the decision: the audit ends. May arrive before `scored` does."""
    audit = view(worker_records(), message.audit_id)
    if message.registry_version is None:
        _fail(audit, f"the decision is on record, but the registry refused it: {message.error}")
        return
    worker_records().register(message.audit_id, message.registry_version)
    _advance(audit, AuditState.DECIDED, AuditState.SCORING, AuditState.REGISTERING)


app.conf.beat_schedule = {
    "reconcile": {
        "task": Reconcile.task,
        "schedule": RECONCILE_INTERVAL_S,
        "kwargs": {"message": Reconcile().plain()},
        "options": {"queue": Reconcile.queue()},
    }
}
