"""The pools' promises, against a real Valkey: never too many shards outstanding, shared fairly, and an outage known."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from proctor.domain.errors import StoreError
from proctor.router.pools.store import Claim, Outage, Pools
from tests.support import wait_until

STAGE = "answer"
LEASE = timedelta(minutes=15)


@pytest.fixture
def pools(valkey_url: str) -> Iterator[Pools]:
    pools = Pools(f"{valkey_url}/3")
    yield pools
    pools.close()


@pytest.fixture
def pool() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def end_the_wait(valkey_url: str, pool: str) -> Iterator[Callable[[], float]]:
    """Let the wait of the pool's breaker be over; returns how many seconds were left of it."""
    with redis.Redis.from_url(f"{valkey_url}/3", decode_responses=True) as client:

        def end() -> float:
            key = f"proctor:pool:{{{pool}}}:breaker"
            seconds, microseconds = client.time()
            left: float = int(client.hget(key, "until")) / 1000 - seconds - microseconds / 1e6
            client.hset(key, "until", 0)
            return left

        yield end


def shards(n: int, first: int = 0) -> list[str]:
    return [f"s{i}" for i in range(first, first + n)]


def claim(
    pools: Pools, pool: str, audit: str, ids: list[str], *, wanted: int = 0, capacity: int = 4, priority: int = 1
) -> Claim:
    return pools.claim(pool, audit, STAGE, ids, wanted=wanted, capacity=capacity, priority=priority, lease=LEASE)


def test_no_more_shards_are_granted_than_the_pool_has_credits(pools: Pools, pool: str) -> None:
    assert claim(pools, pool, "a", shards(9)) == Claim(("s0", "s1", "s2", "s3"), False, ())
    assert claim(pools, pool, "a", shards(9, 4)).granted == ()
    pools.release(pool, "a", STAGE, ["s1", "s3", "never-held"])
    assert claim(pools, pool, "a", shards(9, 4)).granted == ("s4", "s5")
    assert set(pools.held(pool, "a")) == {"answer/s0", "answer/s2", "answer/s4", "answer/s5"}


def test_a_pool_without_capacity_grants_nothing(pools: Pools, pool: str) -> None:
    assert claim(pools, pool, "a", shards(2), capacity=0).granted == ()


def test_a_shard_that_holds_a_credit_is_granted_again_and_takes_no_second_one(pools: Pools, pool: str) -> None:
    claim(pools, pool, "a", shards(3))
    assert claim(pools, pool, "a", shards(9)).granted == ("s0", "s1", "s2", "s3")
    assert claim(pools, pool, "a", shards(9), capacity=2).granted == ("s0", "s1", "s2", "s3")


def test_a_credit_ends_with_its_lease(pools: Pools, pool: str) -> None:
    pools.claim(pool, "a", STAGE, ["s0"], wanted=1, capacity=1, priority=1, lease=timedelta(milliseconds=30))
    wait_until(lambda: claim(pools, pool, "b", ["s0"], capacity=1).granted == ("s0",), what="the credit's end")
    assert pools.held(pool, "a") == {}


def test_an_audit_that_comes_later_gets_its_half_as_credits_come_back(pools: Pools, pool: str) -> None:
    claim(pools, pool, "a", shards(4), wanted=20)
    assert claim(pools, pool, "b", shards(4), wanted=20) == Claim((), False, ())
    for shard in ("s0", "s1"):
        pools.release(pool, "a", STAGE, [shard])
        assert claim(pools, pool, "a", shards(9, 4), wanted=20) == Claim((), False, ("b",))
        assert claim(pools, pool, "b", [shard], wanted=20).granted == (shard,)
    pools.release(pool, "a", STAGE, ["s2"])
    assert claim(pools, pool, "b", shards(9, 4), wanted=20) == Claim((), False, ("a",)), "b has its half"


def test_one_credit_goes_round(pools: Pools, pool: str) -> None:
    served = []
    for turn in range(6):
        for audit in ("a", "b", "c"):
            if claim(pools, pool, audit, [f"s{turn}"], wanted=9, capacity=1).granted:
                served.append(audit)
                pools.release(pool, audit, STAGE, [f"s{turn}"])
    assert served[:3] == ["a", "b", "c"]
    assert all(len(set(served[i : i + 3])) == 3 for i in range(0, len(served) - 2, 3))


def test_the_more_urgent_go_first_and_the_others_get_what_these_leave(pools: Pools, pool: str) -> None:
    claim(pools, pool, "urgent", [], wanted=3, priority=0)
    assert len(claim(pools, pool, "patient", shards(9), priority=1).granted) == 1
    assert claim(pools, pool, "patient", shards(9, 9), priority=1) == Claim((), False, ("urgent",))
    assert len(claim(pools, pool, "urgent", shards(3), priority=0).granted) == 3


def test_an_audit_that_leaves_holds_nothing_and_keeps_nobody_waiting(pools: Pools, pool: str) -> None:
    claim(pools, pool, "a", shards(4), wanted=20)
    claim(pools, pool, "b", [], wanted=20)
    pools.leave(pool, "a")
    assert pools.held(pool, "a") == {}
    assert claim(pools, pool, "a", [], wanted=0).waiting == ("b",)
    assert len(claim(pools, pool, "b", shards(9)).granted) == 4


def test_what_an_audit_wanted_is_forgotten_when_the_lease_time_is_over(pools: Pools, pool: str) -> None:
    pools.claim(pool, "gone", STAGE, [], wanted=9, capacity=4, priority=0, lease=timedelta(milliseconds=30))

    def all_for_b() -> bool:
        pools.leave(pool, "b")
        return len(claim(pools, pool, "b", shards(4)).granted) == 4

    wait_until(all_for_b, what="the end of the wish")


def test_only_credits_whose_shard_is_not_leased_are_swept_and_not_the_youngest(pools: Pools, pool: str) -> None:
    claim(pools, pool, "a", shards(3))
    claim(pools, pool, "b", ["s0"])
    assert pools.sweep(pool, "a", STAGE, ["s1"], older_than=timedelta(hours=1)) == 0
    assert pools.sweep(pool, "a", "paraphrase-1", [], older_than=timedelta(0)) == 0
    assert pools.sweep(pool, "a", STAGE, ["s1"], older_than=timedelta(0)) == 2
    assert set(pools.held(pool, "a")) == {"answer/s1"}
    assert set(pools.held(pool, "b")) == {"answer/s0"}
    assert all(0 <= age < 60 for age in pools.held(pool, "b").values())


def test_the_pace_is_an_exponentially_weighted_mean_of_seconds_a_trial(pools: Pools, pool: str) -> None:
    assert pools.pace(pool) is None
    pools.note_pace(pool, n_trials=0, seconds=5.0)
    pools.note_pace(pool, n_trials=10, seconds=0.0)
    pools.note_pace(pool, n_trials=10, seconds=math.nan)
    assert pools.pace(pool) is None
    pace = None
    for n_trials, seconds in ((64, 6.4), (32, 1.6), (256, 2.56), (1, 9.0)):
        pools.note_pace(pool, n_trials=n_trials, seconds=seconds, output_tokens=100 * n_trials)
        pace = seconds / n_trials if pace is None else pace + 0.2 * (seconds / n_trials - pace)
        assert pools.pace(pool) == pytest.approx(pace, rel=1e-6)
    assert pools.output_tokens_per_trial(pool) == pytest.approx(100)


def test_while_the_servers_are_away_one_shard_probes_after_each_wait(
    pools: Pools, pool: str, end_the_wait: Callable[[], float]
) -> None:
    assert pools.away_for(pool) is None
    assert pools.unreachable(pool, "a", STAGE, "s0") == Outage(counts=True, since_s=0.0)
    away_for_s = pools.away_for(pool)
    assert away_for_s is not None
    assert away_for_s >= 0.0
    assert claim(pools, pool, "a", shards(3)) == Claim((), False, ())
    end_the_wait()
    assert claim(pools, pool, "a", shards(3, 1)) == Claim(("s1",), True, ())
    assert claim(pools, pool, "b", shards(3)) == Claim((), False, ()), "one probes at a time"
    assert claim(pools, pool, "a", shards(3)) == Claim(("s1",), True, ()), "its first grant may be lost"
    assert not pools.unreachable(pool, "a", STAGE, "s1").counts
    assert claim(pools, pool, "a", shards(3)) == Claim((), False, ())


def test_the_wait_doubles_with_every_probe_in_vain_and_with_nothing_else(
    pools: Pools, pool: str, end_the_wait: Callable[[], float]
) -> None:
    pools.unreachable(pool, "a", STAGE, "s0")
    waits = []
    for attempt in range(7):
        assert pools.unreachable(pool, "a", STAGE, "was under way").counts
        waits.append(end_the_wait())
        assert claim(pools, pool, "a", [f"s{attempt}"]).probing
        pools.unreachable(pool, "a", STAGE, f"s{attempt}")
        pools.release(pool, "a", STAGE, [f"s{attempt}"])
    assert waits == pytest.approx([1, 2, 4, 8, 16, 30, 30], abs=0.5)
    pools.settle(pool, "", "", (), worked=True)
    pools.unreachable(pool, "a", STAGE, "s0", jitter=1.0)
    assert end_the_wait() == pytest.approx(1.2, abs=0.15)


def test_a_shard_that_got_no_answer_probes_only_where_there_is_no_other(
    pools: Pools, pool: str, end_the_wait: Callable[[], float]
) -> None:
    for shard in ("s0", "s1"):
        pools.unreachable(pool, "a", STAGE, shard)
    end_the_wait()
    assert claim(pools, pool, "a", shards(9)) == Claim(("s2",), True, ())
    pools.settle(pool, "a", STAGE, ["s2"], worked=True)
    pools.unreachable(pool, "a", STAGE, "s1")
    end_the_wait()
    assert claim(pools, pool, "a", ["s1", "s0"]) == Claim(("s0",), True, ()), "a new outage has its own suspects"
    pools.unreachable(pool, "a", STAGE, "s0")
    pools.release(pool, "a", STAGE, ["s0"])
    end_the_wait()
    assert claim(pools, pool, "a", ["s1", "s0"]) == Claim(("s1",), True, ())


def test_when_the_wait_of_a_probe_is_over_another_probes_and_neither_counts(
    pools: Pools, pool: str, end_the_wait: Callable[[], float]
) -> None:
    pools.unreachable(pool, "a", STAGE, "s0")
    for shard in ("s1", "s2"):
        end_the_wait()
        assert claim(pools, pool, "a", [shard]) == Claim((shard,), True, ())
    assert not pools.unreachable(pool, "a", STAGE, "s1").counts
    assert not pools.unreachable(pool, "a", STAGE, "s2").counts


def test_a_probe_that_is_given_back_without_a_word_lets_another_probe_at_once(
    pools: Pools, pool: str, end_the_wait: Callable[[], float]
) -> None:
    pools.unreachable(pool, "a", STAGE, "s0")
    end_the_wait()
    assert claim(pools, pool, "a", ["s0"]).probing
    pools.release(pool, "a", STAGE, ["s0"])
    assert claim(pools, pool, "b", ["s9"]) == Claim(("s9",), True, ())


def test_a_server_that_says_it_is_ready_is_probed_at_once_and_is_away_until_it_answers(
    pools: Pools, pool: str, valkey_url: str
) -> None:
    pools.ready(pool)
    assert pools.away_for(pool) is None
    for shard in ("s0", "s1"):
        pools.unreachable(pool, "a", STAGE, shard)
    with redis.Redis.from_url(f"{valkey_url}/3") as client:
        client.hset(f"proctor:pool:{{{pool}}}:breaker", mapping={"since": 0, "wait": 30_000})
    assert claim(pools, pool, "a", shards(9)).granted == ()
    pools.ready(pool)
    assert claim(pools, pool, "a", shards(9)) == Claim(("s2",), True, ()), "one, and no suspect"
    assert claim(pools, pool, "b", shards(9)).granted == (), "it is not taken at its word"
    outage = pools.unreachable(pool, "a", STAGE, "s2")
    assert not outage.counts
    assert outage.since_s < 60, "whoever starts an audit again has patience anew"
    assert claim(pools, pool, "b", shards(9)).granted == ()


def test_an_answer_ends_the_outage(pools: Pools, pool: str, end_the_wait: Callable[[], float]) -> None:
    pools.unreachable(pool, "a", STAGE, "s0")
    end_the_wait()
    claim(pools, pool, "a", ["s0"])
    pools.settle(pool, "a", STAGE, ["s0"], worked=True, n_trials=8, seconds=2.0)
    assert pools.away_for(pool) is None
    assert pools.pace(pool) == pytest.approx(0.25)
    assert claim(pools, pool, "a", shards(9)) == Claim(("s0", "s1", "s2", "s3"), False, ())
    assert pools.unreachable(pool, "a", STAGE, "s0").counts, "what probed in the last outage does not probe in this one"


def test_a_full_pool_is_not_probed_on_top(pools: Pools, pool: str, end_the_wait: Callable[[], float]) -> None:
    claim(pools, pool, "a", shards(4))
    pools.unreachable(pool, "a", STAGE, "s0")
    end_the_wait()
    assert claim(pools, pool, "a", shards(4, 4)).granted == ()
    pools.release(pool, "a", STAGE, ["s0"])
    assert claim(pools, pool, "a", shards(4, 4)) == Claim(("s4",), True, ())


def test_every_key_of_a_pool_expires_and_sits_in_its_slot(
    pools: Pools, pool: str, valkey_url: str, end_the_wait: Callable[[], float]
) -> None:
    claim(pools, pool, "a", shards(9), wanted=20)
    pools.release(pool, "a", STAGE, ["s0"])
    pools.note_pace(pool, n_trials=1, seconds=1.0)
    pools.unreachable(pool, "a", STAGE, "s0")
    end_the_wait()
    claim(pools, pool, "a", shards(9), wanted=20)
    with redis.Redis.from_url(f"{valkey_url}/3", decode_responses=True) as client:
        keys = list(client.scan_iter(f"*{pool}*"))
        names = {"credits", "claimed", "wants", "pace", "breaker", "probes", "suspects"}
        assert set(keys) == {f"proctor:pool:{{{pool}}}:{name}" for name in names}
        assert all(client.ttl(key) > 0 for key in keys)


def test_a_pool_that_is_not_there_is_one_clear_error() -> None:
    pools = Pools("redis://127.0.0.1:1/0")
    with pytest.raises(StoreError, match="the pools' store did not answer"):
        pools.pace("p")
    pools.close()


def fair_shares(audits: list[tuple[str, int, int, int]], capacity: int) -> dict[str, int]:
    """By definition, a credit at a time: the next goes to the most urgent that want more, of these to the one with the
    fewest, of these to the one that was served longest ago. Rows are (audit, priority, demand, last served)."""
    shares = {audit: 0 for audit, *_ in audits}
    for _ in range(max(capacity, 0)):
        thirsty = [
            (priority, shares[audit], served, audit)
            for audit, priority, demand, served in audits
            if shares[audit] < demand
        ]
        if thirsty:
            shares[min(thirsty)[-1]] += 1
    return shares


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    held=st.integers(0, 5),
    wishes=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=2, max_size=5),
    capacity=st.integers(0, 20),
    turn=st.integers(0, 4),
)
def test_each_gets_its_fair_share_of_what_those_leave_that_want_no_more(
    pools: Pools, held: int, wishes: list[tuple[int, int]], capacity: int, turn: int
) -> None:
    pool = uuid.uuid4().hex
    claim(pools, pool, "content", shards(held), wanted=held, capacity=20)
    for audit, (priority, wanted) in zip("abcde", wishes, strict=False):
        claim(pools, pool, audit, [], wanted=wanted, capacity=capacity, priority=priority)
    rows = [(audit, *wish, 0) for audit, wish in zip("abcde", wishes, strict=False)]
    audit, priority, wanted, _ = rows[turn % len(rows)]
    granted = claim(pools, pool, audit, shards(wanted), wanted=wanted, capacity=capacity, priority=priority).granted
    assert len(granted) == fair_shares(rows, capacity - held)[audit]


class Sharing(RuleBasedStateMachine):
    """Audits that claim and release in any order, beside a model that shares by definition."""

    AUDITS = st.sampled_from(("a", "b", "c", "d"))

    def __init__(self, pools: Pools) -> None:
        super().__init__()
        self.pools = pools
        self.pool = uuid.uuid4().hex
        self.held: dict[str, set[str]] = {audit: set() for audit in "abcd"}
        self.wishes: dict[str, tuple[int, int, int]] = {}
        """Audit → more, priority, last served."""
        self.turn = 0
        self.capacity = 0

    @property
    def total(self) -> int:
        return sum(map(len, self.held.values()))

    def shares(self, capacity: int) -> dict[str, int]:
        left = capacity - sum(len(held) for audit, held in self.held.items() if audit not in self.wishes)
        rows = [
            (audit, priority, len(self.held[audit]) + more, served)
            for audit, (more, priority, served) in self.wishes.items()
        ]
        return fair_shares(rows, left)

    @rule(
        audit=AUDITS, first=st.integers(0, 6), n=st.integers(0, 6), behind=st.integers(0, 9),
        capacity=st.integers(0, 12), priority=st.integers(0, 2),
    )  # fmt: skip
    def claim(self, audit: str, first: int, n: int, behind: int, capacity: int, priority: int) -> None:
        asked = shards(n, first)
        claim = self.pools.claim(
            self.pool, audit, STAGE, asked, wanted=n + behind, capacity=capacity, priority=priority, lease=LEASE
        )
        keeps = [shard for shard in asked if shard in self.held[audit]]
        more = n + behind - len(keeps)
        self.wishes[audit] = (more, priority, self.wishes.get(audit, (0, 0, 0))[2])
        room = min(self.shares(capacity)[audit] - len(self.held[audit]), capacity - self.total)
        fresh = [shard for shard in asked if shard not in self.held[audit]][: max(room, 0)]
        assert claim.granted == tuple(shard for shard in asked if shard in keeps or shard in fresh)
        shares, before = self.shares(capacity), {name: len(held) for name, held in self.held.items()}
        self.held[audit].update(fresh)
        assert not fresh or self.total <= capacity
        room_left = self.total < capacity
        waiting = {one for one in self.wishes if one != audit and room_left and shares[one] > before[one]}
        assert set(claim.waiting) == waiting
        if fresh:
            self.turn += 1
            self.wishes[audit] = (more - len(fresh), priority, self.turn)
        if self.wishes[audit][0] == 0:
            del self.wishes[audit]

    @rule(audit=AUDITS, first=st.integers(0, 6), n=st.integers(0, 6))
    def release(self, audit: str, first: int, n: int) -> None:
        self.pools.release(self.pool, audit, STAGE, shards(n, first))
        self.held[audit].difference_update(shards(n, first))

    @rule(audit=AUDITS)
    def leave(self, audit: str) -> None:
        self.pools.leave(self.pool, audit)
        self.held[audit].clear()
        self.wishes.pop(audit, None)

    @invariant()
    def everyone_holds_what_was_granted(self) -> None:
        for audit, held in self.held.items():
            assert set(self.pools.held(self.pool, audit)) == {f"{STAGE}/{shard}" for shard in held}


def test_credits_are_shared_by_the_definition_of_a_fair_share_in_any_order_of_claims(valkey_url: str) -> None:
    pools = Pools(f"{valkey_url}/3")

    class Here(Sharing):
        def __init__(self) -> None:
            super().__init__(pools)

    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
    pools.close()
