"""The router's tasks: each takes an audit one step on, and may run twice without harm.

Steps are guarded by the audit's row and by the ledger (`proctor.router.dispatch`), so a message that is delivered
twice, or replayed after an interruption, finds its work done and does nothing.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import cache, partial
from typing import Any, Protocol

from proctor.domain.canonical import digest_matches
from proctor.domain.errors import NewerVersionError, PluginError
from proctor.domain.looks import LookSeen
from proctor.domain.messages import (
    AuditScored,
    CorpusSearched,
    DecisionWritten,
    EndpointProbed,
    Message,
    NotUnderstood,
    Reconcile,
    ShardOfCorpusSearched,
    ShardsAnswered,
    ShardsGraded,
    StartAudit,
    TakeOn,
    VariantsBuilt,
)
from proctor.domain.suite_plugins import hold_installed
from proctor.router import intake, rewrites, searching
from proctor.router import reconcile as reconciling
from proctor.router.audit import AuditView
from proctor.router.awaited import PROBE_EVERY_S, probe_again
from proctor.router.barring import Barrier
from proctor.router.dispatch import Dispatcher
from proctor.router.finishing import failed_by_refusals
from proctor.router.inputs import Looked
from proctor.router.ledger.store import Ledger
from proctor.router.pools.store import Pools
from proctor.router.stages.outcome import stage_outcome
from proctor.router.stages.registry import ledger_stage, stage_of, state_to_go_on_in
from proctor.router.states import Cause, before
from proctor.runtime.artifacts.store import put_model
from proctor.runtime.messaging.events import publish_decision
from proctor.runtime.messaging.steady_schedule import Steadily
from proctor.runtime.messaging.tasks import (
    app,
    handles,
    send,
    worker_artifacts,
    worker_records,
    worker_settings,
    worker_tries,
)
from proctor.runtime.records.decisions import decision_of
from proctor.runtime.records.store import AuditState
from proctor.runtime.redis.presence import Presence

logger = logging.getLogger(__name__)

#: A router that has been planning a part, or ending a stage, for longer than this is dead. Several may do it at a time,
#: because answers of one audit come to all of them.
_CLEARLY_DEAD = timedelta(seconds=60)


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
        barred=Barrier(settings, worker_artifacts()).cause,
        trying=partial(worker_tries().trying, grace=_CLEARLY_DEAD),
    )


def _send_later(message: Message, seconds: float) -> None:
    send(message, after_s=seconds)


class _OfAudit(Protocol):
    @property
    def audit_id(self) -> str: ...


def _fail(message: _OfAudit, cause: str) -> None:
    dispatcher = _dispatcher()
    dispatcher.fail(dispatcher.view(message.audit_id), f"the router could not go on: {cause}")


def _let_go(message: ShardsAnswered | ShardsGraded, cause: str) -> None:
    """The ledger has leases for what is not told; who counts and ends those is the reconciler."""
    logger.error("audit %s: a message is let go: %s", message.audit_id, cause)


@handles(StartAudit, given_up=_fail)
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
        if dispatcher.advance(audit, Cause.STARTED, AuditState.REGISTERING):
            publish_decision(decision_of(audit.audit_id, event))
        return
    try:
        hold_installed(audit.suite)
        stage = ledger_stage(audit)
    except PluginError as error:
        # Before anything is asked: no waiting brings a plug-in.
        _fail(message, str(error))
        return
    if stage is not None:
        dispatcher.ledger.restart(audit.audit_id, stage, ask_refused=_failed_by_refusals(dispatcher, audit, stage))
    # Whoever starts it again wants it to go on with what the ledger has, however little that is.
    changes: dict[str, Any] = {} if audit.inputs.planned_stage is None else {"planned_stage": None}
    if audit.inputs.variants is None and audit.inputs.proposed is None:
        # Whatever made a rewording fail may be mended by now, and nothing was made of the failure yet.
        said = rewrites.load(dispatcher.artifacts, audit.inputs.rewrites)
        answered = rewrites.without_failures(dispatcher.artifacts, said)
        if answered != said:
            changes["rewrites"] = put_model(dispatcher.artifacts, answered)
    if audit.inputs.searched is not None and audit.inputs.searched.error is not None:
        changes["searched"] = None
    dispatcher.searches.start_again(audit)
    if dispatcher.advance(audit, Cause.STARTED, AuditState.PROBING, **changes):
        dispatcher.ask(audit.audit_id)


def _failed_by_refusals(dispatcher: Dispatcher, audit: AuditView, stage: str) -> bool:
    """Whether what was refused is to be asked again: it is what the audit failed by, and may be mended by now."""
    if not dispatcher.ledger.is_complete(audit.audit_id, stage):
        return False
    outcome = stage_outcome(dispatcher.ledger, audit.audit_id, stage)
    return failed_by_refusals(audit, stage_of(stage), outcome, dispatcher.artifacts)


@handles(EndpointProbed, given_up=_fail)
def endpoint_probed(message: EndpointProbed) -> None:
    """Go on to rewording, or to where the audit stopped, if the endpoint serves the pinned model."""
    dispatcher = _dispatcher()
    audit = dispatcher.view(message.audit_id)
    if audit.record.state is not AuditState.PROBING:
        return
    if not message.ok:
        again = probe_again(audit, message, dispatcher.timing.outage_s)
        if again is None:
            dispatcher.fail(audit, message.detail)
        elif dispatcher.advance(audit, Cause.PROBED, AuditState.PROBING, detail=message.detail):
            dispatcher.send_later(again, PROBE_EVERY_S)
        return
    pinned = audit.inputs.model_digest or audit.suite.model.model_version
    if message.model_digest is not None and not digest_matches(pinned, message.model_digest):
        dispatcher.fail(
            audit,
            f"the endpoint {audit.inputs.endpoint.url} serves {message.model_digest}, but the audit is of {pinned}; "
            "start a new audit with that version, or point the endpoint at this one",
        )
        return
    dispatcher.pools.ready(audit.inputs.endpoint.pool)
    state = state_to_go_on_in(audit)
    if dispatcher.advance(
        audit,
        Cause.PROBED,
        state,
        model_digest=message.model_digest or pinned,
        model_digest_verified=message.model_digest is not None,
        weights=message.weights,
        server=message.server,
    ):
        seen = dispatcher.view(audit.audit_id)
        dispatcher.searches.go_on(seen)
        if state is AuditState.REWORDING:
            dispatcher.ask(audit.audit_id)
        else:
            dispatcher.go_on(seen)


@handles(VariantsBuilt, given_up=_fail)
def variants_built(message: VariantsBuilt) -> None:
    """Begin to ask the audited model, or first its routers, or the model that rewords."""
    dispatcher = _dispatcher()
    audit = dispatcher.view(message.audit_id)
    if audit.record.state is not AuditState.REWORDING or message.look != audit.inputs.look:
        # A state comes back before each look: what was said before an earlier one is not of these items.
        return
    checks = audit.suite.perturbation.answering_check is not None
    if message.variants is not None and checks and not message.checked:
        # A second answer to the first request finds them proposed.
        if audit.inputs.proposed is None:
            proposed: dict[str, Any] = {"proposed": message.variants, "proposed_control": message.control}
            state = state_to_go_on_in(audit.changed(**proposed))
            if dispatcher.advance(audit, Cause.REWORDED, state, **proposed):
                dispatcher.go_on(dispatcher.view(audit.audit_id))
    elif message.variants is not None:
        made: dict[str, Any] = {"variants": message.variants, "control_variants": message.control}
        state = state_to_go_on_in(audit.changed(**made))
        if dispatcher.advance(audit, Cause.REWORDED, state, **made):
            dispatcher.go_on(dispatcher.view(audit.audit_id))
    elif message.prompts is not None:
        dispatcher.begin_round(audit, message.prompts)
    else:
        dispatcher.fail(audit, message.error or "the perturbation service gave no variants and no reason")


@handles(CorpusSearched, given_up=_fail)
def corpus_searched(message: CorpusSearched) -> None:
    """Note how the search of training data ended, and have the evidence weighed where it waited for that alone."""
    dispatcher = _dispatcher()
    audit = dispatcher.view(message.audit_id)
    while (end := searching.ended(audit, message)) is not None:
        if end.failure is not None:
            dispatcher.fail(audit, end.failure)
            return
        if dispatcher.note(audit, searched=end.searched):
            dispatcher.take_on(message.audit_id)
            return
        # It was moved on meanwhile.
        audit = dispatcher.view(message.audit_id)


@handles(ShardOfCorpusSearched, often=True)
def shard_of_corpus_searched(message: ShardOfCorpusSearched) -> None:
    """Record what came of a shard of training data, and hand out the next."""
    dispatcher = _dispatcher()
    dispatcher.searches.take_in(dispatcher.view(message.audit_id), message)


@handles(TakeOn, given_up=_fail, often=True)
def take_on(message: TakeOn) -> None:
    """Go on with an audit that was paused, or whose endpoint was away; let others have what an ended one leaves."""
    _dispatcher().take_on(message.audit_id)


@handles(ShardsAnswered, given_up=_let_go, often=True)
def shards_answered(message: ShardsAnswered) -> None:
    """Record answers, or their failures, and hand out what comes next."""
    intake.take_in(_dispatcher(), message)


@handles(ShardsGraded, given_up=_let_go, often=True)
def shards_graded(message: ShardsGraded) -> None:
    """Keep the grades for the scorer."""
    intake.note_grades(_dispatcher(), message)


@handles(Reconcile)
def reconcile(message: Reconcile) -> None:
    """Give what is overdue or was lost to another worker, and take on every audit whose messenger died."""
    del message
    reconciling.reconcile(_dispatcher())


@handles(AuditScored, given_up=_fail)
def scored(message: AuditScored) -> None:
    """The decision is on record: wait for the registry, or end here where there is none."""
    dispatcher = _dispatcher()
    audit = dispatcher.view(message.audit_id)
    if message.look is not None and message.look != audit.inputs.look:
        return
    if message.error is not None:
        dispatcher.fail(audit, message.error)
        return
    if message.seen is not None:
        _look_taken(dispatcher, audit, message.seen)
        return
    # Before it moves on: told twice, nobody comes by here again.
    dispatcher.note_usage(audit)
    after = AuditState.REGISTERING if worker_settings().registry_uri else AuditState.DECIDED
    if not dispatcher.advance(audit, Cause.SCORED, after):
        return
    if after.ended:
        dispatcher.clear_away(audit)
    else:
        # The scorer's event is on its way to the registry; the reconciler asks again if that gets lost.
        dispatcher.note_asked(dispatcher.view(audit.audit_id))


def _look_taken(dispatcher: Dispatcher, audit: AuditView, seen: LookSeen) -> None:
    """Have the items reworded that come before the next look. A look that was told of before changes nothing."""
    inputs = audit.inputs
    if seen.number != inputs.look or seen.number >= len(inputs.looks) or inputs.manifest is None:
        return
    changes: dict[str, Any] = {
        "looked": (*inputs.looked, Looked(manifest=inputs.manifest, seen=seen)),
        "manifest": None,
        "variants": None,
        "control_variants": None,
        "planned_stage": None,
    }
    if dispatcher.advance(audit, Cause.SCORED, AuditState.REWORDING, **changes):
        dispatcher.ask(audit.audit_id)


@handles(DecisionWritten, given_up=_fail)
def decision_written(message: DecisionWritten) -> None:
    """The registry has the decision: the audit ends. May arrive before `scored` does."""
    dispatcher = _dispatcher()
    audit = dispatcher.view(message.audit_id)
    if message.registry_version is None:
        dispatcher.fail(audit, f"the decision is on record, but the registry refused it: {message.error}")
        return
    dispatcher.records.register(message.audit_id, message.registry_version)
    if dispatcher.advance(audit, Cause.WRITTEN, AuditState.DECIDED):
        dispatcher.clear_away(audit)


@handles(NotUnderstood)
def not_understood(message: NotUnderstood) -> None:
    """Fail an audit that waits for a worker of a version which is not there; once it is, the audit can be resumed."""
    dispatcher = _dispatcher()
    try:
        dispatcher.fail(dispatcher.view(message.audit_id), message.detail)
    except NewerVersionError:
        # It is the row that this router does not know, too. Its state can be said all the same.
        logger.error("audit %s failed: %s", message.audit_id, message.detail)
        failed, expected = AuditState.FAILED, before(Cause.FAILED, AuditState.FAILED)
        dispatcher.records.advance(message.audit_id, failed, expected=expected, detail=message.detail)


def _reconcile_now_and_then(sender: Any, **_: Any) -> None:
    sender.conf.beat_schedule = {
        "reconcile": {
            "task": Reconcile.task,
            "schedule": Steadily(worker_settings().timing.reconcile_interval_s),
            "kwargs": {"message": Reconcile().plain()},
            "options": {"queue": Reconcile().queue},
        }
    }


# When the settings are read, and not when this module is.
app.on_after_finalize.connect(_reconcile_now_and_then, weak=False)
