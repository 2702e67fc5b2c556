"""A stage's shards as the ledger takes them, and what came of them: each is answered or given up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from proctor.domain.manifest import AnsweredShard, DeadShard
from proctor.router.ledger.store import Ledger, PlannedShard
from proctor.router.plan import StoredShard

#: Positions of a part's shards: more than it has trials (a chunk of items, at most 100 rewordings and 18 conditions
#: each).
PART_POSITIONS = 2**20


def planned(shards: Iterable[StoredShard], part: int) -> list[PlannedShard]:
    """A part's stored shards as the ledger takes them.

    A shard's position is the number of trials before it, so that the shards that it may be split into lie between it
    and the next.

    Args:
        shards: the shards in the order in which they should run.
        part: which part of its stage.
    """
    position, entries = part * PART_POSITIONS, []
    for shard in shards:
        entries.append(PlannedShard(shard.shard_id, shard.n_trials, shard.digest, position))
        position += shard.n_trials
    return entries


class StageOutcome(NamedTuple):
    """What came of a stage's shards: each is answered or given up."""

    entries: tuple[PlannedShard, ...]
    """In the order of the plan."""
    completions: Mapping[str, str]
    """Shard id → digest of its completions."""
    causes: Mapping[str, str]
    """Shard id → why it was given up."""
    refused: Mapping[str, int]
    """Id of an answered shard → how many of its trials ended with an error for good, where any did."""
    grades: Mapping[str, tuple[str, str]]
    """Digest of a shard → digests of the completions that were graded, and of their grades."""

    @property
    def answered(self) -> tuple[AnsweredShard, ...]:
        """The answered shards, in the order of the plan."""
        return tuple(
            AnsweredShard(shard=entry.digest, completions=said, grades=self._grades(entry.digest, said))
            for entry in self.entries
            if (said := self.completions.get(entry.shard_id)) is not None
        )

    def _grades(self, shard: str, completions: str) -> str | None:
        graded, grades = self.grades.get(shard, (None, None))
        return grades if graded == completions else None

    @property
    def in_parts(self) -> tuple[int, ...]:
        """How many of the answered shards each part of the stage brought, up to the last that brought any."""
        parts = Counter(
            entry.position // PART_POSITIONS for entry in self.entries if entry.shard_id in self.completions
        )
        return tuple(parts[part] for part in range(max(parts, default=-1) + 1))

    @property
    def dead(self) -> tuple[DeadShard, ...]:
        """The shards that were given up, in the order of the plan."""
        return tuple(
            DeadShard(shard=entry.digest, cause=self.causes[entry.shard_id])
            for entry in self.entries
            if entry.shard_id in self.causes
        )

    @property
    def n_trials(self) -> int:
        """Trials of the whole stage."""
        return sum(entry.n_trials for entry in self.entries)

    @property
    def n_dead(self) -> int:
        """Trials in shards that were given up."""
        return sum(entry.n_trials for entry in self.entries if entry.shard_id in self.causes)


def stage_outcome(ledger: Ledger, audit_id: str, stage: str) -> StageOutcome:
    """Read what came of a stage that has ended.

    Raises:
        StoreError: when not all of it is in the ledger any more.
    """
    settled = ledger.settled(audit_id, stage)
    return StageOutcome(settled.entries, settled.done, settled.dead, settled.refused, settled.graded)
