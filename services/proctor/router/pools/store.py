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

Every key expires; every change is one Lua script on the server's time.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import ClassVar, NamedTuple

from proctor.runtime.redis.scripted import KEY_TTL_S, ScriptedRedis, milliseconds
from proctor.runtime.timing import DEFAULT_TIMING

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


class Claim(NamedTuple):
    """What a claim got."""

    granted: tuple[str, ...]
    """Shard ids that hold a credit now, in the order in which they were asked for."""
    probing: bool
    """Whether the one that was granted is to show that the servers are back."""
    waiting: tuple[str, ...]
    """Other audits that could have more now: whoever claims for them gets it."""


class Outage(NamedTuple):
    """What an unreachable endpoint means."""

    counts: bool
    """Whether this is a loss of its shard; False where the shard was only probing."""
    since_s: float
    """How long the servers have been away without a break."""


class Pools(ScriptedRedis):
    """The pools behind a Redis URL. Raises StoreError when the server cannot be reached."""

    _NAME: ClassVar[str] = "pools' store"
    _PACKAGE: ClassVar[str] = "proctor.router.pools"
    _SCRIPTS: ClassVar[Mapping[str, str]] = {
        name: name for name in ("claim", "settle", "leave", "held", "sweep", "unreachable", "away_for")
    }

    def _keys(self, pool: str, *names: str) -> list[str]:
        return [f"proctor:pool:{{{pool}}}:{name}" for name in names]

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
    ) -> Claim:
        """Ask for credits, by name, each until its lease ends.

        Audits that want more share the capacity equally among those of the highest priority; what these leave goes to
        the less urgent. What cannot be shared out evenly goes to whoever was served longest ago. A shard that holds a
        credit keeps it and is granted again, so that a crash between claim and lease leaks nothing.

        While the servers are away nothing is granted until the wait is over. Then one shard is, to probe: the first
        that was not among those without an answer, if there is one. Nothing else is until what came of it is known
        (`settle`, `worked`, `unreachable`, `release`) or its wait is over too.

        Args:
            shard_ids: that could be handed out now, the first ones first; none, to learn who is waiting.
            wanted: shards that the audit could have in all, those named and those that wait behind them. It counts
                against other audits until the lease time is over, or the audit claims again, or leaves.
            capacity: credits of the pool, at most.
            priority: a smaller number is more urgent.
        """
        names = ("credits", "claimed", "wants", "breaker", "probes", "suspects")
        granted, probing, waiting = self._run(
            "claim",
            self._keys(pool, *names),
            KEY_TTL_S,
            f"{audit_id}/{stage}/",
            audit_id,
            max(wanted, len(shard_ids)),
            capacity,
            priority,
            milliseconds(lease),
            *shard_ids,
        )
        return Claim(tuple(granted), bool(probing), tuple(waiting))

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
        """`release`, `note_pace` and, where an answer came, `worked`: all that follows an answer, in one round trip."""
        pace: tuple[float, ...] = (0, 0, 0)
        if n_trials > 0 and math.isfinite(seconds) and seconds > 0:
            pace = (
                min(n_trials, MAX_MESSAGE_TOKENS),
                min(seconds, MAX_MESSAGE_S),
                min(max(output_tokens, 0), MAX_MESSAGE_TOKENS),
            )
        members = (f"{audit_id}/{stage}/{shard_id}" for shard_id in shard_ids)
        keys = self._keys(pool, "credits", "claimed", "pace", "breaker")
        self._run("settle", keys, KEY_TTL_S, int(worked), *pace, _NEWEST, *members)

    def release(self, pool: str, audit_id: str, stage: str, shard_ids: Iterable[str]) -> None:
        """Give credits back. A probing shard that is released without a word of what came of it lets another probe."""
        self.settle(pool, audit_id, stage, shard_ids)

    def note_pace(self, pool: str, *, n_trials: int, seconds: float, output_tokens: int = 0) -> None:
        """Note how long a message of `n_trials` took. What took no time, or had no trials, says nothing."""
        self.settle(pool, "", "", (), n_trials=n_trials, seconds=seconds, output_tokens=output_tokens)

    def worked(self, pool: str) -> None:
        """An answer came: the servers are there."""
        self.settle(pool, "", "", (), worked=True)

    def leave(self, pool: str, audit_id: str) -> None:
        """An audit wants nothing more and holds nothing.

        Who could have what it leaves is told by a claim of no shards, with `wanted=0`, after it.
        """
        self._run("leave", self._keys(pool, "credits", "claimed", "wants"), audit_id)

    def held(self, pool: str, audit_id: str) -> dict[str, float]:
        """ "stage/shard" of the credits that an audit holds → for how many seconds."""
        flat = self._run("held", self._keys(pool, "credits", "claimed"), f"{audit_id}/")
        return {flat[i]: int(flat[i + 1]) / 1000 for i in range(0, len(flat), 2)}

    def sweep(self, pool: str, audit_id: str, stage: str, under_way: Collection[str], *, older_than: timedelta) -> int:
        """Take back the credits of a stage whose shards are not leased; returns how many.

        Args:
            under_way: ids of the shards that are leased (`Ledger.leases`).
            older_than: younger credits are left, as their shards may be about to be leased.
        """
        keys = self._keys(pool, "credits", "claimed")
        return int(self._run("sweep", keys, f"{audit_id}/{stage}/", milliseconds(older_than), *under_way))

    def pace(self, pool: str) -> float | None:
        """Seconds a trial of a message, exponentially weighted; None while nothing is known."""
        pipe = self._pipeline()
        pipe.hget(self._keys(pool, "pace")[0], "seconds")
        seconds = self._reply(pipe)[0]
        return None if seconds is None else float(seconds)

    def output_tokens_per_trial(self, pool: str) -> float | None:
        """Tokens that an answer has, exponentially weighted; None while nothing is known."""
        pipe = self._pipeline()
        pipe.hget(self._keys(pool, "pace")[0], "output_tokens")
        tokens = self._reply(pipe)[0]
        return None if tokens is None else float(tokens)

    def unreachable(self, pool: str, audit_id: str, stage: str, shard_id: str, *, jitter: float = 0.0) -> Outage:
        """The servers were away: nothing is granted for a wait, which doubles with every shard that probes in vain.

        Shards that were under way when the servers went away do not lengthen the wait.

        Args:
            jitter: 0..1, what share of the jitter (a fifth of the wait) is added.
        """
        stretch = 1.0 + _JITTER_SHARE * min(max(jitter, 0.0), 1.0)
        waits = (milliseconds(FIRST_WAIT), milliseconds(LONGEST_WAIT))
        counts, since_ms = self._run(
            "unreachable",
            self._keys(pool, "breaker", "probes", "suspects"),
            _OUTAGE_MEMORY_S,
            f"{audit_id}/{stage}/{shard_id}",
            *waits,
            stretch,
        )
        return Outage(bool(counts), int(since_ms) / 1000)

    def away_for(self, pool: str) -> float | None:
        """For how many seconds the servers have been away; None where they are not."""
        since_ms = self._run("away_for", self._keys(pool, "breaker"))
        return None if since_ms is None else int(since_ms) / 1000
