"""The router's tasks: each takes an audit one step on, and may run twice without harm.

Steps are guarded by the audit's row and by the ledger (`proctor.router.dispatch`), so a message that is delivered
twice, or replayed after an interruption, finds its work done and does nothing.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import cache
from typing import Any

from proctor.domain.canonical import digest_matches
from proctor.domain.decision import DecisionEvent
from proctor.domain.errors import StoreError
from proctor.domain.messages import (
    AuditScored,
    DecisionWritten,
    EndpointProbed,
    Message,
    Reconcile,
    ShardsAnswered,
    ShardsGraded,
    StartAudit,
    TakeOn,
    VariantsBuilt,
)
from proctor.router import answers, rewrites
from proctor.router.audit import AuditInputs
from proctor.router.counting import count_away
from proctor.router.dispatch import RUNNING, Dispatcher
from proctor.router.ledger import Ledger
from proctor.router.pools import Pools
from proctor.router.stages import pools_of, state_to_go_on_in
from proctor.runtime.artifacts import put_model
from proctor.runtime.events import publish_decision
from proctor.runtime.presence import Presence
from proctor.runtime.records import AuditState
from proctor.runtime.tasks import app, handles, send, worker_artifacts, worker_records, worker_settings

logger = logging.getLogger(__name__)


@cache
def _dispatcher() -> Dispatcher:
    settings = worker_settings()
    return Dispatcher(
        worker_records(),
        worker_artifacts(),
        Ledger(settings.ledger_url),
        Pools(settings.ledger_url),
        Presence(settings.ledger_url, silence=timedelta(seconds=settings.timing.presence_s)),
        send,
        settings.timing,
        _send_later,
    )


def _send_later(message: Message, seconds: float) -> None:
    send(message, after_s=seconds)


@handles(StartAudit)
def start(message: StartAudit) -> None:
    """Begin an audit, or go on with one that was interrupted or failed.

    What is decided, answered or reworded already stays. The endpoint is probed again in any case.
    """
    dispatcher = _dispatcher()
    audit = dispatcher.view(message.audit_id)
    if audit.record.state.final:
        return
    event = dispatcher.records.decision(audit.audit_id)
    if event is not None:
        if dispatcher.advance(audit, AuditState.REGISTERING, *AuditState):
            publish_decision(DecisionEvent.model_validate(event))
        return
    if audit.inputs.ledger_stage is not None:
        dispatcher.ledger.restart(audit.audit_id, audit.inputs.ledger_stage)
    changes = {}
    if audit.inputs.variants is None:
        # Whatever made a rewording fail may be mended by now, and nothing was made of the failure yet.
        said = rewrites.load(dispatcher.artifacts, audit.inputs.rewrites)
        answered = rewrites.without_failures(dispatcher.artifacts, said)
        if answered != said:
            changes["rewrites"] = put_model(dispatcher.artifacts, answered)
    if dispatcher.advance(audit, AuditState.PROBING, *RUNNING, AuditState.FAILED, **changes):
        dispatcher.ask(audit.audit_id)


@handles(EndpointProbed)
def endpoint_probed(message: EndpointProbed) -> None:
    """Go on to rewording, or to where the audit stopped, if the endpoint serves the pinned model."""
    dispatcher = _dispatcher()
    audit = dispatcher.view(message.audit_id)
    if audit.record.state is not AuditState.PROBING:
        return
    if not message.ok:
        dispatcher.fail(audit, message.detail)
        return
    pinned = audit.inputs.model_digest or audit.suite.model.model_version
    if message.model_digest is not None and not digest_matches(pinned, message.model_digest):
        dispatcher.fail(
            audit,
            f"the endpoint {audit.inputs.endpoint.url} serves {message.model_digest}, but the audit is of {pinned}; "
            "start a new audit with that version, or point the endpoint at this one",
        )
        return
    dispatcher.pools.worked(audit.inputs.endpoint.pool)
    state = state_to_go_on_in(audit.inputs)
    if dispatcher.advance(
        audit,
        state,
        AuditState.PROBING,
        model_digest=message.model_digest or pinned,
        model_digest_verified=message.model_digest is not None,
        server=message.server,
    ):
        if state is AuditState.REWORDING:
            dispatcher.ask(audit.audit_id)
        else:
            dispatcher.go_on(audit.audit_id)


@handles(VariantsBuilt)
def variants_built(message: VariantsBuilt) -> None:
    """Begin to ask the audited model, or first its routers, or the model that rewords."""
    dispatcher = _dispatcher()
    audit = dispatcher.view(message.audit_id)
    if audit.record.state is not AuditState.REWORDING:
        return
    if message.variants is not None:
        state = AuditState.TRANSMITTING if audit.inputs.awaits_routers else AuditState.ANSWERING
        if dispatcher.advance(audit, state, AuditState.REWORDING, variants=message.variants):
            dispatcher.go_on(audit.audit_id)
    elif message.prompts is not None:
        dispatcher.begin_round(audit, message.prompts)
    else:
        dispatcher.fail(audit, message.error or "the perturbation service gave no variants and no reason")


@handles(TakeOn)
def take_on(message: TakeOn) -> None:
    """Go on with an audit that was paused, or whose endpoint was away; let others have what an ended one leaves."""
    _dispatcher().take_on(message.audit_id)


@handles(ShardsAnswered)
def shards_answered(message: ShardsAnswered) -> None:
    """Record answers, or their failures, and hand out what comes next."""
    answers.take_in(_dispatcher(), message)


@handles(ShardsGraded)
def shards_graded(message: ShardsGraded) -> None:
    """Keep the grades for the scorer."""
    answers.note_grades(_dispatcher(), message)


@handles(Reconcile)
def reconcile(message: Reconcile) -> None:
    """Give what is overdue or was lost to another worker, and take on every audit whose messenger died."""
    del message
    dispatcher = _dispatcher()
    for held in dispatcher.presence.lost():
        try:
            audit = dispatcher.view(held.audit_id)
            dispatcher.lost(audit, held, "its worker has not been heard of any more")
        except StoreError:
            logger.exception(
                "shard %s of audit %s was lost, and its audit cannot be read", held.shard_id, held.audit_id
            )
        # Nor is what cannot be read told of again: its lease runs out like any other.
        dispatcher.presence.forget([held])
    running = dispatcher.records.running_audits()
    for record in running:
        try:
            dispatcher.reconcile(record.audit_id)
        except Exception:
            # What one audit lacks (an artifact, room on a disk) must not keep the others waiting.
            logger.exception("audit %s cannot be taken on now", record.audit_id)
    asked = (pools_of(AuditInputs.model_validate(record.inputs)) for record in running)
    count_away(dispatcher.pools, asked)


@handles(AuditScored)
def scored(message: AuditScored) -> None:
    """The decision is on record: wait for the registry, or end here where there is none."""
    dispatcher = _dispatcher()
    audit = dispatcher.view(message.audit_id)
    if message.error is not None:
        dispatcher.fail(audit, message.error)
        return
    after = AuditState.REGISTERING if worker_settings().registry_uri else AuditState.DECIDED
    if not dispatcher.advance(audit, after, AuditState.SCORING):
        return
    if after.ended:
        dispatcher.clear_away(audit)
    else:
        # The scorer's event is on its way to the registry; the reconciler asks again if that gets lost.
        dispatcher.note_asked(dispatcher.view(audit.audit_id))


@handles(DecisionWritten)
def decision_written(message: DecisionWritten) -> None:
    """The registry has the decision: the audit ends. May arrive before `scored` does."""
    dispatcher = _dispatcher()
    audit = dispatcher.view(message.audit_id)
    if message.registry_version is None:
        dispatcher.fail(audit, f"the decision is on record, but the registry refused it: {message.error}")
        return
    dispatcher.records.register(message.audit_id, message.registry_version)
    if dispatcher.advance(audit, AuditState.DECIDED, AuditState.SCORING, AuditState.REGISTERING):
        dispatcher.clear_away(audit)


def _reconcile_now_and_then(sender: Any, **_: Any) -> None:
    sender.conf.beat_schedule = {
        "reconcile": {
            "task": Reconcile.task,
            "schedule": worker_settings().timing.reconcile_interval_s,
            "kwargs": {"message": Reconcile().plain()},
            "options": {"queue": Reconcile().queue},
        }
    }


# When the settings are read, and not when this module is.
app.on_after_finalize.connect(_reconcile_now_and_then, weak=False)
