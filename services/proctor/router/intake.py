"""What workers answer: recorded, set back or given up, credited to the pool, and handed on to be graded."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from proctor.domain.manifest import AnsweredShard
from proctor.domain.messages import GradeShards, ShardAnswer, ShardsAnswered, ShardsGraded, TakeOn
from proctor.router.audit import AuditView, view
from proctor.router.dispatch import Dispatcher
from proctor.router.ledger.store import Answer, PlannedShard, Setback
from proctor.router.pools.store import FIRST_WAIT, LONGEST_WAIT, Outage
from proctor.router.stages.answer import ANSWER
from proctor.router.stages.registry import pool_of, stage_of, under_way
from proctor.runtime.logs.context import saying
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.metrics.recording import Redelivery
from proctor.runtime.records.store import AuditState

logger = logging.getLogger(__name__)

#: How much longer than the pool itself waits for servers that are away: a look that comes too early is in vain.
_LATER = 1.25
#: What the ledger says of an answer that it did not have.
_NEW = ("recorded", "complete")
_SCORED_BY_NOW = (AuditState.SCORING, AuditState.REGISTERING, AuditState.DECIDED, AuditState.CANCELLED)
_REDELIVERIES = {Setback.LOST: Redelivery.LOST, Setback.HANDED_BACK: Redelivery.HANDED_BACK}


def take_in(dispatcher: Dispatcher, message: ShardsAnswered) -> None:
    """Record answers, or what kept them from coming, and hand out what comes next.

    Each answer counts once, however often it is delivered. What failed is not tried again at once, or an outage of a
    second would use up every attempt: it waits for an answer to another shard, which shows that things work, or for the
    reconciler. What a leaving worker handed back is somebody else's at once.
    """
    said = [answer for answer in message.answers if answer.completions is not None]
    answers = [
        Answer(one.shard_id, one.completions, one.input_tokens, one.output_tokens, one.n_refused)
        for one in said
        if one.completions is not None
    ]
    shard_ids = [one.shard_id for one in said]
    n_trials, output_tokens = sum([one.n_trials for one in said]), sum([one.output_tokens for one in said])
    moved = any(answer.handed_back for answer in message.answers)
    audit = view(dispatcher.records, message.audit_id)
    stage = stage_of(message.stage)
    pool = pool_of(audit.inputs, message.stage)
    if audit.record.state.final:
        _let_go(dispatcher, audit, message, pool)
        return
    recorded, entries = dict[str, str](), dict[str, PlannedShard]()
    if answers:
        outcomes = dispatcher.ledger.record_all(message.audit_id, message.stage, answers)
        for answer, outcome in zip(answers, outcomes, strict=True):
            if outcome in _NEW:
                recorded[answer.shard_id] = answer.completions
        if recorded and stage.graded and not audit.record.state.ended:
            entries = dispatcher.ledger.entries_of(message.audit_id, message.stage, recorded)
        dispatcher.counting.recorded(message.audit_id, message.stage, zip(answers, outcomes, strict=True))
        if pool is not None:
            # The credits come back, and it is noted that the servers work, and how quickly.
            dispatcher.pools.settle(
                pool,
                message.audit_id,
                message.stage,
                shard_ids,
                worked=True,
                n_trials=n_trials,
                seconds=message.seconds,
                output_tokens=output_tokens,
            )
    if len(answers) < len(message.answers):
        moved = _set_all_back(dispatcher, audit, message, pool) or moved
        # It may have been given up.
        audit = view(dispatcher.records, message.audit_id)
    if entries:
        dispatcher.send(_to_grade(audit, entries, recorded))
    if recorded or moved:
        dispatcher.go_on(audit)


def note_grades(dispatcher: Dispatcher, message: ShardsGraded) -> None:
    """Keep the digests of grades, so that the scorer finds most of its work done."""
    audit = view(dispatcher.records, message.audit_id)
    if audit.record.state in _SCORED_BY_NOW:
        return
    graded = {one.shard: (one.completions, one.grades) for one in message.graded if one.grades is not None}
    # Those of an earlier look are not needed any more; beside those of this one they do no harm.
    dispatcher.ledger.note_graded(message.audit_id, ANSWER.name(audit.inputs), graded)


def _let_go(dispatcher: Dispatcher, audit: AuditView, message: ShardsAnswered, pool: str | None) -> None:
    """What comes after the end changes nothing; its credits are somebody else's."""
    for _ in message.answers:
        metrics.duplicate_suppressed()
    if pool is not None:
        dispatcher.pools.release(pool, audit.audit_id, message.stage, [answer.shard_id for answer in message.answers])
    dispatcher.go_on(audit)


def _set_all_back(dispatcher: Dispatcher, audit: AuditView, message: ShardsAnswered, pool: str | None) -> bool:
    """Note the attempts that gave no completions; returns whether the audit goes on by that, to its end perhaps."""
    moved, outages = False, list[tuple[Outage, str]]()
    for answer in message.answers:
        if answer.completions is None:
            moved = _set_back(dispatcher, message, answer, pool, outages) or moved
    if outages:
        moved = _wait_or_fail(dispatcher, audit, message.stage, *outages[-1]) or moved
    return moved


def _set_back(
    dispatcher: Dispatcher,
    message: ShardsAnswered,
    answer: ShardAnswer,
    pool: str | None,
    outages: list[tuple[Outage, str]],
) -> bool:
    """Note an attempt that gave no completions; returns whether the shard was given up.

    Where it was because the endpoint is away, that is added to `outages` with its words.
    """
    shard = message.audit_id, message.stage, answer.shard_id
    cause = answer.error or "the inference worker gave no completions and no reason"
    outage = None
    if pool is not None and answer.unreachable and answer.retryable:
        outage = dispatcher.pools.unreachable(pool, *shard, jitter=dispatcher.chance())
    setback = _setback(answer, outage)
    outcome = dispatcher.ledger.fail(*shard, answer.attempt, setback=setback, cause=cause)
    with saying(shard_id=answer.shard_id):
        words = "shard %s, attempt %d: %s, and %s: %s"
        logger.warning(words, "/".join(shard), answer.attempt, setback, outcome, cause)
    dispatcher.counting.failed(*shard, outcome, _REDELIVERIES.get(setback, Redelivery.FAILED))
    # The credit of an attempt that is not the current one is the current one's.
    if pool is not None and outcome != "stale":
        dispatcher.pools.release(pool, message.audit_id, message.stage, [answer.shard_id])
    if outage is not None:
        outages.append((outage, cause))
    return outcome in ("dead", "complete")


def _setback(answer: ShardAnswer, outage: Outage | None) -> Setback:
    if answer.handed_back:
        return Setback.HANDED_BACK
    if not answer.retryable:
        return Setback.FINAL
    if outage is not None:
        return Setback.LOST if outage.counts else Setback.HANDED_BACK
    return Setback.FAILED


def _wait_or_fail(dispatcher: Dispatcher, audit: AuditView, stage_name: str, outage: Outage, cause: str) -> bool:
    """Look again when the pool lets another shard probe, or give up on servers that have been away for too long.

    Returns whether the audit was given up, and others may have what it leaves.
    """
    stage = under_way(audit)
    if stage is None or stage.name != stage_name:
        return False
    if outage.since_s <= dispatcher.timing.outage_s:
        wait_s = min(LONGEST_WAIT.total_seconds(), outage.since_s + FIRST_WAIT.total_seconds())
        dispatcher.send_later(TakeOn(audit_id=audit.audit_id), wait_s * _LATER)
        return False
    away = f"the endpoint {stage.endpoint.url} has been away for {outage.since_s:.0f} s"
    dispatcher.fail(audit, f"{stage.model}: {away}; the last failure: {cause}")
    return True


def _to_grade(audit: AuditView, entries: Mapping[str, PlannedShard], recorded: Mapping[str, str]) -> GradeShards:
    return GradeShards(
        audit_id=audit.audit_id,
        items=audit.inputs.items,
        fresh=audit.inputs.fresh,
        control=audit.inputs.control,
        extractor=audit.suite.metric.extractor,
        shards=tuple(
            [AnsweredShard(shard=entry.digest, completions=recorded[shard_id]) for shard_id, entry in entries.items()]
        ),
    )
