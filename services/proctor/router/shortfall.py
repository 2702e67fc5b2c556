"""How many trials of each arm got no answer for good, and whether that is too many for a decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final, NamedTuple

from proctor.domain.levels import MAX_FAILED_SHARE
from proctor.domain.manifest import AuditManifest, CompletionSet
from proctor.domain.problems import visible
from proctor.domain.trial import Arm, Shard
from proctor.router.stages.outcome import StageOutcome
from proctor.runtime.artifacts.store import ArtifactStore, get_model

#: Shards whose completions are read for the words of their errors.
_SHARDS_READ: Final = 32
#: Characters of an endpoint's words.
_MAX_WORDS: Final = 600


class Shortfall(NamedTuple):
    """An arm of which more than MAX_FAILED_SHARE got no answer."""

    arm: Arm
    missing: int
    asked: int

    def __str__(self) -> str:
        return f"{self.arm.value}: {self.missing:,} of {self.asked:,}"


def shortfalls(shards: Iterable[Shard], missing: Mapping[str, int]) -> tuple[Shortfall, ...]:
    """The arms of which so much got no answer that no decision but review could come of the rest.

    Such an audit is better left open: started again, it asks for what is missing, and a decision ends it. The same
    share bounds what a round of rewordings may lose: an endpoint that is down is mended, not audited around.

    Args:
        shards: of the whole stage.
        missing: shard id → how many of its trials got no answer.
    """
    asked, lost = Counter[Arm](), Counter[Arm]()
    for shard in shards:
        asked[shard.arm] += len(shard.trials)
        lost[shard.arm] += missing.get(shard.shard_id, 0)
    return tuple(
        Shortfall(arm, lost[arm], asked[arm]) for arm in sorted(asked) if lost[arm] > MAX_FAILED_SHARE * asked[arm]
    )


def unanswered(store: ArtifactStore, manifest: AuditManifest) -> tuple[list[Shard], dict[str, int]]:
    """The shards of a manifest, and how many trials of each got no answer, by the shard's id."""
    shards, missing = list[Shard](), dict[str, int]()
    for answered in manifest.answered:
        shard = get_model(store, answered.shard, Shard)
        said = get_model(store, answered.completions, CompletionSet).completions
        shards.append(shard)
        missing[shard.shard_id] = sum(one.error is not None for one in said)
    for dead in manifest.dead:
        shard = get_model(store, dead.shard, Shard)
        shards.append(shard)
        missing[shard.shard_id] = len(shard.trials)
    return shards, missing


def commonest_words(outcome: StageOutcome, refused: Mapping[str, int], store: ArtifactStore) -> str:
    """Why most of a stage's trials got no answer, in the words of whoever refused them, fit to be printed.

    Of several that are as common, the first in the order of the plan.

    Args:
        outcome: of the stage.
        refused: shard id → how many of its trials were refused; of the first of them the words are read.
        store: where they are.
    """
    said = Counter[str]()
    for entry in outcome.entries:
        if (cause := outcome.causes.get(entry.shard_id)) is not None:
            said[_fit(cause)] += entry.n_trials
    for entry in islice((entry for entry in outcome.entries if entry.shard_id in refused), _SHARDS_READ):
        completions = get_model(store, outcome.completions[entry.shard_id], CompletionSet).completions
        said.update([_fit(one.error) for one in completions if one.error is not None])
    return said.most_common(1)[0][0] if said else "it gave no reason"


def _fit(words: str) -> str:
    return visible(" ".join(words[:_MAX_WORDS].split()))[:_MAX_WORDS]
