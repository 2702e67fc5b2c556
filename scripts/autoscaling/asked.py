"""The router's side: stages under way, what of them is planned, queued, outstanding and done.

How large shards are, how many travel together and how many may be outstanding is asked of the product's own functions
(`proctor.router.pools.packs` and `.sharing`), and so is how far ahead is planned. One pool; audits take turns.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from autoscaling.traces import AskedAudit, AskedStage
from proctor.domain.manifest import CHUNK_ITEMS
from proctor.router.handing_out import WINDOWS_QUEUED
from proctor.router.pools import packs, sharing

#: Weight of the newest pack in the pace, as the router's pools weigh it.
_NEWEST: Final = 0.2


@dataclass(eq=False)
class Stage:
    """A stage under way: counts of its shards."""

    audit: AskedAudit
    number: int
    """Of the stage in its audit; -1 is the probe of the endpoint, one small message."""
    since_s: float
    trial_tokens: float
    shard_tokens: float
    trials: int
    """Of a shard."""
    total: int
    part: int
    planned: int = 0
    begun: int = 0
    """Handed out, and not handed back."""
    done: int = 0

    @property
    def queued(self) -> int:
        """Planned, and outstanding to nobody."""
        return self.planned - self.begun

    @property
    def left(self) -> int:
        """Not handed out, planned or not."""
        return self.total - self.begun


@dataclass(frozen=True)
class Pack:
    """A message: shards of a stage that a slot has at once."""

    stage: Stage
    shards: int

    @property
    def tokens(self) -> float:
        """What the model has to write for it."""
        return self.shards * self.stage.shard_tokens


@dataclass
class Asked:
    """Everything that a pool is asked."""

    under_way: deque[Stage] = field(default_factory=deque)
    """Stages with shards that are not handed out; who was served stands last."""
    messages: deque[Pack] = field(default_factory=deque)
    """The broker's list."""
    in_hand: int = 0
    """Packs that slots have."""
    work: int = 0
    """Shards planned and not done: the gauge."""
    unplanned: int = 0
    pace_s: float | None = None
    """Seconds a trial that slots were seen to take: what the size of shards and packs follows."""

    def probe(self, audit: AskedAudit, now_s: float) -> None:
        """An audit waits for a probe of its endpoint."""
        self._begin(Stage(audit, -1, now_s, trial_tokens=1.0, shard_tokens=1.0, trials=1, total=1, part=1))

    def stage(self, audit: AskedAudit, number: int, now_s: float) -> None:
        """A stage begins."""
        asked: AskedStage = audit.stages[number]
        trials = packs.shard_trials(self.pace_s)
        self._begin(
            Stage(
                audit,
                number,
                now_s,
                trial_tokens=asked.output_tokens,
                shard_tokens=asked.output_tokens * min(trials, asked.trials),
                trials=trials,
                total=math.ceil(asked.trials / trials),
                part=math.ceil(CHUNK_ITEMS * asked.trials_an_item / trials),
            )
        )

    def _begin(self, stage: Stage) -> None:
        self.under_way.append(stage)
        self.unplanned += stage.total
        self._plan(stage, stage.part)

    def _plan(self, stage: Stage, shards: int) -> None:
        more = min(shards, stage.total - stage.planned)
        stage.planned += more
        self.work += more
        self.unplanned -= more

    def hand_out(self, slots: int) -> None:
        """Send what there is room for, as many live slots as there are."""
        while self.under_way:
            stage = self.under_way[0]
            together = packs.shards_together(self.pace_s, stage.trials)
            quick = packs.is_quick(self.pace_s, stage.trials, together)
            n_packs = sharing.outstanding(slots, "", {}, quick=quick)
            # Planned ahead until the queue holds so many windows.
            while stage.planned < stage.total and stage.queued < WINDOWS_QUEUED * n_packs * together:
                self._plan(stage, stage.part)
            if self.in_hand + len(self.messages) >= n_packs:
                return
            shards = min(together, stage.queued)
            stage.begun += shards
            self.messages.append(Pack(stage, shards))
            self.under_way.popleft()
            if stage.left:
                self.under_way.append(stage)

    def take(self) -> Pack | None:
        """A slot takes a message."""
        if not self.messages:
            return None
        self.in_hand += 1
        return self.messages.popleft()

    def answer(self, pack: Pack, took_s: float) -> bool:
        """A pack is done after so long; returns whether its stage is."""
        self.in_hand -= 1
        if pack.stage.number >= 0:
            seen_s = took_s / (pack.shards * pack.stage.trials)
            self.pace_s = seen_s if self.pace_s is None else self.pace_s + _NEWEST * (seen_s - self.pace_s)
        self.work -= pack.shards
        pack.stage.done += pack.shards
        return pack.stage.done == pack.stage.total

    def hand_back(self, pack: Pack) -> None:
        """A worker leaves before a pack is done: its shards are queued again, before all others."""
        self.in_hand -= 1
        stage = pack.stage
        was_out = stage.left == 0
        stage.begun -= pack.shards
        if was_out:
            self.under_way.appendleft(stage)

    def oldest_s(self, now_s: float) -> float:
        """Age of the oldest shard that no slot has begun."""
        ages = [now_s - stage.since_s for stage in self.under_way]
        ages += [now_s - pack.stage.since_s for pack in self.messages]
        return max(ages, default=0.0)

    @property
    def every_queued(self) -> int:
        """Shards that no slot has: what a list would hold if all were published at once."""
        return sum(stage.left for stage in self.under_way) + sum(pack.shards for pack in self.messages)
