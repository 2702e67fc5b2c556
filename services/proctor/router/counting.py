"""What the ledger's answers mean for the metrics: each trial is counted once, by the answer that moved its shard.

The ledger counts shards; what a shard carries is in the artifact store and is read only where metrics are recorded.
Metrics never stop an audit: a shard that cannot be read is left out of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

from proctor.domain.errors import ProctorError
from proctor.domain.trial import Shard
from proctor.router.ledger import Ledger
from proctor.runtime import metrics
from proctor.runtime.artifacts import ArtifactStore, get_model
from proctor.runtime.metrics import Redelivery, TrialState

logger = logging.getLogger(__name__)


def count_planned(shards: Iterable[Shard]) -> None:
    """Count the trials of a stage that was laid down now."""
    for shard in shards:
        metrics.trials(TrialState.PLANNED, shard.stage, shard.arm, len(shard.trials))


class ShardCounting(NamedTuple):
    """Counts what became of one shard of an audit."""

    ledger: Ledger
    artifacts: ArtifactStore
    audit_id: str
    stage: str
    shard_id: str

    def recorded(self, outcome: str) -> None:
        """Count what `Ledger.record` answered."""
        if outcome in ("recorded", "complete"):
            self._trials(TrialState.ANSWERED)
        elif outcome == "duplicate":
            metrics.duplicate_suppressed()

    def failed(self, outcome: str, cause: Redelivery) -> None:
        """Count what `Ledger.fail` answered."""
        if outcome == "queued":
            metrics.shard_redelivered(cause)
        elif outcome in ("dead", "complete"):
            self._trials(TrialState.DEAD_LETTERED)
        elif outcome == "stale":
            metrics.duplicate_suppressed()

    def _trials(self, state: TrialState) -> None:
        if not metrics.recording():
            return
        try:
            entry = self.ledger.entry(self.audit_id, self.stage, self.shard_id)
            shard = get_model(self.artifacts, entry.digest, Shard)
        except (ProctorError, ValueError) as error:
            logger.warning("shard %s of audit %s is not counted: %s", self.shard_id, self.audit_id, error)
            return
        metrics.trials(state, self.stage, shard.arm, entry.n_trials)
