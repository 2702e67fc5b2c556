"""The ledger: which shards of an audit are planned, queued, leased, done or dead.

One audit's keys share the hash tag `{audit_id}`, so they live in one slot of a Redis Cluster:

| key | type | holds |
|---|---|---|
| `proctor:{audit}:plan` | hash | shard id → "position trials digest" |
| `proctor:{audit}:queue` | sorted set | shards to run, by position |
| `proctor:{audit}:leases` | sorted set | shards under way, by the end of their lease (server's ms) |
| `proctor:{audit}:attempts` | hash | shard id → attempts begun |
| `proctor:{audit}:done` | hash | shard id → digest of its completions |
| `proctor:{audit}:dead` | hash | shard id → why it was given up |
| `proctor:{audit}:fired` | string | set once, when every shard is done or dead |

Every key belongs to the router and expires. State changes are Lua scripts beside this module, so that each is one
atomic step: the guarantee that a shard counts once is here, not in the broker.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from importlib.resources import files
from typing import Any, NamedTuple

import redis
from redis.backoff import ExponentialBackoff
from redis.commands.core import Script
from redis.retry import Retry

from proctor.domain.errors import StoreError

#: A week: longer than any audit, short enough that a forgotten one clears itself away.
KEY_TTL = timedelta(days=7)
#: Longest time from dispatch to answer; past it the reconciler gives the shard to another worker. Long enough for an
#: endpoint on a laptop that takes ten seconds a prompt and one prompt at a time.
LEASE = timedelta(minutes=15)
#: Attempts before a shard is given up: one for bad luck, one for a restart, one to be sure.
MAX_ATTEMPTS = 3


class PlannedShard(NamedTuple):
    """A shard as the plan holds it."""

    shard_id: str
    n_trials: int
    digest: str


class LeasedShard(NamedTuple):
    """A shard that was handed out."""

    shard_id: str
    attempt: int
    digest: str


class Progress(NamedTuple):
    """Where an audit's trials are, by the shards that carry them."""

    planned: int
    done: int
    leased: int
    dead: int


class Ledger:
    """The ledger behind a Redis URL. Raises StoreError when the server cannot be reached."""

    _KEYS = ("plan", "queue", "leases", "attempts", "done", "dead", "fired")

    def __init__(self, url: str) -> None:
        self._redis: redis.Redis = redis.Redis.from_url(
            url, decode_responses=True, retry=Retry(ExponentialBackoff(cap=1.0, base=0.05), 3)
        )
        self._scripts: dict[str, Script] = {
            name: self._redis.register_script(files("proctor.router").joinpath(f"lua/{name}.lua").read_text("utf-8"))
            for name in ("plan", "lease", "record", "fail", "overdue", "restart")
        }

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def _key(self, audit_id: str, name: str) -> str:
        return f"proctor:{{{audit_id}}}:{name}"

    def _run(self, script: str, audit_id: str, keys: str, *arguments: str | int) -> Any:
        try:
            return self._scripts[script](
                keys=[self._key(audit_id, name) for name in keys.split()], args=[*map(str, arguments)]
            )
        except redis.RedisError as error:
            raise StoreError(f"the ledger did not answer: {error}") from error

    @property
    def _ttl_s(self) -> int:
        return int(KEY_TTL.total_seconds())

    def plan(self, audit_id: str, shards: Sequence[PlannedShard]) -> bool:
        """Lay down an audit's shards in the order in which they should run; False when they were there already.

        Raises:
            StoreError: when the audit was planned before with other shards.
        """
        pairs = [
            text
            for position, shard in enumerate(shards, start=1)
            for text in (shard.shard_id, f"{position} {shard.n_trials} {shard.digest}")
        ]
        planned = self._run("plan", audit_id, "plan queue", self._ttl_s, *pairs)
        if planned == -1:
            raise StoreError(f"audit {audit_id} is in the ledger with another plan; start a new audit")
        return bool(planned)

    def lease(self, audit_id: str, *, window: int, lease: timedelta = LEASE) -> list[LeasedShard]:
        """Hand out queued shards while fewer than `window` are under way."""
        flat = self._run(
            "lease", audit_id, "plan queue leases attempts", self._ttl_s, window, int(lease.total_seconds() * 1000)
        )
        return [LeasedShard(flat[i], int(flat[i + 1]), flat[i + 2].split(" ", 2)[2]) for i in range(0, len(flat), 3)]

    def record(self, audit_id: str, shard_id: str, completions: str) -> str:
        """Record a shard's completions by digest: 'recorded', 'complete' (once), 'duplicate' or 'unknown'."""
        return str(
            self._run("record", audit_id, "plan queue leases done dead fired", self._ttl_s, shard_id, completions)
        )

    def fail(self, audit_id: str, shard_id: str, attempt: int, *, cause: str, retryable: bool) -> str:
        """An attempt failed: 'queued' again, 'dead', 'complete' (once), or 'stale' when it no longer matters."""
        return str(
            self._run(
                "fail", audit_id, "plan queue leases attempts done dead fired",
                self._ttl_s, shard_id, attempt, int(retryable), MAX_ATTEMPTS, cause[:2000],
            )
        )  # fmt: skip

    def overdue(self, audit_id: str) -> list[tuple[str, int]]:
        """Shards whose lease has run out, with the attempt that held it."""
        flat = self._run("overdue", audit_id, "leases attempts")
        return [(flat[i], int(flat[i + 1])) for i in range(0, len(flat), 2)]

    def restart(self, audit_id: str) -> int:
        """Queue everything that is not answered; returns how many shards that is."""
        return int(self._run("restart", audit_id, "plan queue leases attempts done dead fired", self._ttl_s))

    def is_complete(self, audit_id: str) -> bool:
        """Whether every planned shard is done or dead."""
        pipe = self._redis.pipeline()
        for name in ("plan", "done", "dead"):
            pipe.hlen(self._key(audit_id, name))
        planned, done, dead = pipe.execute()
        return bool(planned) and done + dead == planned

    def entries(self, audit_id: str) -> list[PlannedShard]:
        """The plan, in order."""
        rows: Any = self._redis.hgetall(self._key(audit_id, "plan"))
        parsed = [(shard_id, *entry.split(" ", 2)) for shard_id, entry in rows.items()]
        return [
            PlannedShard(shard_id, int(n_trials), digest)
            for shard_id, position, n_trials, digest in sorted(parsed, key=lambda row: int(row[1]))
        ]

    def done(self, audit_id: str) -> dict[str, str]:
        """Shard id → digest of its completions."""
        rows: Any = self._redis.hgetall(self._key(audit_id, "done"))
        return dict(rows)

    def dead(self, audit_id: str) -> dict[str, str]:
        """Shard id → why it was given up."""
        rows: Any = self._redis.hgetall(self._key(audit_id, "dead"))
        return dict(rows)

    def progress(self, audit_id: str) -> Progress:
        """Counts of trials by where their shards are."""
        pipe = self._redis.pipeline()
        pipe.hgetall(self._key(audit_id, "plan"))
        pipe.hkeys(self._key(audit_id, "done"))
        pipe.hkeys(self._key(audit_id, "dead"))
        pipe.zrange(self._key(audit_id, "leases"), 0, -1)
        try:
            plan, done, dead, leased = pipe.execute()
        except redis.RedisError as error:
            raise StoreError(f"the ledger did not answer: {error}") from error
        size = {shard_id: int(entry.split(" ", 2)[1]) for shard_id, entry in plan.items()}
        return Progress(
            planned=sum(size.values()),
            done=sum(size.get(shard, 0) for shard in done),
            leased=sum(size.get(shard, 0) for shard in leased),
            dead=sum(size.get(shard, 0) for shard in dead),
        )

    def forget(self, audit_id: str) -> None:
        """Drop an audit's keys; its report and records hold everything that stays."""
        self._redis.delete(*[self._key(audit_id, name) for name in self._KEYS])
