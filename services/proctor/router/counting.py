"""What the ledger's answers mean for the metrics: each trial is counted once, by the answer that moved its shard.

The ledger counts shards; what a shard carries is in the artifact store and is read only where metrics are recorded, and
only by a router that did not plan the shard itself. Metrics never stop an audit: a shard that cannot be read is left
out of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from proctor.domain.errors import ProctorError
from proctor.domain.trial import Arm, Shard
from proctor.router.ledger.store import MAX_SHARD_TOKENS, Answer, Ledger, Recorded
from proctor.router.plan import StoredShard
from proctor.router.pools.store import Pools
from proctor.runtime.artifacts.store import ArtifactStore, get_model
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.metrics.recording import Redelivery, TrialState

logger = logging.getLogger(__name__)

#: Shards whose arm is remembered: those of some hundred parts.
_REMEMBERED = 1 << 16


def count_away(pools: Pools, asked: Iterable[Iterable[str]]) -> None:
    """Tell how many of the pools that audits ask do not answer now."""
    if metrics.recording():
        names = {name for of_audit in asked for name in of_audit}
        metrics.pools_away(sum(pools.away_for(name) is not None for name in names))


@dataclass
class Counting:
    """Counts what becomes of shards."""

    ledger: Ledger
    artifacts: ArtifactStore
    _arms: dict[str, Arm] = field(default_factory=dict)

    def planned(self, shards: Iterable[StoredShard]) -> None:
        """Count the trials of a part that was laid down now."""
        if not metrics.recording():
            return
        for shard in shards:
            metrics.trials(TrialState.PLANNED, shard.stage, shard.arm, shard.n_trials)
            self._remember(shard)

    def split(self, children: Iterable[StoredShard]) -> None:
        """Count a shard that was split into these. Its trials were planned before."""
        metrics.shard_split()
        if metrics.recording():
            for shard in children:
                self._remember(shard)

    def recorded(self, audit_id: str, stage: str, answers: Iterable[tuple[Answer, Recorded]]) -> None:
        """Count what `Ledger.record_all` answered for each shard."""
        if not metrics.recording():
            return
        for answer, outcome in answers:
            if outcome in ("recorded", "complete"):
                self._trials(TrialState.ANSWERED, audit_id, stage, answer.shard_id)
                # What an endpoint reports is what it likes.
                read, written = (min(max(n, 0), MAX_SHARD_TOKENS) for n in (answer.input_tokens, answer.output_tokens))
                metrics.tokens(stage, read=read, written=written)
            else:
                metrics.duplicate_suppressed()

    def failed(self, audit_id: str, stage: str, shard_id: str, outcome: str, cause: Redelivery) -> None:
        """Count what `Ledger.fail` answered."""
        if outcome == "queued":
            metrics.shard_redelivered(cause)
        elif outcome in ("dead", "complete"):
            self._trials(TrialState.DEAD_LETTERED, audit_id, stage, shard_id)
        else:
            metrics.duplicate_suppressed()

    def _remember(self, shard: StoredShard) -> None:
        self._arms[shard.shard_id] = shard.arm
        if len(self._arms) > _REMEMBERED:
            del self._arms[next(iter(self._arms))]

    def _trials(self, state: TrialState, audit_id: str, stage: str, shard_id: str) -> None:
        if not metrics.recording():
            return
        try:
            entry = self.ledger.entry(audit_id, stage, shard_id)
            arm = self._arms.get(shard_id) or get_model(self.artifacts, entry.digest, Shard).arm
        except (ProctorError, ValueError) as error:
            logger.warning("shard %s of audit %s is not counted: %s", shard_id, audit_id, error)
            return
        metrics.trials(state, stage, arm, entry.n_trials)
