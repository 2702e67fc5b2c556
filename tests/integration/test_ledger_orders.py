"""Whatever order a stage's steps come in, no trial is lost and none is counted twice."""

from __future__ import annotations

import uuid

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from proctor.router.ledger.store import MAX_FAILURES, Ledger, PlannedShard, Setback

STAGE = "answer"
PARTS = 3
TRIALS_A_PART = 6


class AnyOrder(RuleBasedStateMachine):
    """Routers and workers that do everything a ledger allows, late, twice, or with what is out of date."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.ledger = ledger
        self.audit = uuid.uuid4().hex
        self.laid = 0
        self.trials: dict[str, range] = {}
        """Of every shard that there ever was."""
        self.attempts: list[tuple[str, int]] = []
        """Every lease that there ever was."""
        self.recorded = 0
        self.ended = 0

    def teardown(self) -> None:
        for part in range(self.laid, PARTS):
            self.lay_down(part, 2)
        self.end()
        self.ledger.forget(self.audit)

    def end(self) -> None:
        """Lease and answer all that is left, until the stage is complete; then count the trials."""
        while queued := self.ledger.next_up(self.audit, STAGE, 5):
            for leased in self.ledger.lease(self.audit, STAGE, queued):
                self.count(self.ledger.record(self.audit, STAGE, leased.shard_id, "sha256:r"), leased.n_trials)
        for shard_id in self.ledger.leases(self.audit, STAGE):
            self.count(self.ledger.record(self.audit, STAGE, shard_id, "sha256:r"), len(self.trials[shard_id]))
        assert self.ledger.is_complete(self.audit, STAGE)
        settled = {**self.ledger.done(self.audit, STAGE), **self.ledger.dead(self.audit, STAGE)}
        counted = sorted(trial for shard_id in settled for trial in self.trials[shard_id])
        assert counted == list(range(PARTS * TRIALS_A_PART))

    def shards_of(self, trials: range, size: int) -> list[PlannedShard]:
        cut = [trials[start : start + size] for start in range(0, len(trials), size)]
        shards = [PlannedShard(f"{one.start}-{one.stop}", len(one), f"sha256:{one}", one.start) for one in cut]
        self.trials.update((shard.shard_id, one) for shard, one in zip(shards, cut, strict=True))
        return shards

    def lay_down(self, part: int, size: int) -> bool:
        shards = self.shards_of(range(part * TRIALS_A_PART, (part + 1) * TRIALS_A_PART), size)
        return self.ledger.plan(self.audit, STAGE, shards, part=part, parts=PARTS)

    def is_current(self, shard: str, attempt: int) -> bool:
        """Whether a shard is leased, in that attempt."""
        latest = max(number for name, number in self.attempts if name == shard)
        return attempt == latest and shard in self.ledger.leases(self.audit, STAGE)

    def count(self, outcome: str, n_trials: int = 0) -> None:
        self.recorded += n_trials if outcome in ("recorded", "complete") else 0
        self.ended += outcome == "complete"

    @precondition(lambda self: self.laid < PARTS)
    @rule(size=st.integers(1, TRIALS_A_PART))
    def lay_down_the_next_part(self, size: int) -> None:
        assert self.lay_down(self.laid, size)
        self.laid += 1

    @precondition(lambda self: self.laid > 0)
    @rule(data=st.data(), size=st.integers(1, TRIALS_A_PART))
    def lay_down_a_part_again(self, data: st.DataObject, size: int) -> None:
        assert not self.lay_down(data.draw(st.integers(0, self.laid - 1)), size)

    @rule(n=st.integers(1, 4))
    def lease(self, n: int) -> None:
        leased = self.ledger.lease(self.audit, STAGE, self.ledger.next_up(self.audit, STAGE, n))
        self.attempts += [(shard.shard_id, shard.attempt) for shard in leased]
        assert all(shard.failures < MAX_FAILURES for shard in leased)

    @precondition(lambda self: self.trials)
    @rule(data=st.data())
    def answer_any(self, data: st.DataObject) -> None:
        shards = data.draw(st.lists(st.sampled_from(sorted(self.trials)), min_size=1, max_size=3))
        outcomes = self.ledger.record_all(self.audit, STAGE, [(shard, "sha256:r", 1, 1) for shard in shards])
        for shard, outcome in zip(shards, outcomes, strict=True):
            self.count(outcome, len(self.trials[shard]))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), setback=st.sampled_from(Setback))
    def set_back_any_attempt(self, data: st.DataObject, setback: Setback) -> None:
        shard, attempt = data.draw(st.sampled_from(self.attempts))
        current = self.is_current(shard, attempt)
        outcome = self.ledger.fail(self.audit, STAGE, shard, attempt, setback=setback, cause="c")
        assert (outcome == "stale") == (not current)
        self.count(outcome)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def hand_back_any_attempts(self, data: st.DataObject) -> None:
        attempts = data.draw(st.lists(st.sampled_from(self.attempts), max_size=3, unique=True))
        current = sum(self.is_current(*attempt) for attempt in attempts)
        assert self.ledger.hand_back(self.audit, STAGE, attempts) == current

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def split_any_attempt(self, data: st.DataObject) -> None:
        shard, attempt = data.draw(st.sampled_from(self.attempts))
        trials = self.trials[shard]
        if len(trials) > 1:
            children = self.shards_of(trials, data.draw(st.integers(1, len(trials) - 1)))
            current = self.is_current(shard, attempt)
            assert self.ledger.split(self.audit, STAGE, shard, attempt, children) == current

    @rule()
    def restart(self) -> None:
        self.ledger.restart(self.audit, STAGE)
        self.ended = 0

    @invariant()
    def what_is_planned_is_in_one_place(self) -> None:
        standing = self.ledger.standing(self.audit, STAGE, 99)
        assert standing.parts.laid == self.laid
        plan = self.ledger.entries(self.audit, STAGE)
        covered = [trial for shard in plan for trial in self.trials[shard.shard_id]]
        assert covered == list(range(self.laid * TRIALS_A_PART))
        done, dead = self.ledger.done(self.audit, STAGE), self.ledger.dead(self.audit, STAGE)
        places = [*standing.next_up, *self.ledger.leases(self.audit, STAGE), *done, *dead]
        assert sorted(places) == sorted(shard.shard_id for shard in plan)
        assert standing.complete == (self.laid == PARTS and len(done) + len(dead) == len(plan))
        assert self.ended <= int(standing.complete)

    @invariant()
    def progress_is_what_the_shards_say(self) -> None:
        places = (
            self.ledger.done(self.audit, STAGE),
            self.ledger.leases(self.audit, STAGE),
            self.ledger.dead(self.audit, STAGE),
        )
        counted = [sum(len(self.trials[shard]) for shard in shards) for shards in places]
        assert self.ledger.progress(self.audit, STAGE) == (self.laid * TRIALS_A_PART, *counted)

    @invariant()
    def what_was_spent_is_what_was_recorded(self) -> None:
        done = self.ledger.done(self.audit, STAGE)
        spent = self.ledger.spent(self.audit)
        assert spent.trials == self.recorded == sum(len(self.trials[shard]) for shard in done)


def test_no_trial_is_lost_or_counted_twice_in_any_order_of_steps(valkey_url: str) -> None:
    ledger = Ledger(f"{valkey_url}/1")

    class Here(AnyOrder):
        def __init__(self) -> None:
            super().__init__(ledger)

    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
    ledger.close()
