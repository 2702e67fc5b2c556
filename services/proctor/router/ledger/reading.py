"""Reading the ledger: where a stage's shards are, and what came of them. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from redis.client import Pipeline

from proctor.domain.errors import StoreError
from proctor.router.ledger import scripts
from proctor.router.ledger.keys import audit_key, keys_of
from proctor.router.ledger.scripts import StageKey
from proctor.router.ledger.types import Parts, PlannedShard, Progress, Settled, Spent, Standing
from proctor.runtime.redis.scripted import ScriptedRedis, milliseconds
from proctor.runtime.timing import DEFAULT_TIMING


class LedgerReading(ScriptedRedis):
    """What can be asked of the ledger. The data model is described at `proctor.router.ledger.store`."""

    _NAME: ClassVar[str] = "ledger"

    def time(self) -> datetime:
        """The server's time."""
        pipe = self._pipeline()
        pipe.time()
        seconds, microseconds = self._reply(pipe)[0]
        return datetime.fromtimestamp(seconds, UTC) + timedelta(microseconds=microseconds)

    def stages(self, audit_id: str) -> set[str]:
        """Names of the stages that were planned for an audit."""
        pipe = self._pipeline()
        pipe.smembers(audit_key(audit_id, "stages"))
        return set(self._reply(pipe)[0])

    def was_asked(self, audit_id: str, step: str, *, answer_time: timedelta = DEFAULT_TIMING.answer_time) -> bool:
        """Whether the request of a step was sent, and its answer is not overdue.

        Args:
            answer_time: how long an answer may take. A note that has longer to live is of before the server's clock
                was put back, and counts for nothing.
        """
        pipe, key = self._pipeline(), audit_key(audit_id, "asked")
        pipe.get(key)
        pipe.pttl(key)
        asked, left_ms = self._reply(pipe)
        return bool(asked == step and left_ms <= milliseconds(answer_time))

    def parts(self, audit_id: str, stage: str) -> Parts:
        """How much of a stage is planned. None of it where its plan was lost."""
        return self.standing(audit_id, stage, 0).parts

    def is_complete(self, audit_id: str, stage: str) -> bool:
        """Whether all parts of a stage are laid down, and every shard of them is done or dead.

        A stage all of whose parts are empty is complete.
        """
        return self.standing(audit_id, stage, 0).complete

    def queued(self, audit_id: str, stage: str) -> int:
        """Shards in a stage's queue."""
        return self.standing(audit_id, stage, 0).queued

    def next_up(self, audit_id: str, stage: str, n: int) -> list[str]:
        """Ids of the first `n` shards of a stage's queue."""
        return list(self.standing(audit_id, stage, n).next_up)

    def standing(self, audit_id: str, stage: str, n: int) -> Standing:
        """Parts, completeness, and the queue with the ids of its first `n` shards, in one round trip."""
        pipe = self._pipeline()
        key = keys_of(audit_id, stage)
        queue, leases = key["queue"], key["leases"]
        pipe.hmget(key["parts"], "laid", "of", "planned")
        pipe.hget(key["spent"], f"{stage} trials")
        for hashed in ("plan", "done", "dead"):
            pipe.hlen(key[hashed])
        pipe.zcard(queue)
        pipe.zcard(leases)
        pipe.zrange(queue, 0, n - 1) if n > 0 else pipe.exists(queue)
        (laid, of, trials), spent, planned, answered, given_up, queued, leased, first = self._reply(pipe)
        sizes = {"queue": queued, "leases": leased, "done": answered, "dead": given_up}
        lost: tuple[str, ...]
        if laid is None:
            parts, lost = Parts(0, None), ("parts",) if planned else ()
        elif int(trials or 0) > 0 and planned == 0:
            parts, lost = Parts(0, None), ("plan",)
        else:
            parts, lost = Parts(int(laid), int(of)), _lost(planned, sizes, spent)
        # Both: what is done may hold shards of a plan that was lost, and a queue may be lost alone.
        more = not parts.all_laid
        complete = not more and queued == leased == 0 and answered + given_up >= planned
        return Standing(parts, complete, queued, tuple(first) if n > 0 else (), more, lost)

    def settled(self, audit_id: str, stage: str) -> Settled:
        """What came of a stage that has ended.

        Raises:
            StoreError: when it has not: keys of it were lost since it was seen to.
        """
        pipe = self._pipeline()
        for name in ("plan", "done", "dead", "refused", "graded"):
            pipe.hgetall(keys_of(audit_id, stage)[name])
        pipe.hget(keys_of(audit_id, stage)["parts"], "planned")
        plan, done, dead, refused, graded, trials = self._reply(pipe)
        entries = _in_order(plan)
        open_still = [one.shard_id for one in entries if one.shard_id not in done and one.shard_id not in dead]
        if open_still or sum(one.n_trials for one in entries) != int(trials or -1):
            raise StoreError(
                f"stage {stage} of audit {audit_id} has ended, and not all of it is in the ledger any more"
            )
        trials_of = {one.shard_id: one.n_trials for one in entries if one.shard_id in done}
        refusals = {shard: min(int(n), trials_of[shard]) for shard, n in refused.items() if shard in trials_of}
        return Settled(entries, done, dead, refusals, _graded(graded))

    def leases(self, audit_id: str, stage: str) -> list[str]:
        """Ids of the shards under way, the one whose lease ends first at the front."""
        pipe = self._pipeline()
        pipe.zrange(keys_of(audit_id, stage)["leases"], 0, -1)
        return list(self._reply(pipe)[0])

    def overdue(self, audit_id: str, stage: str, *, lease: timedelta = DEFAULT_TIMING.lease) -> list[tuple[str, int]]:
        """Shards whose lease has run out, with the attempt that held it.

        Args:
            lease: how long a lease is. One that has longer to run is of before the server's clock was put back, and
                is shortened: the one change that is made here.
        """
        return self._run(
            scripts.OVERDUE, keys_of(audit_id, stage).__getitem__, scripts.OverdueArguments(milliseconds(lease))
        )

    def entries(self, audit_id: str, stage: str) -> list[PlannedShard]:
        """What is laid down of a stage's plan, in order of position."""
        return list(_in_order(self._hash(audit_id, stage, "plan")))

    def entry(self, audit_id: str, stage: str, shard_id: str) -> PlannedShard:
        """One shard of a stage's plan.

        Raises:
            StoreError: when the plan has no such shard.
        """
        pipe = self._pipeline()
        pipe.hget(keys_of(audit_id, stage)["plan"], shard_id)
        entry = self._reply(pipe)[0]
        if entry is None:
            raise StoreError(f"stage {stage} of audit {audit_id} has no shard {shard_id} in the ledger")
        return _planned(shard_id, entry)

    def entries_of(self, audit_id: str, stage: str, shard_ids: Iterable[str]) -> dict[str, PlannedShard]:
        """Several shards of a stage's plan by id, in one round trip; those that it does not have are left out."""
        ids = list(shard_ids)
        if not ids:
            return {}
        pipe = self._pipeline()
        pipe.hmget(keys_of(audit_id, stage)["plan"], ids)
        found = self._reply(pipe)[0]
        return {key: _planned(key, entry) for key, entry in zip(ids, found, strict=True) if entry is not None}

    def done(self, audit_id: str, stage: str) -> dict[str, str]:
        """Shard id → digest of its completions."""
        return self._hash(audit_id, stage, "done")

    def dead(self, audit_id: str, stage: str) -> dict[str, str]:
        """Shard id → why it was given up."""
        return self._hash(audit_id, stage, "dead")

    def graded(self, audit_id: str, stage: str) -> dict[str, tuple[str, str]]:
        """Digest of a shard → digests of the completions that were graded, and of their grades."""
        return _graded(self._hash(audit_id, stage, "graded"))

    def progress(self, audit_id: str, stage: str) -> Progress:
        """Counts of a stage's trials by where their shards are."""
        return self._run(scripts.PROGRESS, keys_of(audit_id, stage).__getitem__, scripts.ProgressArguments(stage))

    def progress_over(self, audit_id: str, stages: Iterable[str]) -> Progress:
        """The same of several stages together."""
        found = [self.progress(audit_id, stage) for stage in stages]
        return Progress(*map(sum, zip(*found, strict=True)))

    def spent(self, audit_id: str) -> Spent:
        """What the answers of an audit cost, over all its stages."""
        return sum(self.spent_by_stage(audit_id).values(), start=Spent())

    def spent_by_stage(self, audit_id: str) -> dict[str, Spent]:
        """What the answers of each stage cost; without the stages that have none yet."""
        pipe = self._pipeline()
        pipe.hgetall(audit_key(audit_id, "spent"))
        spent: dict[str, Spent] = {}
        for field, value in self._reply(pipe)[0].items():
            stage, _, unit = field.rpartition(" ")
            spent[stage] = spent.get(stage, Spent())._replace(**{unit: int(value)})
        # Shards without trials ask nobody.
        return {stage: one for stage, one in spent.items() if any(one)}

    def _hash(self, audit_id: str, stage: str, name: StageKey) -> dict[str, str]:
        pipe: Pipeline = self._pipeline()
        pipe.hgetall(keys_of(audit_id, stage)[name])
        return dict(self._reply(pipe)[0])


def _lost(planned: int, sizes: Mapping[str, int], spent: str | None) -> tuple[str, ...]:
    """Names of the keys of which one must be gone: what is planned is in exactly one of the sized ones."""
    if sum(sizes.values()) < planned:
        return tuple(name for name, size in sizes.items() if size == 0) or tuple(sizes)
    return ("spent",) if spent is None and sizes["done"] > 0 else ()


def _in_order(plan: Mapping[str, str]) -> tuple[PlannedShard, ...]:
    planned = (_planned(shard_id, entry) for shard_id, entry in plan.items())
    return tuple(sorted(planned, key=lambda shard: (shard.position, shard.shard_id)))


def _graded(found: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {shard: (pair[0], pair[1]) for shard, value in found.items() if (pair := value.split(" ", 1))}


def _planned(shard_id: str, entry: str) -> PlannedShard:
    position, n_trials, digest = entry.split(" ", 2)
    return PlannedShard(shard_id, int(n_trials), digest, int(position))
