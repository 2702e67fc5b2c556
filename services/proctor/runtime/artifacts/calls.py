"""Model calls as they are kept: what was asked, with what came back, one shard in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from proctor.domain.manifest import AnsweredShard, CompletionSet, DeadShard, RewriteSet
from proctor.domain.trial import Arm, Completion, Shard, Trial
from proctor.runtime.artifacts.store import ArtifactStore, get_model

MessageKey = tuple[Arm, str, int]
"""(arm, item, router index) of what a prompt router wrote."""


class Call(NamedTuple):
    """A trial, and its completion; None where its shard brought none, or was given up."""

    trial: Trial
    said: Completion | None


def calls_of_shard(store: ArtifactStore, answered: AnsweredShard) -> Iterator[Call]:
    """The calls of an answered shard in its order.

    Raises:
        StoreError: the shard or its completions cannot be read.
    """
    completions = get_model(store, answered.completions, CompletionSet).completions
    said = {completion.trial_id: completion for completion in completions}
    for trial in get_model(store, answered.shard, Shard).trials:
        yield Call(trial, said.get(trial.trial_id))


def calls_of(store: ArtifactStore, rewrites: RewriteSet) -> Iterator[Call]:
    """Every call of a stage: the answered shards', then those of the shards that were given up. Raises as above."""
    for answered in rewrites.answered:
        yield from calls_of_shard(store, answered)
    for dead in rewrites.dead:
        yield from (Call(trial, None) for trial in trials_of(store, dead))


def trials_of(store: ArtifactStore, dead: DeadShard) -> tuple[Trial, ...]:
    """What was asked in a shard that was given up. Raises as above."""
    return get_model(store, dead.shard, Shard).trials


def messages_in(store: ArtifactStore, answered: Iterable[AnsweredShard]) -> Iterator[tuple[MessageKey, str]]:
    """What prompt routers wrote; an empty message is one, a call that failed left none. Raises as above."""
    for shard in answered:
        for trial, said in calls_of_shard(store, shard):
            if said is not None and said.error is None:
                yield (trial.arm, trial.item_id, trial.router_index), said.text
