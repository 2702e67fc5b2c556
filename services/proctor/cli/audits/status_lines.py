"""An audit's status in plain words."""

from __future__ import annotations

from proctor.domain.decision import DecisionOutcome, scope_caveat
from proctor.domain.errors import ExitCode
from proctor.domain.measure import Bounded
from proctor.domain.standing import StandingKind
from proctor.gateway.status import AuditStatus, Verdict
from proctor.runtime.records.audit_state import AuditState

EXIT_CODES = {
    DecisionOutcome.APPROVE: ExitCode.APPROVED_OR_DONE,
    DecisionOutcome.REVIEW: ExitCode.REVIEW,
    DecisionOutcome.BLOCK: ExitCode.BLOCKED,
}

STEPS = {
    AuditState.CREATED: "waiting for the router",
    AuditState.PROBING: "asking the endpoint",
    AuditState.REWORDING: "rewording items",
    AuditState.PARAPHRASING: "rewording items: asking the rewording model",
    AuditState.TRANSMITTING: "asking the routers",
    AuditState.ASKING: "asking more about the items",
    AuditState.ANSWERING: "answering",
    AuditState.SCORING: "weighing the evidence",
    AuditState.REGISTERING: "writing to the registry",
    AuditState.DECIDED: "decided",
    AuditState.FAILED: "failed",
    AuditState.CANCELLED: "cancelled",
}
_HOUR_S = 3600
_MINUTE_S = 60


def exit_code(status: AuditStatus) -> ExitCode:
    """What a command leaves with that waited for an audit: the code of what holds, or failure without a decision."""
    if status.state is not AuditState.DECIDED or status.decision is None:
        return ExitCode.FAILURE
    return EXIT_CODES[status.decision.holds]


def step(status: AuditStatus) -> str:
    """What an audit is doing, in a few words."""
    if status.paused:
        return f"{STEPS[status.state]} (paused)"
    # The evidence is not weighed before.
    if status.searching and status.state is AuditState.SCORING:
        return "searching training data" + (f" ({workers_away(status)})" if status.services_away else "")
    # A probe that is sent again has left on record why.
    if status.away_s is not None or (status.state is AuditState.PROBING and status.detail):
        return f"{STEPS[status.state]} (the endpoint does not answer)"
    if status.services_away:
        return f"{STEPS[status.state]} ({workers_away(status)})"
    return STEPS[status.state]


def workers_away(status: AuditStatus) -> str:
    """Which services have no worker, in a few words."""
    return f"no worker of {', '.join(status.services_away)} is heard of"


def progress(status: AuditStatus) -> str:
    """How far the stage is, how quickly it goes on, and what was given up; empty outside of a stage."""
    trials = status.trials
    if trials is None or not trials.planned:
        return ""
    asked = counted_as(status.stage)
    parts = [f"{trials.done:,} of {trials.planned:,} {asked}"]
    if trials.dead:
        parts.append(f"{trials.dead:,} given up")
    if status.rate is not None:
        parts.append(f"{_rate(status.rate)}/s")
    if status.eta_s:
        parts.append(f"about {duration(status.eta_s)} left")
    return ", ".join(parts)


def last_look(status: AuditStatus) -> str:
    """What the last look saw, against the limits it closes in on; empty before the first, and of a fixed design."""
    looks = status.looks
    if looks is None or not looks.taken:
        return ""
    last, n_looks = looks.taken[-1], len(looks.sizes)
    limit = f"{looks.allowed_points:g}"
    if looks.blocked_points != looks.allowed_points:
        limit += f" to approve, {looks.blocked_points:g} to block"
    parts = [
        f"look {len(looks.taken)} of {n_looks}, {last.n_items:,} of {looks.sizes[-1]:,} items: "
        f"score inflation {_bounded(last.inflation, 1)} points (limit {limit})",
        f"Contamination Score {_bounded(last.score, 3)} (limit {looks.score_limit:g})",
    ]
    if last.decision_chance is not None:
        parts.append(f"{100 * last.decision_chance:.0f} % to decide")
    return ", ".join(parts)


def _bounded(bounds: Bounded, digits: int) -> str:
    if bounds.low is None or bounds.high is None:
        return "unbounded"
    return f"{bounds.low:.{digits}f} to {bounds.high:.{digits}f}"


def counted_as(stage: str | None) -> str:
    """What the trials of a stage are called, by the ledger's name of it; one that is not installed here has trials."""
    from proctor.router.stages.registry import STAGES

    kind = (stage or "").partition("-")[0]
    return STAGES.get(kind).counted_as if kind in STAGES else "trials"


def failure_lines(status: AuditStatus) -> list[str]:
    """Why shards were given up, one line a cause."""
    return [
        f"{failure.shards:,} shard{'s' if failure.shards > 1 else ''} given up: {failure.cause}"
        for failure in status.failures
    ]


def conclusion(status: AuditStatus) -> str:
    """Where an audit is, in one sentence, and what to do about it where there is something to do."""
    audit = f"Audit {status.audit_id} of {status.model_id}"
    if status.state is AuditState.FAILED:
        return (
            f"{audit} failed: {status.detail.rstrip('.')}. Once that is mended, `proctor audit resume "
            f"{status.audit_id}` goes on from here."
        )
    if status.state is AuditState.CANCELLED:
        return f"{audit} was cancelled; `proctor audit submit` with its suite begins a new one."
    if status.state is AuditState.DECIDED and status.decision is not None:
        reasons = status.decision.reasons
        # Before the reason, which says nothing of how far it reaches.
        caveat = scope_caveat(status.decision.outcome, status.decision.scope)
        decided = f"{audit} was decided: {status.decision.outcome}"
        if caveat is not None:
            return " ".join([f"{decided}.", caveat, *(reason.text for reason in reasons[:1])])
        return decided + (f" ({reasons[0].text})." if reasons else ".")
    how_far = progress(status)
    if status.paused:
        return (
            f"{audit} is paused, at: {STEPS[status.state]}{f' ({how_far})' if how_far else ''}. "
            f"`proctor audit resume {status.audit_id}` goes on."
        )
    return f"{audit} is under way: {step(status)}{f', {how_far}' if how_far else ''}."


def holds(verdict: Verdict) -> str:
    """What holds in the stead of a decision, in one sentence; empty where the decision does."""
    stands = verdict.stands
    if stands is None or stands.kind is StandingKind.DECISION:
        return ""
    said = f"since {stands.at} it stands at {stands.outcome.value}"
    if stands.by is not None:
        said += f", signed off by {stands.by.name} (via {stands.by.via}; {stands.reference})"
    ends = f" Until {stands.expires_at}." if stands.expires_at is not None else ""
    return f"{said}: {stands.reason}{ends}"


def duration(seconds: float) -> str:
    """Seconds in the two units that a person would say."""
    whole = max(1, round(seconds))
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S} s"
    return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S} min"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
