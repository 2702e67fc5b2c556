"""What the rewording model said in an audit, read from the artifact store."""

from __future__ import annotations

from proctor.domain.manifest import CompletionSet, RewriteSet
from proctor.domain.trial import Completion, Shard
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
        for trial in get_model(artifacts, dead.shard, Shard).trials:
            answers[trial.trial_id] = Completion(trial_id=trial.trial_id, error=dead.cause)
    for answered in rewrites.answered:
        for trial in get_model(artifacts, answered.shard, Shard).trials:
            answers[trial.trial_id] = Completion(trial_id=trial.trial_id, error="its shard brought no completion")
        for completion in get_model(artifacts, answered.completions, CompletionSet).completions:
            answers[completion.trial_id] = completion
    return answers
