"""Reading the ledger: where a stage's shards are, and what came of them. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from redis.client import Pipeline

from proctor.domain.errors import StoreError
from proctor.router.ledger_types import Parts, PlannedShard, Progress, Spent, Standing
from proctor.router.scripted_redis import ScriptedRedis

STAGE_KEYS = (
    "parts", "plan", "queue", "leases", "attempts", "failures", "losses", "done", "dead", "graded", "fired",
)  # fmt: skip
AUDIT_KEYS = ("stages", "asked", "spent")


class LedgerReading(ScriptedRedis):
    """What can be asked of the ledger. The data model is described at `proctor.router.ledger`."""

    _NAME: ClassVar[str] = "ledger"
    _SCRIPTS: ClassVar[Mapping[str, str]] = {name: f"{name}.lua" for name in ("overdue", "progress")}

    def _audit_key(self, audit_id: str, name: str) -> str:
        return f"proctor:{{{audit_id}}}:{name}"

    def _key(self, audit_id: str, stage: str, name: str) -> str:
        return f"proctor:{{{audit_id}}}:{stage}:{name}"

    def _keys(self, audit_id: str, stage: str, names: Iterable[str]) -> list[str]:
        return [self._key(audit_id, stage, name) for name in names]

    def stages(self, audit_id: str) -> set[str]:
        """Names of the stages that were planned for an audit."""
        pipe = self._pipeline()
        pipe.smembers(self._audit_key(audit_id, "stages"))
        return set(self._reply(pipe)[0])

    def was_asked(self, audit_id: str, step: str) -> bool:
        """Whether the request of a step was sent, and its answer is not overdue."""
        pipe = self._pipeline()
        pipe.get(self._audit_key(audit_id, "asked"))
        return bool(self._reply(pipe)[0] == step)

    def parts(self, audit_id: str, stage: str) -> Parts:
        """How much of a stage is planned. None of it where its plan was lost."""
        return self.standing(audit_id, stage, 0).parts

    def is_planned(self, audit_id: str, stage: str) -> bool:
        """Whether a part of a stage is laid down."""
        return self.parts(audit_id, stage).laid > 0

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
        plan, queue, leases, done, dead = self._keys(audit_id, stage, ("plan", "queue", "leases", "done", "dead"))
        pipe.hmget(self._key(audit_id, stage, "parts"), "laid", "of", "planned")
        for key in (plan, done, dead):
            pipe.hlen(key)
        pipe.zcard(queue)
        pipe.zcard(leases)
        pipe.zrange(queue, 0, n - 1) if n > 0 else pipe.exists(queue)
        (laid, of, trials), planned, answered, given_up, queued, leased, first = self._reply(pipe)
        lost = int(trials or 0) > 0 and planned == 0
        parts = Parts(0, None) if laid is None or lost else Parts(int(laid), int(of))
        # Both: what is done may hold shards of a plan that was lost, and a queue may be lost alone.
        complete = parts.all_laid and queued == leased == 0 and answered + given_up >= planned
        return Standing(parts, complete, queued, tuple(first) if n > 0 else ())

    def leases(self, audit_id: str, stage: str) -> list[str]:
        """Ids of the shards under way, the one whose lease ends first at the front."""
        pipe = self._pipeline()
        pipe.zrange(self._key(audit_id, stage, "leases"), 0, -1)
        return list(self._reply(pipe)[0])

    def overdue(self, audit_id: str, stage: str) -> list[tuple[str, int]]:
        """Shards whose lease has run out, with the attempt that held it."""
        flat = self._run("overdue", self._keys(audit_id, stage, ("leases", "attempts")))
        return [(flat[i], int(flat[i + 1])) for i in range(0, len(flat), 2)]

    def entries(self, audit_id: str, stage: str) -> list[PlannedShard]:
        """What is laid down of a stage's plan, in order of position."""
        planned = [_planned(shard_id, entry) for shard_id, entry in self._hash(audit_id, stage, "plan").items()]
        return sorted(planned, key=lambda shard: (shard.position, shard.shard_id))

    def entry(self, audit_id: str, stage: str, shard_id: str) -> PlannedShard:
        """One shard of a stage's plan.

        Raises:
            StoreError: when the plan has no such shard.
        """
        pipe = self._pipeline()
        pipe.hget(self._key(audit_id, stage, "plan"), shard_id)
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
        pipe.hmget(self._key(audit_id, stage, "plan"), ids)
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
        found = self._hash(audit_id, stage, "graded")
        return {shard: (pair[0], pair[1]) for shard, value in found.items() if (pair := value.split(" ", 1))}

    def progress(self, audit_id: str, stage: str) -> Progress:
        """Counts of a stage's trials by where their shards are."""
        keys = self._keys(audit_id, stage, ("parts", "plan", "leases", "dead"))
        return Progress(*self._run("progress", [self._audit_key(audit_id, "spent"), *keys], stage))

    def spent(self, audit_id: str) -> Spent:
        """What the answers of an audit cost, over all its stages."""
        return sum(self.spent_by_stage(audit_id).values(), start=Spent())

    def spent_by_stage(self, audit_id: str) -> dict[str, Spent]:
        """What the answers of each stage cost; without the stages that have none yet."""
        pipe = self._pipeline()
        pipe.hgetall(self._audit_key(audit_id, "spent"))
        spent: dict[str, Spent] = {}
        for field, value in self._reply(pipe)[0].items():
            stage, _, unit = field.rpartition(" ")
            spent[stage] = spent.get(stage, Spent())._replace(**{unit: int(value)})
        return spent

    def _hash(self, audit_id: str, stage: str, name: str) -> dict[str, str]:
        pipe: Pipeline = self._pipeline()
        pipe.hgetall(self._key(audit_id, stage, name))
        return dict(self._reply(pipe)[0])


def _planned(shard_id: str, entry: str) -> PlannedShard:
    position, n_trials, digest = entry.split(" ", 2)
    return PlannedShard(shard_id, int(n_trials), digest, int(position))
