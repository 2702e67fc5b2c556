"""An audit's status, read from its row, its ledger and its decision."""

from __future__ import annotations

from itertools import accumulate
from typing import Final, NamedTuple

from proctor.domain.errors import PluginError
from proctor.domain.measure import Bounded
from proctor.gateway.status import (
    AuditStatus,
    LooksTaken,
    LookTaken,
    TokensSpent,
    Trials,
    Verdict,
    failures_by_cause,
)
from proctor.router.audit import AuditView
from proctor.router.ledger.store import Ledger
from proctor.router.pools.store import Pools
from proctor.router.stages.registry import ledger_stage, stages_so_far, under_way
from proctor.router.stages.stage import StageUnderWay
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.decisions import decision_of
from proctor.runtime.records.store import Records

#: States that no audit comes to without having asked something.
_ASKED_BY_THEN: Final = frozenset({AuditState.SCORING, AuditState.REGISTERING, AuditState.DECIDED})


class Counts(NamedTuple):
    """Where trials are counted, and servers that are away noted."""

    ledger: Ledger
    pools: Pools


def read_status(audit: AuditView, records: Records, counts: Counts | None) -> AuditStatus:
    """An audit as it is now.

    Args:
        audit: its row, parsed.
        records: where its decision is.
        counts: where its trials are counted; without it they are not, and what it used is taken from the record.

    Raises:
        StoreError: when the ledger cannot be reached.
    """
    record, inputs = audit.record, audit.inputs
    stage, under_way = _stage(audit)
    status = AuditStatus(
        audit_id=record.audit_id,
        suite=audit.suite.audit_suite_id,
        model_id=audit.suite.model.model_id,
        state=record.state,
        paused=inputs.paused and not record.state.ended,
        priority=inputs.priority,
        detail=record.detail,
        created_at=record.created_at,
        stage=stage,
        decision=_verdict(records, record.audit_id, record.state),
        submitter=inputs.submitter,
        searching=inputs.searching and not record.state.ended,
        looks=_looks(audit),
    )
    if counts is None:
        return status.model_copy(update={"spent": _noted(audit, records, None)})
    away_s = None if under_way is None else counts.pools.away_for(under_way.endpoint.pool)
    status = _counted(status.model_copy(update={"away_s": away_s}), audit, counts.ledger)
    if status.spent is None:
        status = status.model_copy(update={"spent": _noted(audit, records, status.trials)})
    return status


def _looks(audit: AuditView) -> LooksTaken | None:
    inputs, scoring = audit.inputs, audit.suite.scoring
    if not inputs.looks:
        return None
    return LooksTaken(
        sizes=tuple(accumulate(look.n_items for look in inputs.looks)),
        taken=tuple(
            LookTaken(
                n_items=looked.seen.n_items,
                inflation=Bounded.of(looked.seen.inflation),
                score=Bounded.of(looked.seen.score),
                decision_chance=looked.seen.decision_chance,
            )
            for looked in inputs.looked
        ),
        allowed_points=scoring.max_allowed_contaminated_items_pct,
        blocked_points=audit.suite.governance.block_deployment_above_contaminated_pct,
        score_limit=scoring.contamination_threshold,
    )


def _stage(audit: AuditView) -> tuple[str | None, StageUnderWay | None]:
    """The stage that an audit is in, and the same if it is under way; none where its plug-in is not here to tell."""
    try:
        return ledger_stage(audit), under_way(audit)
    except PluginError:
        return None, None


def _counted(status: AuditStatus, audit: AuditView, ledger: Ledger) -> AuditStatus:
    spent = ledger.spent(status.audit_id)
    counts: dict[str, object] = {"spent": TokensSpent(**spent._asdict()) if any(spent) else None}
    if status.stage is not None:
        progress = ledger.progress_over(status.audit_id, stages_so_far(audit, status.stage))
        counts["trials"] = Trials(
            planned=progress.planned, done=progress.done, under_way=progress.leased, dead=progress.dead
        )
        if progress.dead:
            counts["failures"] = failures_by_cause(ledger.dead(status.audit_id, status.stage))
    return status.model_copy(update=counts)


def _noted(audit: AuditView, records: Records, trials: Trials | None) -> TokensSpent | None:
    """What an audit used of which the ledger has nothing; None where that is not known.

    A ledger forgets an audit that has ended, and may be another stack's: that it has nothing says only of what it has
    planned that nothing was asked. What is on record was noted when the audit last stopped.
    """
    used = records.costs.of_audit(audit.audit_id)
    if used is not None:
        return TokensSpent(trials=used.trials, input_tokens=used.input_tokens, output_tokens=used.output_tokens)
    is_planned = trials is not None and trials.planned > 0
    asked_nothing = audit.inputs.planned_stage is None and audit.record.state not in _ASKED_BY_THEN
    return TokensSpent() if is_planned or asked_nothing else None


def _verdict(records: Records, audit_id: str, state: AuditState) -> Verdict | None:
    if state not in (AuditState.REGISTERING, AuditState.DECIDED):
        return None
    event = records.decision(audit_id)
    if event is None:
        return None
    standing = records.standings.standing_of(audit_id)
    return Verdict.of(decision_of(audit_id, event), records.registration(audit_id), standing)
