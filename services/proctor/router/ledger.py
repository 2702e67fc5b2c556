"""The ledger: which shards of an audit's stages are planned, queued, leased, done or dead.

One audit's keys share the hash tag `{audit_id}`, so they live in one slot of a Redis Cluster. An audit has its list of
stages, and each stage its own plan and its own end:

| key | type | holds |
|---|---|---|
| `proctor:{audit}:stages` | set | names of the stages that were planned |
| `proctor:{audit}:asked` | string | the step whose request was sent last, for as long as its answer may take |
| `proctor:{audit}:<stage>:plan` | hash | shard id → "position trials digest" |
| `proctor:{audit}:<stage>:queue` | sorted set | shards to run, by position |
| `proctor:{audit}:<stage>:leases` | sorted set | shards under way, by the end of their lease (server's ms) |
| `proctor:{audit}:<stage>:attempts` | hash | shard id → attempts begun |
| `proctor:{audit}:<stage>:done` | hash | shard id → digest of its completions |
| `proctor:{audit}:<stage>:dead` | hash | shard id → why it was given up |
| `proctor:{audit}:<stage>:fired` | string | set once, when every shard is done or dead |

Every key belongs to the router and expires. State changes are Lua scripts beside this module, so that each is one
atomic step: the guarantee that a shard counts once is here, not in the broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from importlib.resources import files
from typing import Any, NamedTuple

import redis
from redis.backoff import ExponentialBackoff
from redis.client import Pipeline
from redis.commands.core import Script
from redis.retry import Retry

from proctor.domain.errors import StoreError
from proctor.runtime.timing import DEFAULT_TIMING

#: A week: longer than any audit, short enough that a forgotten one clears itself away.
KEY_TTL = timedelta(days=7)
#: Attempts before a shard is given up: one for bad luck, one for a restart, one to be sure.
MAX_ATTEMPTS = 3
#: Characters of a cause that are kept.
_MAX_CAUSE = 2000


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
    """Where a stage's trials are, by the shards that carry them."""

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

    def _audit_key(self, audit_id: str, name: str) -> str:
        return f"proctor:{{{audit_id}}}:{name}"

    def _key(self, audit_id: str, stage: str, name: str) -> str:
        return f"proctor:{{{audit_id}}}:{stage}:{name}"

    def _keys(self, audit_id: str, stage: str, names: Iterable[str]) -> list[str]:
        return [self._key(audit_id, stage, name) for name in names]

    def _run(self, script: str, keys: Sequence[str], *arguments: str | int) -> Any:
        try:
            return self._scripts[script](keys=keys, args=[*map(str, arguments)])
        except redis.RedisError as error:
            raise StoreError(f"the ledger did not answer: {error}") from error

    def _reply(self, pipe: Pipeline) -> list[Any]:
        """Replies of several commands, in one round trip."""
        try:
            return list(pipe.execute())
        except redis.RedisError as error:
            raise StoreError(f"the ledger did not answer: {error}") from error

    @property
    def _ttl_s(self) -> int:
        return int(KEY_TTL.total_seconds())

    def plan(self, audit_id: str, stage: str, shards: Sequence[PlannedShard]) -> bool:
        """Lay down a stage's shards in the order in which they should run; False when they were there already.

        Raises:
            StoreError: when the stage was planned before with other shards.
        """
        pairs = [
            text
            for position, shard in enumerate(shards, start=1)
            for text in (shard.shard_id, f"{position} {shard.n_trials} {shard.digest}")
        ]
        keys = [self._audit_key(audit_id, "stages"), *self._keys(audit_id, stage, ("plan", "queue", "done", "dead"))]
        planned = self._run("plan", keys, self._ttl_s, stage, *pairs)
        if planned == -1:
            raise StoreError(f"stage {stage} of audit {audit_id} is in the ledger with another plan")
        return bool(planned)

    def stages(self, audit_id: str) -> set[str]:
        """Names of the stages that were planned for an audit."""
        pipe = self._redis.pipeline()
        pipe.smembers(self._audit_key(audit_id, "stages"))
        return set(self._reply(pipe)[0])

    def note_asked(self, audit_id: str, step: str, *, answer_time: timedelta = DEFAULT_TIMING.answer_time) -> None:
        """Note that the request of a step was sent, until its answer is overdue. One step of an audit at a time."""
        pipe = self._redis.pipeline()
        pipe.set(self._audit_key(audit_id, "asked"), step, px=int(answer_time.total_seconds() * 1000))
        self._reply(pipe)

    def was_asked(self, audit_id: str, step: str) -> bool:
        """Whether the request of a step was sent, and its answer is not overdue."""
        pipe = self._redis.pipeline()
        pipe.get(self._audit_key(audit_id, "asked"))
        return bool(self._reply(pipe)[0] == step)

    def lease(
        self, audit_id: str, stage: str, *, window: int, lease: timedelta = DEFAULT_TIMING.lease
    ) -> list[LeasedShard]:
        """Hand out queued shards while fewer than `window` of the stage are under way."""
        keys = self._keys(audit_id, stage, ("plan", "queue", "leases", "attempts"))
        flat = self._run("lease", keys, self._ttl_s, window, int(lease.total_seconds() * 1000))
        return [LeasedShard(flat[i], int(flat[i + 1]), flat[i + 2].split(" ", 2)[2]) for i in range(0, len(flat), 3)]

    def record(self, audit_id: str, stage: str, shard_id: str, completions: str) -> str:
        """Record a shard's completions by digest: 'recorded', 'complete' (once), 'duplicate' or 'unknown'."""
        keys = self._keys(audit_id, stage, ("plan", "queue", "leases", "done", "dead", "fired"))
        return str(self._run("record", keys, self._ttl_s, shard_id, completions))

    def fail(self, audit_id: str, stage: str, shard_id: str, attempt: int, *, cause: str, retryable: bool) -> str:
        """An attempt failed: 'queued' again, 'dead', 'complete' (once), or 'stale' when it no longer matters."""
        keys = self._keys(audit_id, stage, self._KEYS)
        return str(
            self._run("fail", keys, self._ttl_s, shard_id, attempt, int(retryable), MAX_ATTEMPTS, cause[:_MAX_CAUSE])
        )

    def overdue(self, audit_id: str, stage: str) -> list[tuple[str, int]]:
        """Shards whose lease has run out, with the attempt that held it."""
        flat = self._run("overdue", self._keys(audit_id, stage, ("leases", "attempts")))
        return [(flat[i], int(flat[i + 1])) for i in range(0, len(flat), 2)]

    def restart(self, audit_id: str, stage: str) -> int:
        """Queue everything of a stage that is not answered; returns how many shards that is.

        One stage, and not all of an audit's: what a stage that has ended lost is part of what the next was made from.
        """
        return int(self._run("restart", self._keys(audit_id, stage, self._KEYS), self._ttl_s))

    def is_planned(self, audit_id: str, stage: str) -> bool:
        """Whether a stage's shards are laid down."""
        pipe = self._redis.pipeline()
        pipe.exists(self._key(audit_id, stage, "plan"))
        return bool(self._reply(pipe)[0])

    def is_complete(self, audit_id: str, stage: str) -> bool:
        """Whether every planned shard of a stage is done or dead."""
        pipe = self._redis.pipeline()
        for key in self._keys(audit_id, stage, ("plan", "done", "dead")):
            pipe.hlen(key)
        planned, done, dead = self._reply(pipe)
        return bool(planned) and done + dead == planned

    def entries(self, audit_id: str, stage: str) -> list[PlannedShard]:
        """A stage's plan, in order."""
        parsed = [(shard_id, *entry.split(" ", 2)) for shard_id, entry in self._hash(audit_id, stage, "plan").items()]
        return [
            PlannedShard(shard_id, int(n_trials), digest)
            for shard_id, position, n_trials, digest in sorted(parsed, key=lambda row: int(row[1]))
        ]

    def entry(self, audit_id: str, stage: str, shard_id: str) -> PlannedShard:
        """One shard of a stage's plan.

        Raises:
            StoreError: when the plan has no such shard.
        """
        pipe = self._redis.pipeline()
        pipe.hget(self._key(audit_id, stage, "plan"), shard_id)
        entry = self._reply(pipe)[0]
        if entry is None:
            raise StoreError(f"stage {stage} of audit {audit_id} has no shard {shard_id} in the ledger")
        _, n_trials, digest = entry.split(" ", 2)
        return PlannedShard(shard_id, int(n_trials), digest)

    def done(self, audit_id: str, stage: str) -> dict[str, str]:
        """Shard id → digest of its completions."""
        return self._hash(audit_id, stage, "done")

    def dead(self, audit_id: str, stage: str) -> dict[str, str]:
        """Shard id → why it was given up."""
        return self._hash(audit_id, stage, "dead")

    def _hash(self, audit_id: str, stage: str, name: str) -> dict[str, str]:
        pipe = self._redis.pipeline()
        pipe.hgetall(self._key(audit_id, stage, name))
        return dict(self._reply(pipe)[0])

    def progress(self, audit_id: str, stage: str) -> Progress:
        """Counts of a stage's trials by where their shards are."""
        pipe = self._redis.pipeline()
        pipe.hgetall(self._key(audit_id, stage, "plan"))
        pipe.hkeys(self._key(audit_id, stage, "done"))
        pipe.hkeys(self._key(audit_id, stage, "dead"))
        pipe.zrange(self._key(audit_id, stage, "leases"), 0, -1)
        plan, done, dead, leased = self._reply(pipe)
        size = {shard_id: int(entry.split(" ", 2)[1]) for shard_id, entry in plan.items()}
        return Progress(
            planned=sum(size.values()),
            done=sum(size.get(shard, 0) for shard in done),
            leased=sum(size.get(shard, 0) for shard in leased),
            dead=sum(size.get(shard, 0) for shard in dead),
        )

    def forget(self, audit_id: str) -> None:
        """Drop an audit's keys, of all its stages; its report and records hold everything that stays."""
        keys = [key for stage in self.stages(audit_id) for key in self._keys(audit_id, stage, self._KEYS)]
        pipe = self._redis.pipeline()
        pipe.delete(*(self._audit_key(audit_id, name) for name in ("stages", "asked")), *keys)
        self._reply(pipe)
