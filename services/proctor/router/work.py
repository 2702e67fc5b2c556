"""What waits for each service, over the whole deployment: by it workers are scaled, down to none and up again.

Told by the record store and the ledger, and not by a queue's length: what a worker has taken is in no queue any more,
and of a stage no more is sent than workers can begin with. Only where a queue is longer than what audits wait for does
it count beside: an override, say, is written to the registry after its audit has ended.

A look is one statement, and one round trip to the ledger for some hundred audits; the reconciler's are more.
"""

from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

import redis
import sqlalchemy as sa
from redis.client import Pipeline

from proctor.domain.errors import StoreError
from proctor.domain.messages import HANDLED_BY, QUEUES, SERVICES, SearchCorpus
from proctor.domain.trial import ANSWER_STAGE
from proctor.router.ledger.keys import keys_of
from proctor.router.pools.packs import SHARD_TRIALS
from proctor.router.searching import ledger_stage
from proctor.router.states import RUNNING, TABLE, Cause
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.tables import AUDITS

logger = logging.getLogger(__name__)

#: A scrape waits no longer for a reply; Prometheus itself gives up after ten seconds.
_REPLY_S: Final = 2.0
#: Audits whose stages are looked at in one round trip.
_TOGETHER: Final = 250
_INFERENCE: Final = "inference"
_SCORER: Final = "scorer"
#: Whose workers search training data.
_SEARCHES: Final = HANDLED_BY[SearchCorpus.room()]
#: Services that are scaled by what waits for them. The router is who says it, and is always there.
SCALED: Final = tuple(service for service in SERVICES if service != "router")
#: States in which a model is asked shards.
_ASKS_SHARDS: Final = frozenset(state for state, row in TABLE.items() if Cause.STAGE_ENDED in row.moves)


class ShardState(StrEnum):
    """Where a shard is that is not done."""

    QUEUED = "queued"
    LEASED = "leased"
    UNPLANNED = "unplanned"
    """In a part of its stage that is not cut yet. Estimated, by how large the shards are that are."""


class UnfinishedAudit(NamedTuple):
    """What is looked at of an audit that runs."""

    audit_id: str
    state: AuditState
    created_at: datetime
    paused: bool
    planned_stage: str | None
    """The stage of which the ledger has a plan."""
    corpora: str | None = None
    """Digest of the plan of training data that are still to be searched beside."""

    @property
    def stage(self) -> str | None:
        """The stage whose shards may be under way; None where there is none."""
        return self.planned_stage if self.state in _ASKS_SHARDS else None


class StageWork(NamedTuple):
    """What is left of a stage, in shards."""

    queued: int = 0
    leased: int = 0
    unplanned: int = 0
    ungraded: int = 0
    """Answered, and not graded yet."""
    unsearched: int = 0
    """Shards of training data, beside them."""


class Work(NamedTuple):
    """What waits, at one moment."""

    by_service: Mapping[str, int]
    shards: Mapping[ShardState, int]
    oldest_s: Mapping[AuditState, float]
    """Time since the oldest audit of each state was submitted; 0 where there is none."""


def look(engine: sa.Engine, ledger_url: str, broker_url: str) -> Work:
    """Look at what waits.

    Raises:
        StoreError: the ledger does not answer.
        sqlalchemy.exc.SQLAlchemyError: the record store does not.
    """
    audits = list(_unfinished(engine))
    stages = _stages(ledger_url, [audit for audit in audits if audit.stage or audit.corpora])
    return work_of(audits, stages, _queues(broker_url), now=datetime.now(UTC))


def work_of(
    audits: Iterable[UnfinishedAudit], stages: Mapping[str, StageWork], queues: Mapping[str, int], *, now: datetime
) -> Work:
    """What audits and their stages come to. Pure.

    An audit that asks a model counts at least once: between two stages, or while a part is planned, no shard is there,
    and its workers should be. Of one that is paused only what was handed out before counts.

    Args:
        stages: of audits that have one, by the audit's id.
        queues: service → messages in its queues, as far as that is known.
    """
    waiting, shards = Counter[str](), Counter[ShardState]()
    oldest = dict.fromkeys(RUNNING, 0.0)
    for audit in audits:
        service, stage = TABLE[audit.state].service, stages.get(audit.audit_id, StageWork())
        if audit.paused:
            stage = stage._replace(queued=0, unplanned=0)
        else:
            oldest[audit.state] = max(oldest[audit.state], (now - audit.created_at).total_seconds())
        left = stage.queued + stage.leased + stage.unplanned
        if service is not None:
            waiting[service] += left if audit.paused else max(1, left)
        waiting[_SCORER] += stage.ungraded
        if audit.corpora is not None and not audit.paused:
            # Where one worker searches all of it, there is no shard.
            waiting[_SEARCHES] += max(1, stage.unsearched)
        shards[ShardState.QUEUED] += stage.queued
        shards[ShardState.LEASED] += stage.leased
        shards[ShardState.UNPLANNED] += stage.unplanned
    by_service = {service: max(waiting[service], queues.get(service, 0)) for service in SCALED}
    return Work(by_service, {state: shards[state] for state in ShardState}, oldest)


def _unfinished(engine: sa.Engine) -> Iterator[UnfinishedAudit]:
    columns = AUDITS.c.audit_id, AUDITS.c.state, AUDITS.c.created_at, AUDITS.c.inputs
    statement = sa.select(*columns).where(AUDITS.c.state.in_([state.value for state in RUNNING]))
    with engine.connect() as connection:
        for row in connection.execute(statement):
            # Not as AuditInputs: what a later version wrote waits like the rest.
            inputs: dict[str, Any] = json.loads(row.inputs)
            yield UnfinishedAudit(
                row.audit_id,
                AuditState(row.state),
                datetime.fromisoformat(row.created_at),
                bool(inputs.get("paused")),
                inputs.get("planned_stage"),
                None if inputs.get("searched") else inputs.get("corpora"),
            )


def _stages(ledger_url: str, audits: Sequence[UnfinishedAudit]) -> dict[str, StageWork]:
    found: dict[str, StageWork] = {}
    try:
        with closing(_client(ledger_url)) as client:
            for first in range(0, len(audits), _TOGETHER):
                some = audits[first : first + _TOGETHER]
                pipe = client.pipeline(transaction=False)
                for audit in some:
                    _ask_of(pipe, audit)
                replies = pipe.execute()
                width = len(replies) // len(some)
                for number, audit in enumerate(some):
                    found[audit.audit_id] = _stage_work(audit, replies[number * width : (number + 1) * width])
    except (redis.RedisError, OSError) as error:
        raise StoreError(f"the ledger did not answer: {error}") from error
    return found


def _ask_of(pipe: Pipeline, audit: UnfinishedAudit) -> None:
    key = keys_of(audit.audit_id, audit.stage or "")
    pipe.hmget(key["parts"], "laid", "of", "planned", "trials")
    pipe.zcard(key["queue"])
    pipe.zcard(key["leases"])
    for hashed in ("plan", "done", "graded"):
        pipe.hlen(key[hashed])
    searched = keys_of(audit.audit_id, ledger_stage(audit.corpora or ""))
    pipe.zcard(searched["queue"])
    pipe.zcard(searched["leases"])


def _stage_work(audit: UnfinishedAudit, replies: Sequence[Any]) -> StageWork:
    (laid, of, cut, trials), queued, leased, planned, done, graded, *search = replies
    unplanned = 0
    if laid is not None and int(laid) < int(of):
        trials_left = int(trials or 0) - int(cut or 0)
        in_a_shard = int(cut or 0) / planned if planned else SHARD_TRIALS
        # Of a stage that does not say how large it is, no more is known than that there is more.
        unplanned = max(1, math.ceil(trials_left / max(1.0, in_a_shard)))
    answers = audit.stage is not None and audit.stage.partition("-")[0] == ANSWER_STAGE
    ungraded = max(0, done - graded) if answers else 0
    return StageWork(queued, leased, unplanned, ungraded, sum(search))


def _queues(broker_url: str) -> dict[str, int]:
    """Messages in the queues of each service but inference, whose work the ledger knows; none where it cannot be seen.

    What audits wait for is known without it.
    """
    names = [(service, name) for service in SCALED if service != _INFERENCE for name in QUEUES[service]]
    lengths = Counter[str]()
    try:
        with closing(_client(broker_url)) as client:
            pipe = client.pipeline(transaction=False)
            for _, name in names:
                pipe.llen(name)
            for (service, _), length in zip(names, pipe.execute(), strict=True):
                lengths[service] += length
    except (redis.RedisError, OSError, ValueError) as error:
        # ValueError: a broker that is no Redis.
        logger.debug("the queues' lengths are not known: %s", type(error).__name__)
    return dict(lengths)


def _client(url: str) -> redis.Redis:
    # One a look: a connection that was kept would be inherited by processes that are forked later.
    return redis.Redis.from_url(url, decode_responses=True, socket_timeout=_REPLY_S, socket_connect_timeout=_REPLY_S)
