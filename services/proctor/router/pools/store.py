"""Pools: what is outstanding to the servers behind an endpoint, over all audits and router processes.

A pool (`EndpointSpec.pool`) has so many *credits*: a shard is handed out while it holds one. Audits that ask the same
servers share them. The pool also knows how quick its servers are, and whether they are away. One pool's keys share the
hash tag `{pool}`:

| key | type | holds |
|---|---|---|
| `proctor:pool:{pool}:credits` | sorted set | "audit/stage/shard" by the end of its credit (server's ms) |
| `proctor:pool:{pool}:claimed` | hash | "audit/stage/shard" → when it got the credit (server's ms) |
| `proctor:pool:{pool}:wants` | hash | audit → "more priority until_ms turn": shards that it wants besides |
| `proctor:pool:{pool}:pace` | hash | `seconds` and `output_tokens` a trial, exponentially weighted |
| `proctor:pool:{pool}:breaker` | hash | while the servers are away: `since` and `until` (ms), `wait` (ms), `probe` |
| `proctor:pool:{pool}:probes` | set | shards that probed in the last outage whether the servers are back |
| `proctor:pool:{pool}:suspects` | set | shards that got no answer in the last outage: they may be what causes it |

All pools share one key, in a slot of its own: what is handed out to the servers of one occupies the workers that the
others wait for.

| key | type | holds |
|---|---|---|
| `proctor:pools:{working}` | hash | pool → "packs at": packs that it had outstanding or wanted then (server's ms) |

Every key expires; every change is one Lua script on the server's time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import ClassVar

from proctor.router.pools import scripts
from proctor.router.pools.scripts import PoolKey, SharedKey
from proctor.router.pools.types import Claim, Outage, Outlook
from proctor.runtime.redis.script import NoArguments, ShardId
from proctor.runtime.redis.scripted import KEY_TTL_S, ScriptedRedis, milliseconds
from proctor.runtime.timing import DEFAULT_TIMING

__all__ = ["FIRST_WAIT", "LONGEST_WAIT", "MAX_MESSAGE_S", "MAX_MESSAGE_TOKENS", "Claim", "Outage", "Outlook", "Pools"]

#: First and longest wait of an open breaker before a shard probes whether the servers are back.
FIRST_WAIT = timedelta(seconds=1)
LONGEST_WAIT = timedelta(seconds=30)
#: How long an outage of which nothing more is heard is remembered: an audit that comes later finds out for itself.
_OUTAGE_MEMORY_S = 3600
#: Of a wait, what jitter adds at most, so that the pools of one dead host are not probed in step.
_JITTER_SHARE = 0.2
#: What a message may say of itself at most, of its time (no lease is longer) and of its tokens. A worker repeats what
#: an endpoint reports, and one message must not decide for a thousand others how quick the servers are.
MAX_MESSAGE_S = 86_400.0
MAX_MESSAGE_TOKENS = 1 << 36
#: Weight of the newest message in the pace: that of the last ten or so counts.
_NEWEST = 0.2
#: Packs that a pool is said to want until a claim has told how many.
_UNTOLD = 1 << 16


class Pools(ScriptedRedis):
    """The pools behind a Redis URL. Raises StoreError when the server cannot be reached."""

    _NAME: ClassVar[str] = "pools' store"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._wanted: dict[str, int] = {}
        """Pool → packs that it had outstanding or wanted when this process claimed of it last."""

    def outlook(self, pool: str, *, fresh: timedelta, at_work: bool = True) -> Outlook:
        """The pace of a pool, and which others have work, in one round trip.

        Args:
            fresh: how long another pool has work when nothing more is heard of it.
            at_work: whether to note that this one has.
        """
        wanted = (self._wanted.get(pool) or _UNTOLD) if at_work else 0
        arguments = scripts.WorkArguments(pool, wanted, milliseconds(fresh))
        (seconds,), others = self._run_behind(
            lambda pipe: pipe.hget(_keys(pool)("pace"), "seconds"), scripts.WORK, _shared_key, arguments
        )
        return Outlook(None if seconds is None else float(seconds), others)

    def wanted(self, pool: str) -> int | None:
        """Packs that all audits had outstanding or wanted when this process claimed last; None where it never did."""
        return self._wanted.get(pool)

    def rest(self, pool: str) -> None:
        """A pool has no work now: the others need leave it nothing, until it is at work again."""
        pipe = self._pipeline()
        pipe.hdel(_shared_key("working"), pool)
        self._reply(pipe)

    def claim(
        self,
        pool: str,
        audit_id: str,
        stage: str,
        shard_ids: Sequence[str],
        *,
        wanted: int,
        capacity: int,
        priority: int = 0,
        lease: timedelta = DEFAULT_TIMING.lease,
        together: int = 1,
    ) -> Claim:
        """Ask for credits, by name, each until its lease ends.

        Audits that want more share the capacity equally among those of the highest priority; what these leave goes to
        the less urgent. What cannot be shared out evenly goes to whoever was served longest ago. A shard that holds a
        credit keeps it and is granted again, so that a crash between claim and lease leaks nothing.

        While the servers are away nothing is granted until the wait is over. Then one shard is, to probe: the first
        that was not among those without an answer, if there is one. Nothing else is until what came of it is known
        (`settle`, `unreachable`, `release`) or its wait is over too.

        Args:
            shard_ids: that could be handed out now, the first ones first; none, to learn who is waiting.
            wanted: shards that the audit could have in all, those named and those that wait behind them. It counts
                against other audits until the lease time is over, or the audit claims again, or leaves.
            capacity: credits of the pool, at most.
            priority: a smaller number is more urgent.
            together: shards that travel as one pack, by which the next `outlook` counts what is wanted.
        """
        arguments = scripts.ClaimArguments(
            ttl_s=KEY_TTL_S,
            prefix=f"{audit_id}/{stage}/",
            audit=audit_id,
            wanted=max(wanted, len(shard_ids)),
            capacity=capacity,
            priority=priority,
            lease_ms=milliseconds(lease),
        )
        found = self._run(scripts.CLAIM, _keys(pool), arguments, map(ShardId, shard_ids))
        self._wanted[pool] = -(-found.wanted // together)
        return found.claim

    def settle(
        self,
        pool: str,
        audit_id: str,
        stage: str,
        shard_ids: Iterable[str],
        *,
        worked: bool = False,
        n_trials: int = 0,
        seconds: float = 0.0,
        output_tokens: int = 0,
    ) -> None:
        """`release` and `note_pace`, and an outage's end where an answer came: all that follows one, in one round trip.

        Args:
            worked: whether a prompt was answered: the servers are there.
        """
        timed = n_trials > 0 and math.isfinite(seconds) and seconds > 0
        arguments = scripts.SettleArguments(
            ttl_s=KEY_TTL_S,
            worked=int(worked),
            n_trials=min(n_trials, MAX_MESSAGE_TOKENS) if timed else 0,
            seconds=min(seconds, MAX_MESSAGE_S) if timed else 0,
            output_tokens=min(max(output_tokens, 0), MAX_MESSAGE_TOKENS) if timed else 0,
            weight=_NEWEST,
        )
        names = (scripts.CreditName(f"{audit_id}/{stage}/{shard_id}") for shard_id in shard_ids)
        self._run(scripts.SETTLE, _keys(pool), arguments, names)

    def release(self, pool: str, audit_id: str, stage: str, shard_ids: Iterable[str]) -> None:
        """Give credits back. A probing shard that is released without a word of what came of it lets another probe."""
        self.settle(pool, audit_id, stage, shard_ids)

    def note_pace(self, pool: str, *, n_trials: int, seconds: float, output_tokens: int = 0) -> None:
        """Note how long a message of `n_trials` took. What took no time, or had no trials, says nothing."""
        self.settle(pool, "", "", (), n_trials=n_trials, seconds=seconds, output_tokens=output_tokens)

    def ready(self, pool: str) -> None:
        """The servers say that they are ready: where they were away, a shard probes now whether they answer.

        An engine may have died in a server that stays ready, so this ends no outage. It counts from now on.
        """
        arguments = scripts.ReadyArguments(_OUTAGE_MEMORY_S, milliseconds(FIRST_WAIT))
        self._run(scripts.READY, _keys(pool), arguments)

    def leave(self, pool: str, audit_id: str) -> None:
        """An audit wants nothing more and holds nothing.

        Who could have what it leaves is told by a claim of no shards, with `wanted=0`, after it.
        """
        self._run(scripts.LEAVE, _keys(pool), scripts.LeaveArguments(audit_id))

    def held(self, pool: str, audit_id: str) -> dict[str, float]:
        """ "stage/shard" of the credits that an audit holds → for how many seconds."""
        return self._run(scripts.HELD, _keys(pool), scripts.HeldArguments(f"{audit_id}/"))

    def sweep(self, pool: str, audit_id: str, stage: str, under_way: Collection[str], *, older_than: timedelta) -> int:
        """Take back the credits of a stage whose shards are not leased; returns how many.

        Args:
            under_way: ids of the shards that are leased (`Ledger.leases`).
            older_than: younger credits are left, as their shards may be about to be leased.
        """
        arguments = scripts.SweepArguments(f"{audit_id}/{stage}/", milliseconds(older_than))
        return self._run(scripts.SWEEP, _keys(pool), arguments, map(ShardId, under_way))

    def pace(self, pool: str) -> float | None:
        """Seconds a trial of a message, exponentially weighted; None while nothing is known."""
        pipe = self._pipeline()
        pipe.hget(_keys(pool)("pace"), "seconds")
        seconds = self._reply(pipe)[0]
        return None if seconds is None else float(seconds)

    def output_tokens_per_trial(self, pool: str) -> float | None:
        """Tokens that an answer has, exponentially weighted; None while nothing is known."""
        pipe = self._pipeline()
        pipe.hget(_keys(pool)("pace"), "output_tokens")
        tokens = self._reply(pipe)[0]
        return None if tokens is None else float(tokens)

    def unreachable(self, pool: str, audit_id: str, stage: str, shard_id: str, *, jitter: float = 0.0) -> Outage:
        """The servers were away: nothing is granted for a wait, which doubles with every shard that probes in vain.

        Shards that were under way when the servers went away do not lengthen the wait.

        Args:
            jitter: 0..1, what share of the jitter (a fifth of the wait) is added.
        """
        stretch = 1.0 + _JITTER_SHARE * min(max(jitter, 0.0), 1.0)
        arguments = scripts.UnreachableArguments(
            ttl_s=_OUTAGE_MEMORY_S,
            name=f"{audit_id}/{stage}/{shard_id}",
            first_wait_ms=milliseconds(FIRST_WAIT),
            longest_wait_ms=milliseconds(LONGEST_WAIT),
            stretch=stretch,
        )
        return self._run(scripts.UNREACHABLE, _keys(pool), arguments)

    def away_for(self, pool: str) -> float | None:
        """For how many seconds the servers have been away; None where they are not."""
        return self._run(scripts.AWAY_FOR, _keys(pool), NoArguments())


def _keys(pool: str) -> Callable[[PoolKey], str]:
    """The names of a pool's keys in Redis, by their names in its scripts."""
    return f"proctor:pool:{{{pool}}}:".__add__


def _shared_key(name: SharedKey) -> str:
    return f"proctor:pools:{{{name}}}"
