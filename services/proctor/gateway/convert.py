"""Audits as messages of protos/proctor/v1/audit.proto, and back."""

from __future__ import annotations

from typing import Final

from proctor.domain.decision import DecisionOutcome, Reason
from proctor.domain.errors import BadInputError
from proctor.domain.measure import Bounded
from proctor.domain.messages import Priority
from proctor.domain.record.sign_off import SignedBy
from proctor.domain.scope import Scope
from proctor.domain.standing import StandingKind
from proctor.domain.submitter import LOCAL_NAME
from proctor.domain.weights import Weights
from proctor.gateway.desk import Submitted
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.gateway.status import (
    AuditStatus,
    Failure,
    LooksTaken,
    LookTaken,
    Stands,
    TokensSpent,
    Trials,
    Verdict,
)
from proctor.runtime.records.audit_state import AuditState, UnreadableAudit

_STATE: Final = "AUDIT_STATE_"
_OUTCOME: Final = "OUTCOME_"
_PRIORITY: Final = "PRIORITY_"
_UNKNOWN: Final = "this version of Proctor does not know: use the server's version"


def priority_name(priority: Priority) -> str:
    """A priority's name on the wire."""
    return _PRIORITY + priority.name


def priority_of(number: pb.Priority) -> Priority:
    """The priority that a value on the wire stands for; left out, it is the normal one.

    Raises:
        BadInputError: when there is none of that value.
    """
    if number == pb.PRIORITY_UNSPECIFIED:
        return Priority.NORMAL
    try:
        return Priority[pb.Priority.Name(number).removeprefix(_PRIORITY)]
    except ValueError:
        names = ", ".join(map(priority_name, Priority))
        raise BadInputError(f"priority is {int(number)}, but must be one of {names}") from None


def audit_message(status: AuditStatus) -> pb.Audit:
    """A status as a message."""
    return pb.Audit(
        audit_id=status.audit_id,
        suite=status.suite,
        model_id=status.model_id,
        state=_STATE + status.state.name,
        paused=status.paused,
        priority=priority_name(status.priority),
        detail=status.detail,
        created_at=status.created_at,
        stage=status.stage,
        trials=None if status.trials is None else pb.Trials(**status.trials.plain()),
        failures=[pb.Failure(cause=failure.cause, shards=failure.shards) for failure in status.failures],
        spent=None if status.spent is None else pb.Spent(**status.spent.plain()),
        rate=status.rate,
        eta_s=status.eta_s,
        away_s=status.away_s,
        services_away=status.services_away,
        searching=status.searching,
        looks=None if status.looks is None else _looks_message(status.looks),
        decision=None if status.decision is None else _decision_message(status.decision),
        submitter=status.submitter,
    )


def listed_message(listed: AuditStatus | UnreadableAudit) -> pb.Audit:
    """An audit of a list as a message; without a state where this server cannot read it, and `detail` says why."""
    if isinstance(listed, UnreadableAudit):
        return pb.Audit(audit_id=listed.audit_id, created_at=listed.created_at, detail=listed.why)
    return audit_message(listed)


def listed_of(message: pb.Audit) -> AuditStatus | UnreadableAudit:
    """The audit of a list that a message carries. One that cannot be read does not stand in the others' way."""
    try:
        return status_of(message)
    except BadInputError as error:
        why = str(error) if message.state != pb.AUDIT_STATE_UNSPECIFIED else message.detail or str(error)
        return UnreadableAudit(message.audit_id, message.created_at, why)


def submitted_message(submitted: Submitted) -> pb.SubmitReply:
    """What came of a submission as a message."""
    return pb.SubmitReply(
        audit=audit_message(submitted.audit),
        stopped_at=None if submitted.stopped_at is None else _STATE + submitted.stopped_at.name,
        notes=submitted.notes,
    )


def submitted_of(message: pb.SubmitReply) -> Submitted:
    """What a message says came of a submission; raises as `status_of`."""
    stopped_at = _state_of(message.stopped_at) if message.HasField("stopped_at") else None
    return Submitted(status_of(message.audit), stopped_at, tuple(message.notes))


def _looks_message(looks: LooksTaken) -> pb.Looks:
    return pb.Looks(
        sizes=looks.sizes,
        taken=[
            pb.Look(
                n_items=one.n_items,
                inflation=pb.Bounds(**one.inflation.plain()),
                score=pb.Bounds(**one.score.plain()),
                decision_chance=one.decision_chance,
            )
            for one in looks.taken
        ],
        allowed_points=looks.allowed_points,
        blocked_points=looks.blocked_points,
        score_limit=looks.score_limit,
    )


def _looks_of(message: pb.Looks) -> LooksTaken:
    return LooksTaken(
        sizes=tuple(message.sizes),
        taken=tuple(
            LookTaken(
                n_items=one.n_items,
                inflation=_bounds_of(one.inflation),
                score=_bounds_of(one.score),
                decision_chance=one.decision_chance if one.HasField("decision_chance") else None,
            )
            for one in message.taken
        ),
        allowed_points=message.allowed_points,
        blocked_points=message.blocked_points,
        score_limit=message.score_limit,
    )


def _bounds_of(message: pb.Bounds) -> Bounded:
    return Bounded(
        value=message.value if message.HasField("value") else None,
        low=message.low if message.HasField("low") else None,
        high=message.high if message.HasField("high") else None,
    )


def _decision_message(verdict: Verdict) -> pb.Decision:
    return pb.Decision(
        outcome=_OUTCOME + verdict.outcome.name,
        reasons=[pb.DecisionReason(code=reason.code, text=reason.text) for reason in verdict.reasons],
        report_path=verdict.report_path,
        report_digest=verdict.report_digest,
        registry_version=verdict.registry_version,
        scope=verdict.scope,
        weights=verdict.weights,
        stands=None if verdict.stands is None else _standing_message(verdict.stands),
    )


def _standing_message(stands: Stands) -> pb.Standing:
    by = stands.by
    return pb.Standing(
        outcome=_OUTCOME + stands.outcome.name,
        kind=stands.kind,
        by=None if by is None else pb.SignedBy(name=by.name, via=by.via),
        reason=stands.reason,
        reference=stands.reference,
        at=stands.at,
        expires_at=stands.expires_at,
        sequence=stands.sequence,
    )


def status_of(message: pb.Audit) -> AuditStatus:
    """The status that a message carries.

    Raises:
        BadInputError: when it holds a state or an outcome that this version does not know.
    """
    trials = message.trials
    return AuditStatus(
        audit_id=message.audit_id,
        suite=message.suite,
        model_id=message.model_id,
        state=_state_of(message.state),
        paused=message.paused,
        priority=priority_of(message.priority),
        detail=message.detail,
        created_at=message.created_at,
        stage=message.stage if message.HasField("stage") else None,
        trials=Trials(planned=trials.planned, done=trials.done, under_way=trials.under_way, dead=trials.dead)
        if message.HasField("trials")
        else None,
        failures=tuple(Failure(cause=failure.cause, shards=failure.shards) for failure in message.failures),
        spent=TokensSpent(
            trials=message.spent.trials,
            input_tokens=message.spent.input_tokens,
            output_tokens=message.spent.output_tokens,
        )
        if message.HasField("spent")
        else None,
        rate=message.rate if message.HasField("rate") else None,
        eta_s=message.eta_s if message.HasField("eta_s") else None,
        away_s=message.away_s if message.HasField("away_s") else None,
        services_away=tuple(message.services_away),
        searching=message.searching,
        looks=_looks_of(message.looks) if message.HasField("looks") else None,
        decision=_verdict_of(message.decision) if message.HasField("decision") else None,
        # A service of before there were names leaves it out.
        submitter=message.submitter or LOCAL_NAME,
    )


def _state_of(number: pb.AuditState) -> AuditState:
    try:
        return AuditState[pb.AuditState.Name(number).removeprefix(_STATE)]
    except (KeyError, ValueError):
        raise BadInputError(f"the service says audit state {int(number)}, which {_UNKNOWN}") from None


def _outcome_of(number: pb.Outcome) -> DecisionOutcome:
    try:
        return DecisionOutcome[pb.Outcome.Name(number).removeprefix(_OUTCOME)]
    except (KeyError, ValueError):
        raise BadInputError(f"the service says outcome {int(number)}, which {_UNKNOWN}") from None


def _verdict_of(message: pb.Decision) -> Verdict:
    return Verdict(
        outcome=_outcome_of(message.outcome),
        reasons=tuple(Reason(code=reason.code, text=reason.text) for reason in message.reasons),
        report_path=message.report_path,
        report_digest=message.report_digest,
        registry_version=message.registry_version if message.HasField("registry_version") else None,
        scope=_scope_of(message.scope) if message.HasField("scope") else None,
        weights=_weights_of(message.weights) if message.HasField("weights") else None,
        stands=_stands_of(message.stands) if message.HasField("stands") else None,
    )


def _stands_of(message: pb.Standing) -> Stands:
    try:
        kind = StandingKind(message.kind)
    except ValueError:
        raise BadInputError(f"the service says kind of standing {message.kind[:40]!r}, which {_UNKNOWN}") from None
    by = SignedBy(name=message.by.name, via=message.by.via) if message.HasField("by") else None
    return Stands(
        outcome=_outcome_of(message.outcome),
        kind=kind,
        by=by,
        reason=message.reason,
        reference=message.reference,
        at=message.at,
        expires_at=message.expires_at if message.HasField("expires_at") else None,
        sequence=message.sequence,
    )


def _weights_of(word: str) -> Weights:
    try:
        return Weights(word)
    except ValueError:
        raise BadInputError(f"the service says weights {word[:40]!r}, which {_UNKNOWN}") from None


def _scope_of(word: str) -> Scope:
    try:
        return Scope(word)
    except ValueError:
        raise BadInputError(f"the service says scope {word[:40]!r}, which {_UNKNOWN}") from None
