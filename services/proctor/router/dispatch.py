"""Taking an audit on: handing out the shards of its stages, and what follows when a stage ends.

Every step is guarded by the audit's row, which moves only from the state (and, where inputs are written, from the
inputs) that the step has seen, and by the ledger. So a step that runs twice does nothing the second time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proctor.domain.decision import DecisionEvent
from proctor.domain.manifest import AuditManifest, PromptSet, RewriteSet
from proctor.domain.messages import Message, RunShard, WriteDecision
from proctor.domain.trial import Shard
from proctor.router import rewrites
from proctor.router.audit import AuditView, RewritingRound, view
from proctor.router.counting import ShardCounting, count_planned
from proctor.router.endpoints import paraphrase_model, router_model
from proctor.router.ledger import MAX_ATTEMPTS, Ledger, PlannedShard
from proctor.router.plan import too_many_dead
from proctor.router.requests import request_of, step_of
from proctor.router.stages import Stage, StageOutcome, stage_outcome, stage_shards, stage_under_way
from proctor.runtime.artifacts import ArtifactStore, get_model, put_model
from proctor.runtime.metrics import Redelivery
from proctor.runtime.records import AuditState, Records
from proctor.runtime.timing import DEFAULT_TIMING, Timing

logger = logging.getLogger(__name__)

#: Shards of one audit that are published at a time: one that runs, one that waits behind it, so that the worker
#: never idles and the backlog stays in the ledger.
WINDOW = 2
#: Of a lease, what a worker may take for its shard; the rest is for the way there and back.
_DEADLINE_SHARE = 0.8
RUNNING = tuple(state for state in AuditState if not state.ended)


@dataclass(frozen=True)
class Dispatcher:
    """Takes audits on, with the router's stores and a way to send messages."""

    records: Records
    artifacts: ArtifactStore
    ledger: Ledger
    send: Callable[[Message], None]
    timing: Timing = DEFAULT_TIMING

    def view(self, audit_id: str) -> AuditView:
        """An audit as it is on record now."""
        return view(self.records, audit_id)

    def advance(
        self, audit: AuditView, state: AuditState, *expected: AuditState, detail: str = "", **changes: Any
    ) -> bool:
        """Move an audit to a state and change its inputs; False when it is not any more as it was seen."""
        return self.records.advance(
            audit.audit_id,
            state,
            expected=expected,
            expected_inputs=audit.record.inputs if changes else None,
            detail=detail,
            inputs=audit.inputs.model_copy(update=changes).plain() if changes else None,
        )

    def fail(self, audit: AuditView, detail: str, **changes: Any) -> None:
        """End an audit that runs with the reason. It stays open: started again, it goes on."""
        logger.error("audit %s failed: %s", audit.audit_id, detail)
        self.advance(audit, AuditState.FAILED, *RUNNING, detail=detail, **changes)

    def ask(self, audit_id: str) -> None:
        """Send another service the request that the audit's state calls for."""
        audit = self.view(audit_id)
        request = self._decision_to_write(audit) or request_of(audit)
        if request is not None:
            self.send(request)
            self.note_asked(audit)

    def note_asked(self, audit: AuditView) -> None:
        """Note that what the audit waits for has been asked for, so that the reconciler leaves it its time."""
        self.ledger.note_asked(audit.audit_id, step_of(audit), answer_time=self.timing.answer_time)

    def _decision_to_write(self, audit: AuditView) -> WriteDecision | None:
        if audit.record.state is not AuditState.REGISTERING:
            return None
        event = self.records.decision(audit.audit_id)
        return None if event is None else WriteDecision(event=DecisionEvent.model_validate(event))

    def reconcile(self, audit_id: str) -> None:
        """Do what was left undone: by a worker that died with its shard, or with a step before its message was sent."""
        audit = self.view(audit_id)
        stage = stage_under_way(audit)
        if stage is None:
            if not self.ledger.was_asked(audit_id, step_of(audit)):
                self.ask(audit_id)
            return
        for shard_id, attempt in self.ledger.overdue(audit_id, stage.name):
            cause = f"no answer within {self.timing.lease_s:g} s: the message or its worker was lost"
            outcome = self.ledger.fail(audit_id, stage.name, shard_id, attempt, cause=cause, retryable=True)
            logger.warning("shard %s/%s/%s was overdue: %s", audit_id, stage.name, shard_id, outcome)
            ShardCounting(self.ledger, self.artifacts, audit_id, stage.name, shard_id).failed(
                outcome, Redelivery.OVERDUE
            )
        self.go_on(audit_id)

    def begin_round(self, audit: AuditView, digest: str) -> None:
        """Ask the model that rewords a PromptSet, as the next stage of the audit."""
        if audit.inputs.paraphraser is None:
            self.fail(
                audit, "the perturbation service wants a model to reword, and the audit was submitted without one"
            )
            return
        said = rewrites.load(self.artifacts, audit.inputs.rewrites)
        prompts = rewrites.unasked(self.artifacts, get_model(self.artifacts, digest, PromptSet), said)
        if prompts is None:
            logger.warning("audit %s: all of the prompts %s were asked in an earlier round", audit.audit_id, digest)
            return
        number = audit.inputs.rounds + 1
        stored = put_model(self.artifacts, prompts)
        begun = RewritingRound(number=number, prompts=stored, decoding=prompts.decoding)
        if self.advance(audit, AuditState.PARAPHRASING, AuditState.REWORDING, rounds=number, rewriting=begun):
            self.go_on(audit.audit_id)

    def go_on(self, audit_id: str) -> None:
        """Hand out what the window of the stage under way has room for, or end the stage when nothing is left.

        Asks the ledger where the stage is instead of trusting the one message that began it, or the one 'complete'
        answer: the worker that got it may have died with it.
        """
        audit = self.view(audit_id)
        stage = stage_under_way(audit)
        if stage is None:
            return
        if not self.ledger.is_planned(audit_id, stage.name):
            shards = list(stage_shards(audit, self.artifacts))
            if not shards:
                self.fail(audit, "no item has a rewording, so there is nothing to ask")
                return
            entries = [
                PlannedShard(shard.shard_id, len(shard.trials), put_model(self.artifacts, shard)) for shard in shards
            ]
            if self.ledger.plan(audit_id, stage.name, entries):
                count_planned(shards)
        if self.ledger.is_complete(audit_id, stage.name):
            self._finish(audit, stage)
            return
        for shard in self.ledger.lease(audit_id, stage.name, window=WINDOW, lease=self.timing.lease):
            self.send(
                RunShard(
                    audit_id=audit_id,
                    stage=stage.name,
                    shard_id=shard.shard_id,
                    attempt=shard.attempt,
                    shard=shard.digest,
                    endpoint=stage.endpoint,
                    decoding=stage.decoding,
                    deadline_s=self.timing.lease_s * _DEADLINE_SHARE,
                    last_attempt=shard.attempt >= MAX_ATTEMPTS,
                )
            )

    def _finish(self, audit: AuditView, stage: Stage) -> None:
        outcome = stage_outcome(self.ledger, audit.audit_id, stage.name)
        shards = (get_model(self.artifacts, entry.digest, Shard) for entry in outcome.entries)
        if outcome.dead and too_many_dead(shards, outcome.causes):
            lost = f"{outcome.n_dead} of {outcome.n_trials} trials got no answer"
            self.fail(audit, f"{stage.model}: {lost}; the last failure: {outcome.dead[-1].cause}")
        elif audit.record.state is AuditState.PARAPHRASING:
            self._finish_round(audit, stage, outcome)
        elif audit.record.state is AuditState.TRANSMITTING:
            self._finish_transmission(audit, stage, outcome)
        else:
            self._finish_answers(audit, outcome)

    def _finish_round(self, audit: AuditView, stage: Stage, outcome: StageOutcome) -> None:
        earlier = rewrites.load(self.artifacts, audit.inputs.rewrites)
        said = rewrites.together(earlier, RewriteSet(answered=outcome.answered, dead=outcome.dead))
        if (cause := rewrites.first_failure(self.artifacts, said)) is not None:
            # Nothing is kept of the round, so that an audit that is started again asks all of it again.
            none = f"{stage.model} answered none of {outcome.n_trials} prompts"
            self.fail(audit, f"{none}; the first failure: {cause}", rewriting=None)
            return
        digest = put_model(self.artifacts, said)
        if self.advance(audit, AuditState.REWORDING, AuditState.PARAPHRASING, rewriting=None, rewrites=digest):
            self.ask(audit.audit_id)

    def _finish_transmission(self, audit: AuditView, stage: Stage, outcome: StageOutcome) -> None:
        said = RewriteSet(answered=outcome.answered, dead=outcome.dead)
        if (cause := rewrites.first_failure(self.artifacts, said)) is not None:
            none = f"{stage.model} answered none of {outcome.n_trials} prompts"
            # The ledger keeps this stage as it is, so that an audit that is started again asks in another.
            again = audit.inputs.transmissions + 1
            self.fail(audit, f"{none}; the first failure: {cause}", transmissions=again)
            return
        digest = put_model(self.artifacts, said)
        if self.advance(audit, AuditState.ANSWERING, AuditState.TRANSMITTING, transmitted=digest):
            self.go_on(audit.audit_id)

    def _finish_answers(self, audit: AuditView, outcome: StageOutcome) -> None:
        inputs = audit.inputs
        assert inputs.variants is not None
        assert inputs.model_digest is not None
        reworder, said = paraphrase_model(audit.suite), rewrites.load(self.artifacts, inputs.rewrites)
        router, transmitted = router_model(audit.suite), rewrites.load(self.artifacts, inputs.transmitted)
        manifest = AuditManifest(
            audit_id=audit.audit_id,
            suite=audit.resolved_suite,
            card=audit.card,
            model_digest=inputs.model_digest,
            model_digest_verified=inputs.model_digest_verified,
            server=inputs.server,
            backend=inputs.endpoint.backend,
            items=inputs.items,
            variants=inputs.variants,
            answered=outcome.answered,
            dead=outcome.dead,
            paraphraser=None if reworder is None else rewrites.facts(self.artifacts, reworder, said),
            transmitted=inputs.transmitted,
            router=None if router is None else rewrites.facts(self.artifacts, router, transmitted),
        )
        digest = put_model(self.artifacts, manifest)
        if self.advance(audit, AuditState.SCORING, AuditState.ANSWERING, manifest=digest):
            self.ask(audit.audit_id)
