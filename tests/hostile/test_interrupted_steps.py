"""Every step of the ledger, the pools and presence, stopped at each of its writes: it has written nothing.

A step is stopped in the ways in which Redis stops a script half-way: a command that the user may not run, a key that
holds something else, a count that overflows, no memory. What was stopped is then run again undisturbed, and comes to
the same as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
import redis

from proctor.domain.errors import StoreError
from proctor.router.ledger import scripts as ledger_scripts
from proctor.router.ledger.store import Answer, Ledger, PlannedShard, Setback
from proctor.router.pools import scripts as pool_scripts
from proctor.router.pools.store import Pools
from proctor.runtime.redis import scripts as redis_scripts
from proctor.runtime.redis.presence import Held, Presence
from proctor.runtime.redis.scripted import ScriptedRedis
from proctor.runtime.redis.tries import MAX_TRIES, Tries
from tests.support import valkey_server

AUDIT, STAGE, POOL = "a-1", "answer", "p"
SHARDS = [PlannedShard(f"s{n}", 2, f"sha256:{n}", n) for n in range(4)]
PART = [PlannedShard("t0", 2, "sha256:t", 99)]
WRITES = ("hset", "hsetnx", "hdel", "hincrby", "zadd", "zrem", "sadd", "srem", "set", "del", "expire", "pexpire")
#: Scores and values from here on are times.
A_TIME = 1e11
LONG = timedelta(hours=1)


class Stores(NamedTuple):
    """What the steps are taken on, by a user that may or may not do everything."""

    ledger: Ledger
    pools: Pools
    presence: Presence
    tries: Tries


class Step(NamedTuple):
    """A step, and what comes before it."""

    prepare: Callable[[Stores], object]
    take: Callable[[Stores], object]


def planned(stores: Stores) -> None:
    stores.ledger.plan(AUDIT, STAGE, SHARDS, part=0, parts=2, total_trials=10)


def leased(stores: Stores) -> None:
    planned(stores)
    stores.ledger.lease(AUDIT, STAGE, ["s0", "s1"], lease=LONG)


def lost_its_plan(stores: Stores) -> None:
    leased(stores)
    stores.ledger.record(AUDIT, STAGE, "s1", "sha256:r", input_tokens=3, output_tokens=1)
    stores.ledger._redis.delete(f"proctor:{{{AUDIT}}}:{STAGE}:plan")


def all_but_one_answered(stores: Stores) -> None:
    leased(stores)
    stores.ledger.plan(AUDIT, STAGE, [], part=1, parts=2)
    stores.ledger.record_all(AUDIT, STAGE, [(f"s{n}", "sha256:r", 3, 1) for n in (1, 2, 3)])


def refused(stores: Stores) -> None:
    all_but_one_answered(stores)
    stores.ledger.record_all(AUDIT, STAGE, [Answer("s0", "sha256:r", 3, 1, 2)])


def refused_and_lost(stores: Stores) -> None:
    leased(stores)
    stores.ledger.record_all(AUDIT, STAGE, [Answer("s1", "sha256:r", 3, 1, 2)])
    stores.ledger._redis.delete(f"proctor:{{{AUDIT}}}:{STAGE}:done")


def failed_twice(stores: Stores) -> None:
    all_but_one_answered(stores)
    for attempt in (1, 2):
        stores.ledger.fail(AUDIT, STAGE, "s0", attempt, setback=Setback.FAILED, cause="c")
        stores.ledger.lease(AUDIT, STAGE, ["s0"], lease=LONG)


def claimed(stores: Stores) -> None:
    stores.pools.claim(POOL, AUDIT, STAGE, ["s0", "s1"], wanted=4, capacity=2, lease=LONG)


def put_back(stores: Stores) -> None:
    """As the clock was put back: leases and credits have an hour longer to run than any may have."""
    leased(stores)
    claimed(stores)


def at_work(stores: Stores) -> None:
    stores.pools.outlook(POOL, fresh=LONG)


def away(stores: Stores) -> None:
    claimed(stores)
    stores.pools.unreachable(POOL, AUDIT, STAGE, "s0")
    stores.ledger._redis.hset(f"proctor:pool:{{{POOL}}}:breaker", "until", 0)


def probing(stores: Stores) -> None:
    away(stores)
    stores.pools.claim(POOL, AUDIT, STAGE, ["s1"], wanted=1, capacity=2, lease=LONG)


def held(stores: Stores) -> None:
    stores.presence.announce("w", "inference", 4)
    stores.presence.holding("w", [Held(AUDIT, STAGE, "s0", 1)])


def tried_in_vain(stores: Stores) -> None:
    for number in range(MAX_TRIES):
        stores.tries.begin("what", str(number))


def nothing(stores: Stores) -> None:
    del stores


STEPS = {
    "plan": Step(nothing, planned),
    "plan the last part": Step(leased, lambda s: s.ledger.plan(AUDIT, STAGE, PART, part=1, parts=2)),
    "plan anew": Step(lost_its_plan, lambda s: s.ledger.plan(AUDIT, STAGE, PART, part=0, parts=1)),
    "lease": Step(planned, lambda s: s.ledger.lease(AUDIT, STAGE, ["s0", "s1"], lease=LONG)),
    "record": Step(leased, lambda s: s.ledger.record_all(AUDIT, STAGE, [("s0", "r", 5, 7), ("s2", "r", 1, 1)])),
    "record the last": Step(all_but_one_answered, lambda s: s.ledger.record(AUDIT, STAGE, "s0", "r", input_tokens=5)),
    "fail": Step(leased, lambda s: s.ledger.fail(AUDIT, STAGE, "s0", 1, setback=Setback.FAILED, cause="c")),
    "lose": Step(leased, lambda s: s.ledger.fail(AUDIT, STAGE, "s0", 1, setback=Setback.LOST, cause="c")),
    "give up": Step(failed_twice, lambda s: s.ledger.fail(AUDIT, STAGE, "s0", 3, setback=Setback.FAILED, cause="c")),
    "split": Step(leased, lambda s: s.ledger.split(AUDIT, STAGE, "s0", 1, [PlannedShard("c", 1, "d", 0), PART[0]])),
    "hand back": Step(leased, lambda s: s.ledger.hand_back(AUDIT, STAGE, [("s0", 1), ("s1", 1)])),
    "record refusals": Step(leased, lambda s: s.ledger.record_all(AUDIT, STAGE, [Answer("s0", "r", 5, 7, 1)])),
    "record without an earlier refusal": Step(
        refused_and_lost, lambda s: s.ledger.record_all(AUDIT, STAGE, [Answer("s1", "r", 5, 7)])
    ),
    "ask again what was refused": Step(refused, lambda s: s.ledger.restart(AUDIT, STAGE, ask_refused=True)),
    "restart": Step(failed_twice, lambda s: s.ledger.restart(AUDIT, STAGE)),
    "shorten leases": Step(put_back, lambda s: s.ledger.overdue(AUDIT, STAGE)),
    "claim": Step(nothing, claimed),
    "claim after the clock was put back": Step(
        put_back, lambda s: s.pools.claim(POOL, "b", STAGE, ["x"], wanted=1, capacity=3)
    ),
    "probe": Step(away, lambda s: s.pools.claim(POOL, AUDIT, STAGE, ["s0", "s1"], wanted=2, capacity=2, lease=LONG)),
    "settle": Step(
        away, lambda s: s.pools.settle(POOL, AUDIT, STAGE, ["s0"], worked=True, n_trials=2, seconds=1, output_tokens=9)
    ),
    "leave": Step(claimed, lambda s: s.pools.leave(POOL, AUDIT)),
    "sweep": Step(claimed, lambda s: s.pools.sweep(POOL, AUDIT, STAGE, [], older_than=timedelta(0))),
    "work": Step(nothing, lambda s: s.pools.outlook("of no claim", fresh=LONG)),
    "be away": Step(claimed, lambda s: s.pools.unreachable(POOL, AUDIT, STAGE, "s0")),
    "be ready": Step(away, lambda s: s.pools.ready(POOL)),
    "probe in vain": Step(probing, lambda s: s.pools.unreachable(POOL, AUDIT, STAGE, "s1")),
    "announce": Step(nothing, lambda s: s.presence.announce("w", "inference", 4)),
    "withdraw": Step(held, lambda s: s.presence.withdraw("w")),
    "hold": Step(held, lambda s: s.presence.holding("w", [Held(AUDIT, STAGE, "s1", 1)])),
    "try": Step(nothing, lambda s: s.tries.begin("what", "0")),
    "try once too often": Step(tried_in_vain, lambda s: s.tries.begin("what", "again")),
    "release": Step(held, lambda s: s.presence.released("w", [Held(AUDIT, STAGE, "s0", 1)])),
}  # fmt: skip
#: Several commands in one transaction, of which Redis takes back none: to be run again until it gets through.
TRANSACTIONS = {
    "note a request": Step(nothing, lambda s: s.ledger.note_asked(AUDIT, "probing-0")),
    "note grades": Step(nothing, lambda s: s.ledger.note_graded(AUDIT, STAGE, {"sha256:0": ("c", "g")})),
    "expire": Step(leased, lambda s: s.ledger.expire(AUDIT, timedelta(hours=1))),
    "forget": Step(leased, lambda s: s.ledger.forget(AUDIT)),
    "rest": Step(at_work, lambda s: s.pools.rest(POOL)),
    "abandon": Step(held, lambda s: s.presence.abandoned([Held(AUDIT, STAGE, "s1", 1)])),
    "forget what was lost": Step(held, lambda s: s.presence.forget([Held(AUDIT, STAGE, "s0", 1)])),
}
ALL = STEPS | TRANSACTIONS


class Bench:
    """A Valkey, and the stores on it of a user that may do everything, and of one that is crippled."""

    def __init__(self, url: str) -> None:
        self.client: Any = redis.Redis.from_url(f"{url}/1", decode_responses=True)
        self.client.acl_setuser("crippled", enabled=True, nopass=True, keys=["*"], categories=["+@all"], reset=True)
        self.whole = self._stores(f"{url}/1")
        self.crippled = self._stores(url.replace("redis://", "redis://crippled:x@") + "/1")

    def _stores(self, url: str) -> Stores:
        return Stores(Ledger(url), Pools(url), Presence(url), Tries(url))

    def close(self) -> None:
        for store in (*self.whole, *self.crippled):
            store.close()
        self.client.close()

    def prepare(self, step: Step) -> dict[str, Any]:
        """Bring the stores to where a step is taken; returns what they hold."""
        self.client.flushdb()
        step.prepare(self.whole)
        return self.contents()

    def contents(self) -> dict[str, Any]:
        """What every key holds, the times left out, and whether it expires."""
        return {key: (self._value(key), self.client.ttl(key) > 0) for key in sorted(self.client.scan_iter())}

    def _value(self, key: str) -> Any:
        kind = self.client.type(key)
        if kind == "hash":
            return {field: _timeless(value) for field, value in self.client.hgetall(key).items()}
        if kind == "zset":
            return {member: _timeless(score) for member, score in self.client.zrange(key, 0, -1, withscores=True)}
        return self.client.smembers(key) if kind == "set" else self.client.get(key)


def _timeless(value: Any) -> Any:
    if isinstance(value, float):
        return "a time" if value > A_TIME else value
    return " ".join("a time" if word.isdigit() and float(word) > A_TIME else word for word in value.split(" "))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with valkey_server(tmp_path_factory.mktemp("steps")) as url:
        bench = Bench(url)
        yield bench
        bench.close()


def undisturbed(bench: Bench, step: Step) -> dict[str, Any]:
    bench.prepare(step)
    step.take(bench.whole)
    return bench.contents()


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_may_not_run_one_of_its_commands_has_written_nothing(bench: Bench, name: str) -> None:
    step, stopped = STEPS[name], 0
    after = undisturbed(bench, step)
    for command in WRITES:
        before = bench.prepare(step)
        bench.client.execute_command("ACL", "SETUSER", "crippled", f"-{command}")
        try:
            step.take(bench.crippled)
        except StoreError:
            stopped += 1
            assert bench.contents() == before, f"stopped at {command}"
            step.take(bench.whole)
        finally:
            bench.client.execute_command("ACL", "SETUSER", "crippled", "+@all")
        assert bench.contents() == after, f"without {command}"
    assert stopped > 0, "nothing stopped it"


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_meets_a_key_of_another_kind_has_written_nothing(bench: Bench, name: str) -> None:
    step, stopped = STEPS[name], 0
    after = undisturbed(bench, step)
    for key in bench.prepare(step) | after:
        bench.prepare(step)
        bench.client.delete(key)
        bench.client.set(key, "somebody else's", ex=999)
        planted = bench.contents()
        try:
            step.take(bench.whole)
        except StoreError:
            stopped += 1
            assert bench.contents() == planted, f"stopped by {key}"
    assert stopped > 0, "nothing stopped it"


@pytest.mark.parametrize("name", STEPS)
def test_a_step_for_which_there_is_no_memory_has_written_nothing(bench: Bench, name: str) -> None:
    step = STEPS[name]
    after = undisturbed(bench, step)
    before = bench.prepare(step)
    bench.client.config_set("maxmemory", 1)
    try:
        step.take(bench.whole)
    except StoreError:
        assert bench.contents() == before
        bench.client.config_set("maxmemory", 0)
        step.take(bench.whole)
    finally:
        bench.client.config_set("maxmemory", 0)
    assert bench.contents() == after


@pytest.mark.parametrize("name", TRANSACTIONS)
def test_commands_that_are_sent_together_come_to_the_same_when_they_are_sent_again(bench: Bench, name: str) -> None:
    step = TRANSACTIONS[name]
    after = undisturbed(bench, step)
    for command in WRITES:
        bench.prepare(step)
        bench.client.execute_command("ACL", "SETUSER", "crippled", f"-{command}")
        try:
            step.take(bench.crippled)
        except StoreError:
            step.take(bench.whole)
        finally:
            bench.client.execute_command("ACL", "SETUSER", "crippled", "+@all")
        assert bench.contents() == after, f"without {command}"


def test_every_script_is_among_the_steps(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = list[Any]()
    run, run_behind = ScriptedRedis._run, ScriptedRedis._run_behind

    def noted(self: Any, script: Any, *arguments: Any) -> Any:
        ran.append(script)
        return run(self, script, *arguments)

    def noted_behind(self: Any, commands: Any, script: Any, *arguments: Any) -> Any:
        ran.append(script)
        return run_behind(self, commands, script, *arguments)

    monkeypatch.setattr(ScriptedRedis, "_run", noted)
    monkeypatch.setattr(ScriptedRedis, "_run_behind", noted_behind)
    for step in ALL.values():
        undisturbed(bench, step)
    changes_nothing = {ledger_scripts.PROGRESS, pool_scripts.HELD, pool_scripts.AWAY_FOR}
    changes_nothing |= {redis_scripts.LIVING, redis_scripts.LOST}
    every = {*ledger_scripts.SCRIPTS, *pool_scripts.SCRIPTS, *redis_scripts.SCRIPTS}
    assert set(ran) | changes_nothing == every


@pytest.mark.parametrize("spent", [2**53 - 1, 2**63 - 1], ids=["doubles-end", "redis-end"])
@pytest.mark.parametrize("tokens", [2**53 - 1, 2**63, 10**400, -5], ids=["2^53-1", "2^63", "10^400", "-5"])
def test_counts_past_what_can_be_counted_are_recorded_with_their_shard(bench: Bench, spent: int, tokens: int) -> None:
    bench.prepare(STEPS["record"])
    bench.client.hset(f"proctor:{{{AUDIT}}}:spent", f"{STAGE} input_tokens", spent)
    answers = [("s0", "sha256:r", tokens, tokens)]
    assert bench.whole.ledger.record_all(AUDIT, STAGE, answers) == ["recorded"]
    assert bench.whole.ledger.record_all(AUDIT, STAGE, answers) == ["duplicate"]
    found = bench.whole.ledger.spent(AUDIT)
    assert found.trials == 2
    assert found.input_tokens == 2**53 - 1
    assert 0 <= found.output_tokens <= 2**31


@pytest.mark.parametrize("spent", ["-1", "nan", "1.5", "many", "1e400"])
def test_what_is_no_count_stops_a_step_before_its_first_write(bench: Bench, spent: str) -> None:
    bench.prepare(STEPS["record"])
    bench.client.hset(f"proctor:{{{AUDIT}}}:spent", f"{STAGE} trials", spent)
    before = bench.contents()
    if spent == "1e400":
        assert bench.whole.ledger.record(AUDIT, STAGE, "s0", "sha256:r") == "recorded"
        assert bench.whole.ledger.spent(AUDIT).trials == 2**53 - 1
        return
    with pytest.raises(StoreError, match="no count"):
        bench.whole.ledger.record(AUDIT, STAGE, "s0", "sha256:r")
    assert bench.contents() == before


@pytest.mark.parametrize("seconds", [1e308, float("inf"), float("nan"), -1.0, 0.0])
@pytest.mark.parametrize("count", [10**400, 2**63, -(2**63)], ids=["10^400", "2^63", "-2^63"])
def test_no_message_spoils_the_pace_of_a_pool(bench: Bench, seconds: float, count: int) -> None:
    bench.client.flushdb()
    pools = bench.whole.pools
    pools.note_pace(POOL, n_trials=10, seconds=1.0, output_tokens=10)
    pools.note_pace(POOL, n_trials=max(count, 1), seconds=seconds, output_tokens=count)
    for _ in range(99):
        pools.note_pace(POOL, n_trials=10, seconds=1.0, output_tokens=10)
    assert pools.pace(POOL) == pytest.approx(0.1, rel=0.1)
    assert pools.output_tokens_per_trial(POOL) == pytest.approx(1.0, rel=0.1)


def test_a_part_of_more_shards_than_lua_unpacks_is_laid_down_and_answered(bench: Bench) -> None:
    bench.client.flushdb()
    ledger = bench.whole.ledger
    shards = [PlannedShard(f"s{n}", 1, f"sha256:{n}", n) for n in range(9000)]
    assert ledger.plan(AUDIT, STAGE, shards)
    assert ledger.entries(AUDIT, STAGE) == shards
    assert len(ledger.lease(AUDIT, STAGE, [shard.shard_id for shard in shards], lease=LONG)) == 9000
    outcomes = ledger.record_all(AUDIT, STAGE, [(shard.shard_id, "r", 1, 1) for shard in shards])
    assert outcomes == ["recorded"] * 8999 + ["complete"]
    assert ledger.spent(AUDIT) == (9000, 9000, 9000)
