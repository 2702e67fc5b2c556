"""What the rewording model said in an audit, read from the artifact store."""

from __future__ import annotations

from proctor.domain.manifest import RewriteSet
from proctor.domain.trial import Completion
from proctor.runtime.artifacts.calls import calls_of_shard, trials_of
from proctor.runtime.artifacts.store import ArtifactStore, get_model


def read_answers(artifacts: ArtifactStore, digest: str) -> dict[str, Completion]:
    """One completion for every trial that was asked, by its identifier.

    A trial of a shard that failed for good, or for which its shard brought no completion, has one with an error: what
    was asked once must not be asked for ever.

    Raises:
        StoreError: when something is missing or damaged.
    """
    rewrites = get_model(artifacts, digest, RewriteSet)
    answers: dict[str, Completion] = {}
    for dead in rewrites.dead:
        for trial in trials_of(artifacts, dead):
            answers[trial.trial_id] = Completion(trial_id=trial.trial_id, error=dead.cause)
    for answered in rewrites.answered:
        for trial, said in calls_of_shard(artifacts, answered):
            answers[trial.trial_id] = said or Completion(
                trial_id=trial.trial_id, error="its shard brought no completion"
            )
    return answers
