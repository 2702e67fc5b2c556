"""Having training data searched: by one worker where they are few, and otherwise in shards of the ledger, by many.

A shard of training data is planned, leased, recorded and given up like one of prompts, and counts once. It asks no
model, so it has no trials, and no part in what an audit spends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from proctor.domain.corpus_search import CorpusPlan, Searched
from proctor.domain.messages import (
    HANDLED_BY,
    CorpusSearched,
    Message,
    SearchCorpus,
    SearchShardOfCorpus,
    ShardOfCorpusSearched,
)
from proctor.domain.search_shards import SearchedParts, SearchShard, cut
from proctor.router import searching
from proctor.router.audit import AuditView
from proctor.router.ledger.store import Ledger
from proctor.router.ledger.types import PlannedShard, Setback
from proctor.runtime.artifacts.store import ArtifactStore, get_model, put_model
from proctor.runtime.redis.presence import Presence
from proctor.runtime.timing import Timing

logger = logging.getLogger(__name__)

#: Shards under way for each worker that there is: the next is there when one is done.
_EACH: Final = 2


@dataclass(frozen=True)
class SearchDispatch:
    """Asks for searches, with the router's stores and a way to send messages."""

    artifacts: ArtifactStore
    ledger: Ledger
    presence: Presence
    send: Callable[[Message], None]
    timing: Timing

    def go_on(self, audit: AuditView) -> None:
        """Ask for what an audit's search still needs, unless that was asked for of late.

        Raises:
            StoreError: when a store does not answer.
        """
        request = searching.request_of(audit)
        if request is None:
            return
        shards = self._shards(request.plan)
        parts = None
        if len(shards) > 1:
            ended = self._in_shards(request, shards)
            if ended is None:
                return
            if ended.error is not None:
                # By the same way as a worker's word, which is noted once.
                self._once(request, CorpusSearched(audit_id=audit.audit_id, plan=request.plan, searched=ended))
                return
            parts = ended.found
        self._once(request, request.model_copy(update={"parts": parts}))

    def take_in(self, audit: AuditView, answer: ShardOfCorpusSearched) -> None:
        """Record what came of a shard, once, and hand out the next; of an audit that rests, what it had handed out."""
        if audit.record.state.final or not audit.inputs.searching or answer.plan != audit.inputs.corpora:
            return
        stage = searching.ledger_stage(answer.plan)
        if answer.found is not None:
            self.ledger.record(audit.audit_id, stage, answer.shard_id, answer.found)
        else:
            cause = answer.error or "the worker gave no reason"
            setback = Setback.FAILED if answer.retryable else Setback.FINAL
            outcome = self.ledger.fail(
                audit.audit_id, stage, answer.shard_id, answer.attempt, setback=setback, cause=cause
            )
            logger.warning(
                "shard %s of the search of audit %s: %s: %s", answer.shard_id, audit.audit_id, outcome, cause
            )
        self.go_on(audit)

    def start_again(self, audit: AuditView) -> None:
        """Whoever starts an audit again wants what failed to be tried again, at once."""
        plan = audit.inputs.corpora
        if plan is not None:
            self.ledger.give_turn_back(searching.turn_of(audit.audit_id))
            self.ledger.restart(audit.audit_id, searching.ledger_stage(plan))

    def _once(self, request: SearchCorpus, message: Message) -> None:
        turn = searching.turn_of(request.audit_id)
        if not self.ledger.take_turn(turn, self.timing.answer_time):
            return
        try:
            self.send(message)
        except Exception:
            self.ledger.give_turn_back(turn)
            raise

    def _shards(self, plan: str) -> tuple[SearchShard, ...]:
        return _cut(self.artifacts, plan)  # type: ignore[arg-type]  # by identity

    def _in_shards(self, request: SearchCorpus, shards: tuple[SearchShard, ...]) -> Searched | None:
        """Hand out shards, or say how they ended: with the digest of the SearchedParts, or why there are none."""
        audit_id, stage = request.audit_id, searching.ledger_stage(request.plan)
        standing = self.ledger.standing(audit_id, stage, 0)
        if not standing.parts.laid:
            planned = [
                PlannedShard(f"c{place:06d}", 0, put_model(self.artifacts, shard), place)
                for place, shard in enumerate(shards)
            ]
            self.ledger.plan(audit_id, stage, planned)
        elif standing.lost:
            return Searched(error=f"the ledger has lost {', '.join(standing.lost)} of the search's shards")
        for shard_id, attempt in self.ledger.overdue(audit_id, stage, lease=self.timing.answer_time):
            cause = f"no answer within {self.timing.answer_time_s:g} s: the message or its worker was lost"
            self.ledger.fail(audit_id, stage, shard_id, attempt, setback=Setback.LOST, cause=cause)
        room = self._at_once() - len(self.ledger.leases(audit_id, stage))
        standing = self.ledger.standing(audit_id, stage, max(0, room))
        if standing.complete:
            settled = self.ledger.settled(audit_id, stage)
            if settled.dead:
                return Searched(error=next(iter(settled.dead.values())))
            done = tuple(settled.done[entry.shard_id] for entry in settled.entries)
            return Searched(found=put_model(self.artifacts, SearchedParts(shards=done)))
        self._hand_out(request, stage, standing.next_up)
        return None

    def _hand_out(self, request: SearchCorpus, stage: str, shard_ids: tuple[str, ...]) -> None:
        leased = self.ledger.lease(request.audit_id, stage, shard_ids, lease=self.timing.answer_time)
        for place, shard in enumerate(leased):
            try:
                self.send(
                    SearchShardOfCorpus(
                        audit_id=request.audit_id,
                        items=request.items,
                        plan=request.plan,
                        shard=shard.digest,
                        shard_id=shard.shard_id,
                        attempt=shard.attempt,
                    )
                )
            except Exception:
                unsent = [(one.shard_id, one.attempt) for one in leased[place:]]
                self.ledger.hand_back(request.audit_id, stage, unsent)
                raise

    def _at_once(self) -> int:
        return _EACH * max(1, self.presence.slots(HANDLED_BY[SearchCorpus.room()]))


@lru_cache(maxsize=8)
def _cut(artifacts: ArtifactStore, plan: str) -> tuple[SearchShard, ...]:
    # A plan of many files is large, and every answer to a shard looks at it.
    return cut(get_model(artifacts, plan, CorpusPlan), plan)
