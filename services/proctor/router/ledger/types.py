"""What the ledger takes and gives: shards as planned and as leased, setbacks, progress, what was spent."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple

#: Failures before a shard is given up: one for bad luck, one for a restart, one to be sure.
MAX_FAILURES = 3
#: Losses from which a shard is split before it is asked again, so that a trial that kills its worker is found.
SPLIT_AFTER_LOSSES = 2
#: Losses before a shard of one trial is given up. Larger ones are split instead.
MAX_LOSSES = 6

Recorded = Literal["recorded", "complete", "duplicate", "unknown"]
Failed = Literal["queued", "dead", "complete", "stale"]


class Setback(StrEnum):
    """Why an attempt at a shard gave no completions."""

    FAILED = "failed"
    """An error after which it may be tried again: given up at the MAX_FAILURES-th."""
    LOST = "lost"
    """Its worker died, or the endpoint went away with it: a shard of one trial is given up at the MAX_LOSSES-th."""
    HANDED_BACK = "handed_back"
    """Nobody tried it to the end: not counted."""
    FINAL = "final"
    """An error that trying again does not mend: given up now."""


class PlannedShard(NamedTuple):
    """A shard as the plan holds it."""

    shard_id: str
    n_trials: int
    digest: str
    position: int = 0
    """Orders the queue and the stage's outcome; unique in the stage. Equal positions are ordered by id."""


class LeasedShard(NamedTuple):
    """A shard that was handed out."""

    shard_id: str
    attempt: int
    """From 1; the number is the lease's name: what comes of an earlier attempt is stale."""
    digest: str
    n_trials: int
    position: int
    failures: int
    """Earlier attempts that failed."""
    losses: int
    """Earlier attempts that were lost; a shard that was split off begins with one."""


class Answer(NamedTuple):
    """What `Ledger.record_all` records of a shard."""

    shard_id: str
    completions: str
    """Digest of the CompletionSet."""
    input_tokens: int = 0
    output_tokens: int = 0
    n_refused: int = 0
    """Trials that ended with an error for good."""


class Parts(NamedTuple):
    """How much of a stage is planned."""

    laid: int
    """Parts that are laid down, in order: 0, 1, 2 .. `laid` - 1."""
    of: int | None
    """Parts that the stage has; None before the first is laid down."""

    @property
    def all_laid(self) -> bool:
        """Whether nothing more will be planned."""
        return self.laid == self.of


class Standing(NamedTuple):
    """Where a stage is, as a dispatcher needs it to go on: one moment, one round trip."""

    parts: Parts
    complete: bool
    queued: int
    """Shards in the queue."""
    next_up: tuple[str, ...]
    """Ids of the first of them."""
    more: bool = True
    """Whether parts are left to be laid down."""
    lost: tuple[str, ...] = ()
    """Names of the stage's keys of which at least one is gone, without which it cannot go on as it is."""


class Settled(NamedTuple):
    """A stage that has ended: one moment of the ledger."""

    entries: tuple[PlannedShard, ...]
    """The plan, in order of position."""
    done: Mapping[str, str]
    """Shard id → digest of its completions."""
    dead: Mapping[str, str]
    """Shard id → why it was given up."""
    refused: Mapping[str, int]
    """Id of an answered shard → how many of its trials ended with an error for good, where any did."""
    graded: Mapping[str, tuple[str, str]]
    """Digest of a shard → digests of the completions that were graded, and of their grades."""


class Spent(NamedTuple):
    """What answers cost. Each shard counts once, whatever number of times it was asked."""

    trials: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: object) -> Spent:
        # A sum, where a tuple would be joined.
        if not isinstance(other, Spent):
            return NotImplemented
        return Spent(
            self.trials + other.trials,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


class Progress(NamedTuple):
    """Where a stage's trials are, by the shards that carry them."""

    planned: int
    """Of the whole stage where its size was given, else of what is laid down by now."""
    done: int
    leased: int
    dead: int
