"""The pools' scripts: what each takes and gives. The data model is described at `proctor.router.pools.store`."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, Never

from proctor.router.pools.types import Claim, Outage
from proctor.runtime.redis.script import NoArguments, Script, ShardId

PoolKey = Literal["credits", "claimed", "wants", "pace", "breaker", "probes", "suspects"]
SharedKey = Literal["working"]
_PACKAGE: Final = "proctor.router.pools"


class ClaimArguments(NamedTuple):
    """Of `claim`."""

    ttl_s: int
    prefix: str
    """Of the names of credits: a shard's is this and its id."""
    audit: str
    wanted: int
    """Shards that the audit could have in all."""
    capacity: int
    """Credits of the pool."""
    priority: int
    lease_ms: int


class SettleArguments(NamedTuple):
    """Of `settle`."""

    ttl_s: int
    worked: int
    """1 where an answer came."""
    n_trials: int
    """0 where nothing is told of the pace."""
    seconds: float
    output_tokens: int
    weight: float
    """Of this message in the pace."""


class CreditName(NamedTuple):
    """A row of `settle`."""

    name: str


class LeaveArguments(NamedTuple):
    """Of `leave`."""

    audit: str


class HeldArguments(NamedTuple):
    """Of `held`."""

    prefix: str


class SweepArguments(NamedTuple):
    """Of `sweep`; its rows are the shards that are under way."""

    prefix: str
    older_than_ms: int


class UnreachableArguments(NamedTuple):
    """Of `unreachable`."""

    ttl_s: int
    name: str
    """Of the shard's credit."""
    first_wait_ms: int
    longest_wait_ms: int
    stretch: float
    """By which the wait is longer, for jitter."""


class ReadyArguments(NamedTuple):
    """Of `ready`."""

    ttl_s: int
    first_wait_ms: int


class WorkArguments(NamedTuple):
    """Of `work`."""

    pool: str
    wanted: int
    """Packs that the pool has outstanding or could have; with 0 nothing is noted."""
    fresh_ms: int
    """How long a note is good for."""


class Claimed(NamedTuple):
    """What `claim` answers."""

    claim: Claim
    wanted: int
    """Shards of all audits that are outstanding, or that they would have if they could."""


def _claimed(found: Any) -> Claimed:
    granted, probing, waiting, wanted = found
    return Claimed(Claim(tuple(granted), bool(probing), tuple(waiting)), int(wanted))


def _ages(flat: Any) -> dict[str, float]:
    return {flat[i]: int(flat[i + 1]) / 1000 for i in range(0, len(flat), 2)}


def _outage(found: Any) -> Outage:
    counts, since_ms = found
    return Outage(bool(counts), int(since_ms) / 1000)


def _work(flat: Any) -> dict[str, int]:
    return {flat[i]: int(flat[i + 1]) for i in range(0, len(flat), 2)}


def _seconds(found_ms: Any) -> float | None:
    return None if found_ms is None else int(found_ms) / 1000


CLAIM = Script[PoolKey, ClaimArguments, ShardId, Claimed](
    _PACKAGE,
    "claim",
    keys=("credits", "claimed", "wants", "breaker", "probes", "suspects"),
    arguments=ClaimArguments,
    row=ShardId,
    parts=("credits", "wishes", "fair_share", "breaker"),
    reply=_claimed,
)
SETTLE = Script[PoolKey, SettleArguments, CreditName, object](
    _PACKAGE,
    "settle",
    keys=("credits", "claimed", "pace", "breaker"),
    arguments=SettleArguments,
    row=CreditName,
    reply=bool,
)
LEAVE = Script[PoolKey, LeaveArguments, Never, object](
    _PACKAGE, "leave", keys=("credits", "claimed", "wants"), arguments=LeaveArguments, reply=bool
)
HELD = Script[PoolKey, HeldArguments, Never, dict[str, float]](
    _PACKAGE, "held", keys=("credits", "claimed"), arguments=HeldArguments, reply=_ages
)
SWEEP = Script[PoolKey, SweepArguments, ShardId, int](
    _PACKAGE, "sweep", keys=("credits", "claimed"), arguments=SweepArguments, row=ShardId, reply=int
)
UNREACHABLE = Script[PoolKey, UnreachableArguments, Never, Outage](
    _PACKAGE,
    "unreachable",
    keys=("breaker", "probes", "suspects"),
    arguments=UnreachableArguments,
    parts=("breaker",),
    reply=_outage,
)
READY = Script[PoolKey, ReadyArguments, Never, object](
    _PACKAGE, "ready", keys=("breaker",), arguments=ReadyArguments, reply=bool
)
AWAY_FOR = Script[PoolKey, NoArguments, Never, float | None](
    _PACKAGE, "away_for", keys=("breaker",), arguments=NoArguments, reply=_seconds
)
WORK = Script[SharedKey, WorkArguments, Never, dict[str, int]](
    _PACKAGE, "work", keys=("working",), arguments=WorkArguments, reply=_work
)
SCRIPTS: Final = (CLAIM, SETTLE, LEAVE, HELD, SWEEP, UNREACHABLE, READY, AWAY_FOR, WORK)
