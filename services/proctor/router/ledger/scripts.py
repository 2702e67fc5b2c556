"""The ledger's scripts: what each takes and gives. The data model is described at `proctor.router.ledger.store`."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, Never, get_args

from proctor.router.ledger.types import Answer, Failed, LeasedShard, Progress, Recorded, Setback
from proctor.runtime.redis.script import Script, ShardId

AuditKey = Literal["stages", "asked", "spent"]
StageKey = Literal[
    "parts", "plan", "queue", "leases", "attempts", "failures", "losses", "done", "dead", "refused", "graded", "fired"
]
LedgerKey = AuditKey | StageKey
AUDIT_KEYS: Final[tuple[AuditKey, ...]] = get_args(AuditKey)
STAGE_KEYS: Final[tuple[StageKey, ...]] = get_args(StageKey)
_PACKAGE: Final = "proctor.router.ledger"


class PlanArguments(NamedTuple):
    """Of `plan`."""

    ttl_s: int
    stage: str
    part: int
    parts: int
    total_trials: int | Literal[""]
    """Of the whole stage; empty where that is not known."""


class Entry(NamedTuple):
    """A row of `plan` and of `split`: a shard as it is kept."""

    shard_id: str
    entry: str
    """ "position trials digest"."""


class LeaseArguments(NamedTuple):
    """Of `lease`."""

    ttl_s: int
    lease_ms: int


class RecordArguments(NamedTuple):
    """Of `record`."""

    ttl_s: int
    stage: str


class FailArguments(NamedTuple):
    """Of `fail`."""

    ttl_s: int
    shard_id: str
    attempt: int
    setback: Setback
    max_failures: int
    max_losses: int
    cause: str


class SplitArguments(NamedTuple):
    """Of `split`."""

    ttl_s: int
    shard_id: str
    attempt: int
    child_losses: int
    """With which each of the smaller shards begins."""


class HandBackArguments(NamedTuple):
    """Of `hand_back`."""

    ttl_s: int


class Attempt(NamedTuple):
    """A row of `hand_back`."""

    shard_id: str
    attempt: int


class RestartArguments(NamedTuple):
    """Of `restart`."""

    ttl_s: int
    stage: str
    ask_refused: Literal[0, 1]


class OverdueArguments(NamedTuple):
    """Of `overdue`."""

    lease_ms: int


class ProgressArguments(NamedTuple):
    """Of `progress`."""

    stage: str


def _leased(rows: Any) -> list[LeasedShard]:
    return [_leased_shard(*row) for row in rows]


def _leased_shard(shard_id: str, attempt: int, entry: str, failures: str, losses: str) -> LeasedShard:
    position, n_trials, digest = entry.split(" ", 2)
    return LeasedShard(shard_id, attempt, digest, int(n_trials), int(position), int(failures), int(losses))


def _outcomes(found: Any) -> list[Recorded]:
    return list(found)


def _failed(found: Any) -> Failed:
    outcome: Failed = found
    return outcome


def _attempts(flat: Any) -> list[tuple[str, int]]:
    return [(flat[i], int(flat[i + 1])) for i in range(0, len(flat), 2)]


def _progress(counts: Any) -> Progress:
    return Progress(*counts)


PLAN = Script[LedgerKey, PlanArguments, Entry, int](
    _PACKAGE,
    "plan",
    keys=("stages", "parts", "plan", "queue", "leases", "done", "dead", "fired"),
    arguments=PlanArguments,
    row=Entry,
    reply=int,
)
LEASE = Script[LedgerKey, LeaseArguments, ShardId, list[LeasedShard]](
    _PACKAGE,
    "lease",
    keys=("plan", "queue", "leases", "attempts", "failures", "losses"),
    arguments=LeaseArguments,
    row=ShardId,
    reply=_leased,
)
RECORD = Script[LedgerKey, RecordArguments, Answer, list[Recorded]](
    _PACKAGE,
    "record",
    keys=("spent", "parts", "plan", "queue", "leases", "done", "dead", "refused", "fired"),
    arguments=RecordArguments,
    row=Answer,
    parts=("ending",),
    reply=_outcomes,
)
FAIL = Script[LedgerKey, FailArguments, Never, Failed](
    _PACKAGE,
    "fail",
    keys=("parts", "plan", "queue", "leases", "attempts", "failures", "losses", "done", "dead", "fired"),
    arguments=FailArguments,
    parts=("ending",),
    reply=_failed,
)
SPLIT = Script[LedgerKey, SplitArguments, Entry, bool](
    _PACKAGE,
    "split",
    keys=("parts", "plan", "queue", "leases", "attempts", "failures", "losses", "done", "dead"),
    arguments=SplitArguments,
    row=Entry,
    reply=bool,
)
HAND_BACK = Script[LedgerKey, HandBackArguments, Attempt, int](
    _PACKAGE,
    "hand_back",
    keys=("plan", "queue", "leases", "attempts"),
    arguments=HandBackArguments,
    row=Attempt,
    reply=int,
)
RESTART = Script[LedgerKey, RestartArguments, Never, int](
    _PACKAGE,
    "restart",
    keys=("spent", "parts", "plan", "queue", "leases", "failures", "losses", "done", "dead", "refused", "fired"),
    arguments=RestartArguments,
    reply=int,
)
OVERDUE = Script[LedgerKey, OverdueArguments, Never, list[tuple[str, int]]](
    _PACKAGE, "overdue", keys=("leases", "attempts"), arguments=OverdueArguments, reply=_attempts
)
PROGRESS = Script[LedgerKey, ProgressArguments, Never, Progress](
    _PACKAGE,
    "progress",
    keys=("spent", "parts", "plan", "leases", "dead"),
    arguments=ProgressArguments,
    reply=_progress,
)
SCRIPTS: Final = (PLAN, LEASE, RECORD, FAIL, SPLIT, HAND_BACK, RESTART, OVERDUE, PROGRESS)
