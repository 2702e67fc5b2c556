"""Handing out a stage: its parts are planned as its queue runs low, its shards leased and sent in packs.

What is outstanding to an endpoint is bounded by credits of its pool (`proctor.router.pools.store`), and how much that
is by the pace at which it was seen to answer (`proctor.router.pools.packs`) and by the other pools for which the same
workers are wanted (`proctor.router.pools.sharing`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import NamedTuple

from proctor.domain.errors import ProctorError
from proctor.domain.messages import Message, Priority, RunShards, ShardToRun
from proctor.domain.trial import Shard
from proctor.router.audit import AuditView
from proctor.router.counting import Counting
from proctor.router.ledger.store import (
    MAX_FAILURES,
    SPLIT_AFTER_LOSSES,
    LeasedShard,
    Ledger,
    Parts,
    PlannedShard,
    Setback,
    Standing,
)
from proctor.router.plan import StoredShard, shard_of
from proctor.router.pools import packs, sharing
from proctor.router.pools.store import Claim, Pools
from proctor.router.stages.outcome import planned
from proctor.router.stages.stage import StageParts, StageUnderWay
from proctor.runtime.artifacts.store import ArtifactStore, get_model, put_model
from proctor.runtime.metrics.recording import Redelivery
from proctor.runtime.redis.presence import Presence
from proctor.runtime.timing import Timing

logger = logging.getLogger(__name__)

#: Of a lease, what a worker may take for its shards; the rest is for the way there and back.
_DEADLINE_SHARE = 0.8
#: Shards of a new part that are stored at a time: to store one is to wait for the disk. No more of them are in memory.
_STORED_AT_ONCE = 8
#: And of their prompts: eight of the usual length have half of that.
_STORED_CHARACTERS = packs.SHARD_PROMPT_BYTES
#: Windows that the queue holds at least, while parts are left: planning one must not keep workers waiting.
WINDOWS_QUEUED = 2
#: A credit whose shard is not leased after so long was claimed by a router that died.
_CLAIM_TIME = timedelta(seconds=10)
#: A pool has work for so many looks of the reconciler, each of which says so, when nothing more is heard of it.
_FRESH_LOOKS = 2.5
_URGENCY = {priority: number for number, priority in enumerate(Priority)}


Waiting = tuple[str, str]
"""(pool, audit): an audit that could have more of a pool, if somebody claimed for it."""


class Room(NamedTuple):
    """What a pool takes, by its pace, the worker slots that live, and the other pools that have work."""

    shard_trials: int
    together: int
    capacity: int
    """Shards that may be outstanding."""


@dataclass(frozen=True)
class HandingOut:
    """Plans, leases and sends the shards of a stage."""

    artifacts: ArtifactStore
    ledger: Ledger
    pools: Pools
    presence: Presence
    counting: Counting
    send: Callable[[Message], None]
    timing: Timing

    def room(self, pool: str, max_tokens: int | None = None, *, at_work: bool = True) -> Room:
        """What a pool takes now of a stage whose answers have at most so many tokens.

        Args:
            at_work: whether it has work, and other pools are to leave it its share of the slots.
        """
        fresh = timedelta(seconds=_FRESH_LOOKS * self.timing.reconcile_interval_s)
        pace, others = self.pools.outlook(pool, fresh=fresh, at_work=at_work)
        trials = packs.shard_trials(pace, max_tokens)
        together = packs.shards_together(pace, trials)
        quick = packs.is_quick(pace, trials, together)
        n_packs = sharing.outstanding(self.presence.slots("inference"), pool, others, quick=quick)
        return Room(trials, together, n_packs * together)

    def runs_low(self, standing: Standing, room: Room) -> bool:
        """Whether another part of a stage has to be planned, so that workers never wait for one."""
        return standing.more and standing.queued < WINDOWS_QUEUED * room.capacity

    def lay_down(
        self, audit: AuditView, stage: StageUnderWay, parts: StageParts, room: Room, standing: Standing
    ) -> Standing:
        """Plan the next part of a stage. Returns where the stage is then; `standing` is where it was."""
        part = standing.parts.laid
        shards = list(self._stored(stage.stage.shards(audit, self.artifacts, part, room.shard_trials)))
        entries = planned(shards, part)
        if self.ledger.plan(audit.audit_id, stage.name, entries, part=part, parts=parts.n, total_trials=parts.n_trials):
            self.counting.planned(shards)
        return self.ledger.standing(audit.audit_id, stage.name, room.capacity)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        # Kept: to start them for every part costs as much as to store it.
        return ThreadPoolExecutor(_STORED_AT_ONCE, thread_name_prefix="store")

    def _stored(self, shards: Iterable[Shard]) -> Iterator[StoredShard]:
        # One after the other: to make shards while others are stored has the threads wait for each other's interpreter,
        # which costs an eighth of the router's time.
        for batch in _together(shards):
            digests = self._threads.map(partial(put_model, self.artifacts), batch)
            stored = [
                StoredShard(shard.shard_id, shard.stage, shard.arm, len(shard.trials), digest)
                for shard, digest in zip(batch, digests, strict=True)
            ]
            # Not to be in memory beside the next ones.
            batch.clear()
            yield from stored

    def hand_out(self, audit: AuditView, stage: StageUnderWay, standing: Standing, room: Room) -> tuple[Waiting, ...]:
        """Send what the pool has room for; returns other audits that could have more of it now."""
        pool = stage.endpoint.pool
        while True:
            claim = self._claim(audit, pool, stage.name, standing, room)
            leased = self.ledger.lease(audit.audit_id, stage.name, claim.granted, lease=self.timing.lease)
            if self._send_or_split(audit, stage, claim, leased, room.together):
                return tuple((pool, other) for other in claim.waiting)
            standing = self.ledger.standing(audit.audit_id, stage.name, room.capacity)

    def _send_or_split(
        self, audit: AuditView, stage: StageUnderWay, claim: Claim, leased: Sequence[LeasedShard], together: int
    ) -> bool:
        """Send leased shards, but split those that were lost too often; returns whether all were sent.

        What could not be sent is queued again, and no credit is kept for what is not under way.
        """
        to_split = [shard for shard in leased if shard.losses >= SPLIT_AFTER_LOSSES and shard.n_trials > 1]
        whole = [shard for shard in leased if shard not in to_split]
        idle = {shard.shard_id: shard.attempt for shard in leased}
        unused = set(claim.granted)
        try:
            for pack in _in_packs(whole, together):
                self.send(_message(audit, stage, pack, self.timing.lease_s * _DEADLINE_SHARE))
                for shard in pack:
                    del idle[shard.shard_id]
                    unused.remove(shard.shard_id)
            for shard in to_split:
                self._split(audit, stage, shard)
                del idle[shard.shard_id]
        finally:
            if idle:
                self.ledger.hand_back(audit.audit_id, stage.name, idle.items())
            if unused:
                self.pools.release(stage.endpoint.pool, audit.audit_id, stage.name, unused)
        return not to_split

    def _claim(self, audit: AuditView, pool: str, stage: str, standing: Standing, room: Room) -> Claim:
        return self.pools.claim(
            pool,
            audit.audit_id,
            stage,
            standing.next_up,
            wanted=standing.queued,
            capacity=room.capacity,
            priority=_URGENCY[audit.inputs.priority],
            lease=self.timing.lease,
            together=room.together,
        )

    def stand_back(self, audit: AuditView) -> tuple[Waiting, ...]:
        """Want nothing more of any pool; what was handed out keeps its credits. Returns who could have more now."""
        nothing = Standing(Parts(0, None), complete=False, queued=0, next_up=())
        waiting = list[Waiting]()
        for pool in audit.inputs.pools:
            claim = self._claim(audit, pool, "", nothing, self.room(pool, at_work=False))
            if self.pools.wanted(pool) == 0:
                self.pools.rest(pool)
            waiting += [(pool, other) for other in claim.waiting]
        return tuple(waiting)

    def leave(self, audit: AuditView) -> None:
        """Want nothing more and hold nothing: the audit has ended."""
        for pool in audit.inputs.pools:
            self.pools.leave(pool, audit.audit_id)

    def sweep(self, audit: AuditView, stage: StageUnderWay) -> None:
        """Take back credits that a router claimed and did not live to use."""
        under_way = self.ledger.leases(audit.audit_id, stage.name)
        self.pools.sweep(stage.endpoint.pool, audit.audit_id, stage.name, under_way, older_than=_CLAIM_TIME)

    def _split(self, audit: AuditView, stage: StageUnderWay, shard: LeasedShard) -> None:
        """Put smaller shards in the place of one that was lost again and again, and may hold what makes it so."""
        try:
            trials = get_model(self.artifacts, shard.digest, Shard).trials
        except (ProctorError, ValueError) as error:
            cause = f"it was lost {shard.losses} times, and cannot be read to be split: {error}"
            outcome = self.ledger.fail(
                audit.audit_id, stage.name, shard.shard_id, shard.attempt, setback=Setback.FINAL, cause=cause
            )
            self.counting.failed(audit.audit_id, stage.name, shard.shard_id, outcome, Redelivery.FAILED)
            return
        cuts = packs.pieces(len(trials))
        children = list(self._stored(shard_of(trials[begin:end]) for begin, end in cuts))
        entries = [
            PlannedShard(child.shard_id, child.n_trials, child.digest, shard.position + begin)
            for child, (begin, _) in zip(children, cuts, strict=True)
        ]
        if self.ledger.split(audit.audit_id, stage.name, shard.shard_id, shard.attempt, entries):
            self.counting.split(children)
            logger.warning(
                "shard %s/%s/%s was lost %d times and is split into %d",
                audit.audit_id, stage.name, shard.shard_id, shard.losses, len(entries),
            )  # fmt: skip


def _together(shards: Iterable[Shard]) -> Iterator[list[Shard]]:
    """Lists of a few shards, of fewer where their prompts are long. Each is emptied by whoever gets it."""
    batch, characters = list[Shard](), 0
    for shard in shards:
        batch.append(shard)
        characters += sum([len(trial.prompt) for trial in shard.trials])
        del shard
        if len(batch) == _STORED_AT_ONCE or characters >= _STORED_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _in_packs(shards: Iterable[LeasedShard], together: int) -> Iterator[list[LeasedShard]]:
    """What was set back before goes alone, so that it takes no other shard down with it."""
    pack: list[LeasedShard] = []
    for shard in shards:
        if shard.failures or shard.losses:
            yield [shard]
            continue
        pack.append(shard)
        if len(pack) == together:
            yield pack
            pack = []
    if pack:
        yield pack


def _message(audit: AuditView, stage: StageUnderWay, pack: Iterable[LeasedShard], deadline_s: float) -> RunShards:
    return RunShards(
        audit_id=audit.audit_id,
        stage=stage.name,
        shards=tuple(
            ShardToRun(
                shard_id=shard.shard_id,
                attempt=shard.attempt,
                shard=shard.digest,
                last_attempt=shard.failures + 1 >= MAX_FAILURES,
            )
            for shard in pack
        ),
        endpoint=stage.endpoint,
        decoding=stage.decoding,
        deadline_s=deadline_s,
        priority=audit.inputs.priority,
        fresh=stage.stage.graded and audit.inputs.fresh is not None,
        control=stage.stage.graded and audit.inputs.control is not None,
        replicates=audit.suite.decoding.replicates if stage.stage.graded else 1,
    )
