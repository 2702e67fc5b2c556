"""What follows when a stage has ended: the audit goes on, or fails with a cause."""

from __future__ import annotations

from proctor.domain.trial import Shard
from proctor.router.audit import AuditView
from proctor.router.plan import too_many_dead
from proctor.router.stages.outcome import StageOutcome
from proctor.router.stages.stage import NOTHING_TO_ASK, Ending, StageUnderWay
from proctor.runtime.artifacts.store import ArtifactStore, get_model


def ending(audit: AuditView, stage: StageUnderWay, outcome: StageOutcome, store: ArtifactStore) -> Ending:
    """What becomes of an audit now that every shard of its stage is answered or given up.

    The same outcome ends a stage the same way, however often: nothing is changed but the artifact store.
    """
    if not outcome.entries:
        return Ending(failure=NOTHING_TO_ASK)
    shards = (get_model(store, entry.digest, Shard) for entry in outcome.entries)
    if outcome.dead and too_many_dead(shards, outcome.causes):
        lost = f"{outcome.n_dead} of {outcome.n_trials} trials got no answer"
        return Ending(failure=f"{stage.model}: {lost}; the last failure: {outcome.dead[-1].cause}")
    return stage.stage.ending(audit, outcome, store)
