"""Taking an audit on: handing out the shards of its stages, and what follows when a stage ends.

Every step is guarded by the audit's row, which moves only from the state (and, where inputs are written, from the
inputs) that the step has seen, and by the ledger. So a step that runs twice does nothing the second time.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from proctor.domain.errors import ProctorError, StoreError
from proctor.domain.manifest import PromptSet
from proctor.domain.messages import Message, WriteDecision
from proctor.router import rewrites, searching
from proctor.router.audit import AuditView, view
from proctor.router.awaited import request_of, step_of
from proctor.router.budget import exceeded, usage_of
from proctor.router.counting import Counting
from proctor.router.finishing import ending
from proctor.router.handing_out import HandingOut, Waiting
from proctor.router.inputs import RewritingRound
from proctor.router.ledger.loss import loss
from proctor.router.ledger.store import Ledger
from proctor.router.pools.store import Pools
from proctor.router.search_dispatch import SearchDispatch
from proctor.router.stages.outcome import stage_outcome
from proctor.router.stages.registry import state_to_go_on_in, under_way
from proctor.router.stages.stage import NOTHING_TO_ASK, StageParts, StageUnderWay
from proctor.router.states import RUNNING, Cause, before
from proctor.runtime.artifacts.store import ArtifactStore, get_model, put_model
from proctor.runtime.logs.context import saying
from proctor.runtime.records.decisions import decision_of
from proctor.runtime.records.store import AuditState, Records
from proctor.runtime.redis.presence import Presence
from proctor.runtime.timing import DEFAULT_TIMING, Timing
from proctor.runtime.traces import tracing

logger = logging.getLogger(__name__)

#: How long the ledger of an audit that has ended for good is kept, for whoever looks into what happened.
_KEPT = timedelta(days=1)


def _never(message: Message, seconds: float) -> None:
    del message, seconds


def _nobody(audit: AuditView) -> str | None:
    del audit
    return None


def _now() -> datetime:
    return datetime.now(UTC)


def _uncounted(what: str) -> AbstractContextManager[None]:
    del what
    return nullcontext()


@dataclass(frozen=True)
class Dispatcher:
    """Takes audits on, with the router's stores and a way to send messages."""

    records: Records
    artifacts: ArtifactStore
    ledger: Ledger
    pools: Pools
    presence: Presence
    send: Callable[[Message], None]
    timing: Timing = DEFAULT_TIMING
    send_later: Callable[[Message, float], None] = _never
    """Sends a message after so many seconds. What it would bring, the reconciler brings too, later."""
    chance: Callable[[], float] = random.random
    """Numbers in [0, 1), for jitter."""
    now: Callable[[], datetime] = _now
    """The time, in UTC: what an audit used is of the month in which it stops."""
    barred: Callable[[AuditView], str | None] = _nobody
    """Why nothing of an audit may be asked, as the operator says now; None where it may."""
    trying: Callable[[str], AbstractContextManager[None]] = _uncounted
    """Counts tries at something that takes memory and may kill the router, and refuses one too many
    (`proctor.runtime.redis.tries`). By the audit, and not by the message: any audit's message may be the one that takes
    another audit on."""

    @cached_property
    def counting(self) -> Counting:
        """What becomes of shards, for the metrics."""
        return Counting(self.ledger, self.artifacts)

    @cached_property
    def handing(self) -> HandingOut:
        """Plans, leases and sends shards."""
        return HandingOut(self.artifacts, self.ledger, self.pools, self.presence, self.counting, self.send, self.timing)

    def view(self, audit_id: str) -> AuditView:
        """An audit as it is on record now."""
        return view(self.records, audit_id)

    def advance(self, audit: AuditView, cause: Cause, state: AuditState, *, detail: str = "", **changes: Any) -> bool:
        """Move an audit to a state, from where the table of states has this cause take it, and change its inputs.

        False when it is not any more as it was seen. Whoever pauses an audit or raises its budget meanwhile does not
        stand in the way: only its own steps do.
        """
        return self._moved(audit, state, before(cause, state), detail, changes)

    def note(self, audit: AuditView, **changes: Any) -> bool:
        """Change an audit's inputs and leave its state; False when it is not any more as it was seen."""
        return self._moved(audit, audit.record.state, (audit.record.state,), audit.record.detail, changes)

    def _moved(
        self,
        audit: AuditView,
        state: AuditState,
        expected: tuple[AuditState, ...],
        detail: str,
        changes: Mapping[str, Any],
    ) -> bool:
        seen = audit
        while not self.records.advance(
            audit.audit_id,
            state,
            expected=expected,
            expected_inputs=seen.record.inputs if changes else None,
            detail=detail,
            inputs=seen.inputs.model_copy(update=changes).plain() if changes else None,
        ):
            seen = self.view(audit.audit_id)
            if not changes or seen.record.state not in expected or seen.inputs.own != audit.inputs.own:
                return False
        if state is not audit.record.state:
            said = {"proctor.audit.state": state.value, "proctor.audit.state_before": audit.record.state.value}
            tracing.step(f"state {state.value}", audit.audit_id, said)
        return True

    def fail(self, audit: AuditView, detail: str, **changes: Any) -> None:
        """End an audit that runs with the reason. It stays open: started again, it goes on."""
        with saying(audit_id=audit.audit_id):
            logger.error("audit %s failed: %s", audit.audit_id, detail)
        self.note_usage(audit)
        if self.advance(audit, Cause.FAILED, AuditState.FAILED, detail=detail, **changes):
            self.handing.leave(audit)

    def clear_away(self, audit: AuditView) -> None:
        """An audit has ended for good: it asks nobody, and its ledger does not stay long."""
        self.note_usage(audit)
        self.handing.leave(audit)
        if audit.inputs.corpora is not None:
            self.ledger.give_turn_back(searching.turn_of(audit.audit_id))
        self.ledger.expire(audit.audit_id, _KEPT)

    def note_usage(self, audit: AuditView) -> None:
        """Keep what an audit used beyond its ledger. May be noted often: it is the sum so far.

        What is asked for by others alone must not stop an audit: where it cannot be noted, that is in the log.
        """
        try:
            spent = self.ledger.spent_by_stage(audit.audit_id)
            if spent:
                self.records.costs.note(
                    audit.audit_id,
                    self.now().strftime("%Y-%m"),
                    usage_of(audit.inputs.terms, spent),
                    submitter=audit.inputs.submitter,
                    suite_id=audit.suite.audit_suite_id,
                    model_id=audit.suite.model.model_id,
                )
        except StoreError as error:
            logger.warning("audit %s: what it used is not on record: %s", audit.audit_id, error)

    def ask(self, audit_id: str) -> None:
        """Send another service the request that the audit's state calls for."""
        audit = self.view(audit_id)
        self.searches.go_on(audit)
        request = self._decision_to_write(audit) or request_of(audit)
        if request is not None and not audit.inputs.paused:
            self.send(request)
            self.note_asked(audit)

    @cached_property
    def searches(self) -> SearchDispatch:
        """Has training data searched."""
        return SearchDispatch(self.artifacts, self.ledger, self.presence, self.send, self.timing)

    def note_asked(self, audit: AuditView) -> None:
        """Note that what the audit waits for has been asked for, so that the reconciler leaves it its time."""
        self.ledger.note_asked(audit.audit_id, step_of(audit), answer_time=self.timing.answer_time)

    def _decision_to_write(self, audit: AuditView) -> WriteDecision | None:
        if audit.record.state is not AuditState.REGISTERING:
            return None
        event = self.records.decision(audit.audit_id)
        return None if event is None else WriteDecision(event=decision_of(audit.audit_id, event))

    def take_on(self, audit_id: str) -> None:
        """Do what the audit's state calls for now: ask for what was not asked, hand out shards, or leave its pools."""
        audit = self.view(audit_id)
        self.searches.go_on(audit)
        if audit.record.state.final:
            self.clear_away(audit)
        elif audit.record.state in RUNNING and under_way(audit) is None:
            if not self.ledger.was_asked(audit_id, step_of(audit), answer_time=self.timing.answer_time):
                self.ask(audit_id)
            return
        self.go_on(audit)

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
        if self.advance(audit, Cause.REWORDED, AuditState.PARAPHRASING, rounds=number, rewriting=begun):
            self.go_on(self.view(audit.audit_id))

    def go_on(self, audit: AuditView) -> None:
        """Hand out what the stage under way has room for, or end the stage when nothing is left.

        Asks the ledger where the stage is instead of trusting the one message that began it, or the one 'complete'
        answer: the worker that got it may have died with it. Then the same for audits that wait for the same servers
        and could have more of them now.

        Args:
            audit: as it was just read.
        """
        todo, seen = list(self._step(audit)), {audit.audit_id}
        while todo:
            pool, other = todo.pop()
            if other in seen:
                continue
            seen.add(other)
            try:
                todo += self._step_of_waiting(pool, other)
            except Exception:
                # It is the other's trouble, and the reconciler tells of it again.
                logger.exception("audit %s cannot be taken on now", other)

    def _step_of_waiting(self, pool: str, audit_id: str) -> tuple[Waiting, ...]:
        audit = self.view(audit_id)
        stage = under_way(audit)
        if stage is None or stage.endpoint.pool != pool:
            self.pools.leave(pool, audit_id)
        return self._step(audit)

    def _step(self, audit: AuditView) -> tuple[Waiting, ...]:
        """One audit's part of `go_on`; returns who waits for what it leaves."""
        with saying(audit_id=audit.audit_id):
            return self._taken_on(audit)

    def _taken_on(self, audit: AuditView) -> tuple[Waiting, ...]:
        stage = under_way(audit)
        if stage is None or audit.inputs.paused:
            return self.handing.stand_back(audit)
        try:
            return self._go_on_with(audit, stage)
        except StoreError:
            raise
        except ProctorError as error:
            # Trying again would not mend it: a prompt that is too large, a plan that kills whoever makes it.
            self.fail(audit, f"{stage.model} cannot be asked: {error}")
            return self.handing.stand_back(audit)

    def _go_on_with(self, audit: AuditView, stage: StageUnderWay) -> tuple[Waiting, ...]:
        audit_id, step = audit.audit_id, f"{audit.audit_id} {stage.name}"
        parts = stage.stage.parts(audit, self.artifacts)
        if parts.n == 0:
            self.fail(audit, NOTHING_TO_ASK)
            return ()
        room = self.handing.room(stage.endpoint.pool, stage.decoding.max_tokens)
        standing = self.ledger.standing(audit_id, stage.name, room.capacity)
        if (cause := loss(audit.inputs, stage.name, standing)) is not None:
            self.fail(audit, cause)
            return self.handing.stand_back(audit)
        asks = standing.queued or standing.more
        if asks:
            cause = self.barred(audit)
            if cause is None and audit.inputs.terms.limited:
                cause = self._over_budget(audit, stage, parts)
            if cause is not None:
                self.fail(audit, cause)
                return self.handing.stand_back(audit)
        while self.handing.runs_low(standing, room):
            with self.trying(step):
                standing = self.handing.lay_down(audit, stage, parts, room, standing)
            if audit.inputs.planned_stage != stage.name:
                audit = self._noted_as_planned(audit, stage)
            if self.handing.runs_low(standing, room) and standing.queued >= room.together:
                # Workers begin with what is there while the next part is planned.
                self.handing.hand_out(audit, stage, standing, room)
                standing = self.ledger.standing(audit_id, stage.name, room.capacity)
        if standing.parts.laid and audit.inputs.planned_stage != stage.name:
            # Whoever laid it down may have died before that was noted.
            audit = self._noted_as_planned(audit, stage)
        if standing.complete:
            return self._finish(audit, stage)
        return self.handing.hand_out(audit, stage, standing, room)

    def _noted_as_planned(self, audit: AuditView, stage: StageUnderWay) -> AuditView:
        """Note, before anything of a stage is handed out, that the ledger has its plan. Returns the audit as it is.

        Where the audit has moved on meanwhile nothing is noted, and what it is found in is somebody else's step.
        """
        self.note(audit, planned_stage=stage.name)
        seen = self.view(audit.audit_id)
        return seen if seen.record.state is audit.record.state else audit

    def _over_budget(self, audit: AuditView, stage: StageUnderWay, parts: StageParts) -> str | None:
        """Why nothing more may be asked; None where the budget allows it."""
        spent = self.ledger.spent_by_stage(audit.audit_id)
        before = sum(of_stage.trials for name, of_stage in spent.items() if name != stage.name)
        planned = None if parts.n_trials is None else before + parts.n_trials
        return exceeded(audit.inputs.terms, spent, planned_trials=planned)

    def _finish(self, audit: AuditView, stage: StageUnderWay) -> tuple[Waiting, ...]:
        with self.trying(f"{audit.audit_id} {stage.name}"):
            outcome = stage_outcome(self.ledger, audit.audit_id, stage.name)
            end = ending(audit, stage, outcome, self.artifacts)
        if end.failure is not None:
            self.fail(audit, end.failure, **end.changes)
            return self.handing.stand_back(audit)
        after = end.after or state_to_go_on_in(audit.changed(**end.changes))
        if self.advance(audit, Cause.STAGE_ENDED, after, **end.changes):
            self.ask(audit.audit_id)
            return self._step(self.view(audit.audit_id))
        return self.handing.stand_back(audit)
