"""The ledger: which shards of an audit's stages are planned, queued, leased, done or dead.

One audit's keys share the hash tag `{audit_id}`, so they live in one slot of a Redis Cluster. An audit has its list of
stages, and each stage its own plan and its own end. A stage is planned in *parts*, one after another:

| key | type | holds |
|---|---|---|
| `proctor:{audit}:stages` | set | names of the stages that were planned |
| `proctor:{audit}:asked` | string | the step whose request was sent last, for as long as its answer may take |
| `proctor:{audit}:spent` | hash | "stage unit" → trials, input_tokens, output_tokens of what was recorded |
| `proctor:{audit}:<stage>:parts` | hash | `laid` parts `of` so many; trials `planned` in them, and `trials` in all |
| `proctor:{audit}:<stage>:plan` | hash | shard id → "position trials digest" |
| `proctor:{audit}:<stage>:queue` | sorted set | shards to run, by position |
| `proctor:{audit}:<stage>:leases` | sorted set | shards under way, by the end of their lease (server's ms) |
| `proctor:{audit}:<stage>:attempts` | hash | shard id → attempts begun |
| `proctor:{audit}:<stage>:failures` | hash | shard id → attempts that failed |
| `proctor:{audit}:<stage>:losses` | hash | shard id → attempts that were lost |
| `proctor:{audit}:<stage>:done` | hash | shard id → digest of its completions |
| `proctor:{audit}:<stage>:dead` | hash | shard id → why it was given up |
| `proctor:{audit}:<stage>:refused` | hash | id of an answered shard → trials of it that ended with an error for good |
| `proctor:{audit}:<stage>:graded` | hash | digest of a shard → "completions grades", digests both |
| `proctor:{audit}:<stage>:fired` | string | set once, when every shard of all parts is done or dead |

What is planned is in exactly one of queue, leases, done and dead. Every key belongs to the router and expires. State
changes are Lua scripts beside this module, so that each is one atomic step: the guarantee that a shard counts once is
here, not in the broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import starmap
from typing import Literal

from proctor.domain.errors import StoreError
from proctor.router.ledger import scripts
from proctor.router.ledger.keys import audit_key, keys_of
from proctor.router.ledger.reading import LedgerReading
from proctor.router.ledger.scripts import AUDIT_KEYS, STAGE_KEYS
from proctor.router.ledger.types import (
    MAX_FAILURES,
    MAX_LOSSES,
    SPLIT_AFTER_LOSSES,
    Answer,
    Failed,
    LeasedShard,
    Parts,
    PlannedShard,
    Progress,
    Recorded,
    Setback,
    Spent,
    Standing,
)
from proctor.runtime.redis.script import ShardId
from proctor.runtime.redis.scripted import KEY_TTL, KEY_TTL_S, milliseconds
from proctor.runtime.timing import DEFAULT_TIMING

__all__ = [
    "KEY_TTL",
    "MAX_FAILURES",
    "MAX_LOSSES",
    "MAX_SHARD_TOKENS",
    "SPLIT_AFTER_LOSSES",
    "Answer",
    "Failed",
    "LeasedShard",
    "Ledger",
    "Parts",
    "PlannedShard",
    "Progress",
    "Recorded",
    "Setback",
    "Spent",
    "Standing",
]

#: Characters of a cause that are kept.
_MAX_CAUSE = 2000
#: Tokens of a shard that are counted, of prompts or of answers: eight million a trial of a full shard, more than any
#: model reads or writes. Four million shards of so many are counted exactly, and no audit comes near that.
MAX_SHARD_TOKENS = 1 << 31


class Ledger(LedgerReading):
    """The ledger behind a Redis URL. Raises StoreError when the server cannot be reached."""

    def plan(
        self,
        audit_id: str,
        stage: str,
        shards: Sequence[PlannedShard],
        *,
        part: int = 0,
        parts: int = 1,
        total_trials: int | None = None,
    ) -> bool:
        """Lay down a part of a stage; False when it was there already.

        The first plan of a part stands, whatever shards a second one has: how large shards are depends on how quick
        the model was when they were planned. What was done or given up before is not queued again.

        Args:
            shards: of the part; there may be none.
            part: which; they come in order, from 0.
            parts: that the stage has.
            total_trials: of the whole stage, where that is known.

        Raises:
            StoreError: when the stage was planned with another number of parts, or an earlier part is missing.
        """
        total: int | Literal[""] = "" if total_trials is None else total_trials
        arguments = scripts.PlanArguments(KEY_TTL_S, stage, part, parts, total)
        answer = self._run(scripts.PLAN, keys_of(audit_id, stage).__getitem__, arguments, map(_entry, shards))
        if answer == -1:
            raise StoreError(f"stage {stage} of audit {audit_id} is in the ledger with another number of parts")
        if answer == -2:
            raise StoreError(f"stage {stage} of audit {audit_id}: part {part} was planned before an earlier one")
        return bool(answer)

    def note_asked(self, audit_id: str, step: str, *, answer_time: timedelta = DEFAULT_TIMING.answer_time) -> None:
        """Note that the request of a step was sent, until its answer is overdue. One step of an audit at a time."""
        pipe = self._pipeline()
        pipe.set(audit_key(audit_id, "asked"), step, px=milliseconds(answer_time))
        self._reply(pipe)

    def take_turn(self, what: str, every: timedelta) -> bool:
        """Whether it is the caller's turn to do what one process of the deployment does now and then."""
        pipe = self._pipeline()
        pipe.set(f"proctor:turn:{what}", "taken", nx=True, px=milliseconds(every))
        return bool(self._reply(pipe)[0])

    def give_turn_back(self, what: str) -> None:
        """Let anybody do at once what the caller did not end."""
        pipe = self._pipeline()
        pipe.delete(f"proctor:turn:{what}")
        self._reply(pipe)

    def lease(
        self, audit_id: str, stage: str, shard_ids: Iterable[str], *, lease: timedelta = DEFAULT_TIMING.lease
    ) -> list[LeasedShard]:
        """Lease those of the shards that are still queued, in the order given."""
        arguments = scripts.LeaseArguments(KEY_TTL_S, milliseconds(lease))
        return self._run(scripts.LEASE, keys_of(audit_id, stage).__getitem__, arguments, map(ShardId, shard_ids))

    def record(
        self,
        audit_id: str,
        stage: str,
        shard_id: str,
        completions: str,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> Recorded:
        """Record a shard's completions by digest: see `record_all`."""
        return self.record_all(audit_id, stage, [Answer(shard_id, completions, input_tokens, output_tokens)])[0]

    def record_all(
        self, audit_id: str, stage: str, answers: Iterable[Answer | tuple[str, str, int, int]]
    ) -> list[Recorded]:
        """Record the completions of several shards, and what they cost, in one step.

        Returns:
            In the order of the answers: 'recorded'; 'complete' (once, for the answer that ends the stage: all parts are
            laid down and nothing is left of them); 'duplicate' of what was recorded or given up before; or 'unknown'
            where the plan has no such shard, e.g. because it was split meanwhile. Only the first two count.
        """
        arguments = scripts.RecordArguments(KEY_TTL_S, stage)
        return self._run(scripts.RECORD, keys_of(audit_id, stage).__getitem__, arguments, map(_counted, answers))

    def fail(self, audit_id: str, stage: str, shard_id: str, attempt: int, *, setback: Setback, cause: str) -> Failed:
        """An attempt came to nothing: 'queued' again, 'dead', 'complete' (once), or 'stale' when it no longer matters.

        What is lost stays queued where it has several trials: from SPLIT_AFTER_LOSSES on it is to be split.
        """
        arguments = scripts.FailArguments(
            KEY_TTL_S, shard_id, attempt, setback, MAX_FAILURES, MAX_LOSSES, cause[:_MAX_CAUSE]
        )
        return self._run(scripts.FAIL, keys_of(audit_id, stage).__getitem__, arguments)

    def split(self, audit_id: str, stage: str, shard_id: str, attempt: int, children: Sequence[PlannedShard]) -> bool:
        """Put smaller shards in the place of one that is leased; False when it is not leased in that attempt any more.

        The children carry all of its trials. Each begins with one loss, so that one more splits it again, and is
        queued unless it is done already.
        """
        arguments = scripts.SplitArguments(KEY_TTL_S, shard_id, attempt, SPLIT_AFTER_LOSSES - 1)
        return self._run(scripts.SPLIT, keys_of(audit_id, stage).__getitem__, arguments, map(_entry, children))

    def hand_back(self, audit_id: str, stage: str, leased: Iterable[tuple[str, int]]) -> int:
        """Queue again what was leased, as (shard id, attempt), and could not be sent. Not counted; returns how many."""
        rows = starmap(scripts.Attempt, leased)
        return self._run(
            scripts.HAND_BACK, keys_of(audit_id, stage).__getitem__, scripts.HandBackArguments(KEY_TTL_S), rows
        )

    def restart(self, audit_id: str, stage: str, *, ask_refused: bool = False) -> int:
        """Queue everything of a stage that is not answered, its setbacks forgotten; returns how many shards that is.

        One stage, and not all of an audit's: what a stage that has ended lost is part of what the next was made from.
        Attempts are counted on, so that what comes of those before the restart is stale. Where what was spent was lost,
        the trials that are answered are counted again, without their tokens.

        Args:
            ask_refused: whether shards of which trials were refused are asked again, too. A trial counts once all the
                same; tokens that their answers used stay spent.
        """
        arguments = scripts.RestartArguments(KEY_TTL_S, stage, 1 if ask_refused else 0)
        return self._run(scripts.RESTART, keys_of(audit_id, stage).__getitem__, arguments)

    def note_graded(self, audit_id: str, stage: str, graded: Mapping[str, tuple[str, str]]) -> None:
        """Note grades: digest of a shard → digests of the completions that were graded, and of their grades."""
        if not graded:
            return
        key = keys_of(audit_id, stage)["graded"]
        pipe = self._pipeline()
        pipe.hset(key, mapping={shard: f"{completions} {grades}" for shard, (completions, grades) in graded.items()})
        pipe.expire(key, KEY_TTL_S)
        self._reply(pipe)

    def expire(self, audit_id: str, after: timedelta) -> None:
        """Let all keys of an audit that has ended live no longer than that."""
        pipe = self._pipeline()
        for key in self._all_keys(audit_id):
            pipe.pexpire(key, milliseconds(after), lt=True)
        self._reply(pipe)

    def forget(self, audit_id: str) -> None:
        """Drop an audit's keys, of all its stages; its report and records hold everything that stays."""
        pipe = self._pipeline()
        pipe.delete(*self._all_keys(audit_id))
        self._reply(pipe)

    def _all_keys(self, audit_id: str) -> list[str]:
        of_stages = [keys_of(audit_id, stage)[name] for stage in self.stages(audit_id) for name in STAGE_KEYS]
        return [audit_key(audit_id, name) for name in AUDIT_KEYS] + of_stages


def _counted(answer: Answer | tuple[str, str, int, int]) -> Answer:
    """An answer whose counts are counts. What an endpoint reports of its tokens is what it likes."""
    shard_id, completions, *counts = answer
    return Answer(shard_id, completions, *(min(max(count, 0), MAX_SHARD_TOKENS) for count in counts))


def _entry(shard: PlannedShard) -> scripts.Entry:
    return scripts.Entry(shard.shard_id, f"{shard.position} {shard.n_trials} {shard.digest}")
