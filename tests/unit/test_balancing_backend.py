"""The balanced backend over scripted servers: who is asked, what is asked again, and who is left alone."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from proctor.domain.endpoint import Balance, EndpointSpec, Replica
from proctor.domain.errors import BadInputError, EndpointError
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.balancing import balanced, member
from proctor.inference.balancing.balanced import BalancedBackend
from proctor.inference.balancing.discovery.found import Found
from proctor.inference.worker.backend import TrialFailure
from proctor.inference.worker.open_backend import open_backend
from proctor.runtime.settings import Settings
from tests.scripted_servers import AWAY, BUSY, REFUSED, ScriptedServer, ScriptedServers

T = TypeVar("T")

#: They begin alike: a prefix may be pinned.
OLD, NEW = ("sha256:" + "c" * 12 + rest * 52 for rest in "ab")
DECODING = Decoding()


def spec_of(*names: str, **more: Any) -> EndpointSpec:
    replicas = tuple(Replica(url=f"http://{name}") for name in names)
    settings = {"model_version": None, "balance": Balance.ROUND_ROBIN, "replicas": replicas} | more
    return EndpointSpec(backend="infer", url="http://a", served_name="m", **settings)


def trials_of(count: int) -> list[Trial]:
    return [Trial(arm=Arm.CANONICAL, item_id=str(number), prompt=f"prompt {number}") for number in range(count)]


def run(
    spec: EndpointSpec,
    use: Callable[[BalancedBackend, ScriptedServers], Awaitable[T]],
    prepare: Callable[[ScriptedServer], None] = lambda _: None,
) -> T:
    """What a test does with a backend; afterwards nothing of it is open."""

    async def main() -> T:
        servers = ScriptedServers(prepare)
        backend = BalancedBackend(spec, servers.open, rng=random.Random(0))
        try:
            return await use(backend, servers)
        finally:
            await backend.close()
            assert all(server.closed for server in servers.by_url.values())
            assert not any(server.open_sessions or server.in_flight for server in servers.by_url.values())
            assert asyncio.all_tasks() == {asyncio.current_task()}

    return asyncio.run(main())


def complete(
    spec: EndpointSpec, count: int, prepare: Callable[[ScriptedServer], None] = lambda _: None
) -> tuple[list[Completion], ScriptedServers]:
    async def use(backend: BalancedBackend, servers: ScriptedServers) -> tuple[list[Completion], ScriptedServers]:
        return await backend.complete(trials_of(count), DECODING, deadline_s=20.0), servers

    return run(spec, use, prepare)


def at(name: str, **settings: Any) -> Callable[[ScriptedServer], None]:
    """Prepares the server of that name."""

    def prepare(server: ScriptedServer) -> None:
        if name in server.spec.url:
            for key, value in settings.items():
                setattr(server, key, value)

    return prepare


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until it is so; a test that waits in vain runs into its time limit."""
    while not condition():  # noqa: ASYNC110 - it is told by servers that know no events
        await asyncio.sleep(0)


@pytest.mark.parametrize("balance", Balance)
def test_every_trial_is_answered_in_order_and_says_who_answered(balance: Balance) -> None:
    completions, servers = complete(spec_of("a", "b", balance=balance), 200)
    assert [completion.text.split()[1] for completion in completions] == [str(number) for number in range(200)]
    assert {completion.endpoint for completion in completions} == {"http://a", "http://b"}
    assert all(completion.text.startswith(completion.endpoint) for completion in completions)
    assert len(servers["a"].asked) + len(servers["b"].asked) == 200


def test_no_trials_are_no_completions() -> None:
    assert complete(spec_of("a", "b"), 0)[0] == []


def test_a_replica_is_asked_in_one_session_a_shard() -> None:
    _, servers = complete(spec_of("a", "b"), 50)
    assert (servers["a"].sessions, servers["b"].sessions) == (1, 1)


def test_no_replica_has_more_in_flight_than_the_endpoint_allows() -> None:
    async def use(backend: BalancedBackend, servers: ScriptedServers) -> list[Completion]:
        gate = asyncio.Event()
        shards = [asyncio.create_task(backend.complete(trials_of(20), DECODING, deadline_s=20.0)) for _ in range(3)]
        await until(lambda: len(servers.by_url) == 2)
        for server in servers.by_url.values():
            server.gate = gate
        await until(lambda: sum(server.in_flight for server in servers.by_url.values()) == 6)
        gate.set()
        completions = [completion for shard in await asyncio.gather(*shards) for completion in shard]
        assert [server.most_in_flight for server in servers.by_url.values()] == [3, 3]
        return completions

    assert all(one.error is None for one in run(spec_of("a", "b", max_in_flight=3), use))


def test_trials_of_a_server_that_is_away_are_answered_by_the_other() -> None:
    completions, servers = complete(spec_of("a", "b"), 100, at("a", fault=AWAY))
    assert all(completion.error is None for completion in completions)
    assert len(servers["b"].asked) == 100


def test_a_server_that_fails_is_left_alone() -> None:
    async def use(backend: BalancedBackend, servers: ScriptedServers) -> None:
        await backend.complete(trials_of(100), DECODING, deadline_s=20.0)
        before = len(servers["a"].asked)
        await backend.complete(trials_of(100), DECODING, deadline_s=20.0)
        assert len(servers["a"].asked) == before

    run(spec_of("a", "b"), use, at("a", fault=AWAY))


def test_a_server_that_is_back_is_asked_again_after_one_trial_has_shown_it(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = 0.0
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + passed)

    async def use(backend: BalancedBackend, servers: ScriptedServers) -> None:
        nonlocal passed
        await backend.complete(trials_of(100), DECODING, deadline_s=20.0)
        servers["a"].fault, servers["a"].most_in_flight = None, 0
        servers["a"].asked.clear()
        passed = 2.0
        servers["a"].gate = asyncio.Event()
        shard = asyncio.create_task(backend.complete(trials_of(100), DECODING, deadline_s=20.0))
        await until(lambda: len(servers["b"].asked) >= 199)
        assert len(servers["a"].asked) == 1
        servers["a"].gate.set()
        await shard
        await backend.complete(trials_of(100), DECODING, deadline_s=20.0)
        assert len(servers["a"].asked) == 51

    run(spec_of("a", "b"), use, at("a", fault=AWAY))


def test_where_all_are_away_every_trial_fails_in_passing_and_the_next_ones_say_which_and_why() -> None:
    async def use(backend: BalancedBackend, servers: ScriptedServers) -> list[Completion]:
        await backend.complete(trials_of(100), DECODING, deadline_s=20.0)
        return await backend.complete(trials_of(3), DECODING, deadline_s=20.0)

    completions = run(spec_of("a", "b"), use, at("http", fault=AWAY))
    assert all(completion.retryable for completion in completions)
    for completion in completions:
        assert completion.error is not None
        for said in ("http://a", "http://b", "connection refused"):
            assert said in completion.error


def test_a_trial_that_failed_in_passing_is_asked_once_more_and_of_another_replica() -> None:
    completions, servers = complete(spec_of("a", "b", "c"), 1, at("http", fault=BUSY))
    assert (completions[0].error, completions[0].retryable) == ("answered 429", True)
    assert sum(len(server.asked) for server in servers.by_url.values()) == 2
    assert max(len(server.asked) for server in servers.by_url.values()) == 1


def test_a_trial_that_waits_for_another_replica_holds_up_no_other() -> None:
    async def use(backend: BalancedBackend, servers: ScriptedServers) -> None:
        stuck = asyncio.create_task(backend.complete(trials_of(4), DECODING, deadline_s=60.0))
        await until(lambda: len(servers.by_url) == 2 and servers["b"].in_flight == 2)
        servers["a"].fault_of = lambda trial: BUSY if trial.item_id == "0" else None
        shard = asyncio.create_task(backend.complete(trials_of(20), DECODING, deadline_s=60.0))
        await until(lambda: "19" in servers["a"].asked)
        assert not shard.done()
        gate.set()
        assert all(completion.error is None for completion in [*await shard, *await stuck])

    def prepare(server: ScriptedServer) -> None:
        server.gate = gate if "b" in server.spec.url else None

    gate = asyncio.Event()
    run(spec_of("a", "b", max_in_flight=2), use, prepare)


def test_a_refused_prompt_is_not_asked_again_and_says_nothing_against_the_server() -> None:
    completions, servers = complete(spec_of("a", "b"), 100, at("http", fault=REFUSED))
    assert {(completion.error, completion.retryable) for completion in completions} == {(str(REFUSED), False)}
    assert (len(servers["a"].asked), len(servers["b"].asked)) == (50, 50)


def test_one_poison_prompt_costs_no_other_trial_its_answer() -> None:
    def prepare(server: ScriptedServer) -> None:
        server.fault_of = lambda trial: AWAY if trial.item_id == "7" else None

    completions, _ = complete(spec_of("a", "b"), 60, prepare)
    assert [completion.trial_id for completion in completions if completion.error] == [trials_of(8)[7].trial_id]


def test_an_error_of_ours_fails_one_trial_and_is_said() -> None:
    def prepare(server: ScriptedServer) -> None:
        server.fault_of = lambda trial: ValueError("oh") if trial.item_id == "1" else None

    completions, _ = complete(spec_of("a", "b"), 4, prepare)
    assert [completion.error is None for completion in completions] == [True, False, True, True]
    assert "ValueError: oh" in (completions[1].error or "")


def test_a_replica_with_other_weights_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    wrong = EndpointError(f"http://a serves 'm' with weights {NEW}, the suite pins {OLD}")
    completions, servers = complete(spec_of("a", "b", model_version=OLD), 50, at("a", fault=wrong))
    assert all(completion.error is None for completion in completions)
    assert len(servers["b"].asked) == 50
    assert NEW in caplog.text
    assert OLD in caplog.text


def test_where_all_serve_other_weights_the_shard_fails_as_with_one_server() -> None:
    with pytest.raises(EndpointError, match="other weights"):
        complete(spec_of("a", "b", model_version=OLD), 50, at("http", fault=EndpointError("other weights")))


def test_a_refused_replica_is_tried_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "_REFUSED_S", 0.0)

    async def use(backend: BalancedBackend, servers: ScriptedServers) -> None:
        servers["a"].fault = None
        await backend.complete(trials_of(20), DECODING, deadline_s=20.0)
        assert servers["a"].asked

    async def refused_first(backend: BalancedBackend, servers: ScriptedServers) -> None:
        await backend.probe()
        await use(backend, servers)

    run(spec_of("a", "b"), refused_first, at("a", fault=EndpointError("rolling out")))


@pytest.mark.parametrize("pinned", [None, "sha256:" + "c" * 12])
def test_the_weights_that_answer_first_are_those_of_all(pinned: str | None) -> None:
    def prepare(server: ScriptedServer) -> None:
        server.digest = OLD if "a" in server.spec.url.removeprefix("http") else NEW

    completions, _ = complete(spec_of("a", "b", model_version=pinned), 100, prepare)
    assert all(completion.error is None for completion in completions)
    assert len({completion.model_digest for completion in completions}) == 1


def test_a_new_audit_may_find_other_weights_where_none_are_pinned() -> None:
    async def use(backend: BalancedBackend, servers: ScriptedServers) -> list[str | None]:
        found = [(await backend.probe()).model_digest]
        for name in "ab":
            servers[name].digest = NEW
        return [*found, (await backend.probe()).model_digest]

    assert run(spec_of("a", "b"), use, at("http", digest=OLD)) == [OLD, NEW]


def test_a_probe_is_content_with_one_replica_and_says_how_many_there_are() -> None:
    async def use(backend: BalancedBackend, servers: ScriptedServers) -> Any:
        return await backend.probe()

    found = run(spec_of("a", "b"), use, at("a", fault=AWAY, digest=OLD))
    assert (found.ok, found.detail) == (True, "1 of 2 replicas can be asked: connection refused")
    assert not run(spec_of("a", "b"), use, at("http", fault=AWAY)).ok


def test_what_waits_past_the_deadline_fails_in_passing() -> None:
    async def use(backend: BalancedBackend, servers: ScriptedServers) -> list[Completion]:
        return await backend.complete(trials_of(5), DECODING, deadline_s=0.05)

    def prepare(server: ScriptedServer) -> None:
        server.gate = asyncio.Event()

    async def with_stuck_trials(backend: BalancedBackend, servers: ScriptedServers) -> list[Completion]:
        stuck = asyncio.create_task(backend.complete(trials_of(1), DECODING, deadline_s=60.0))
        await until(lambda: bool(servers.by_url) and servers["a"].in_flight == 1)
        late = await use(backend, servers)
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)
        return late

    late = run(spec_of("a", max_in_flight=1), with_stuck_trials, prepare)
    assert {(one.retryable, "before the deadline" in (one.error or "")) for one in late} == {(True, True)}


def test_a_shard_that_is_cancelled_leaves_its_places_to_others() -> None:
    async def use(backend: BalancedBackend, servers: ScriptedServers) -> list[Completion]:
        first = asyncio.create_task(backend.complete(trials_of(10), DECODING, deadline_s=60.0))
        await until(lambda: bool(servers.by_url) and servers["a"].in_flight == 2)
        servers["a"].gate = None
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        return await backend.complete(trials_of(10), DECODING, deadline_s=60.0)

    def prepare(server: ScriptedServer) -> None:
        server.gate = asyncio.Event()

    assert all(one.error is None for one in run(spec_of("a", max_in_flight=2), use, prepare))


class Announced:
    """A discovery that a test announces replicas to."""

    def __init__(self) -> None:
        self.announce: Callable[[Sequence[Found]], None] | None = None

    async def watch(self, found: Callable[[Sequence[Found]], None], missed: Callable[[str], None]) -> None:
        self.announce = found
        await asyncio.Event().wait()

    def say(self, *names: str) -> None:
        assert self.announce is not None
        self.announce([Found(Replica(url=f"http://{name}")) for name in names])


def test_a_replica_that_is_gone_finishes_what_it_has_and_a_new_one_is_taken_up(monkeypatch: pytest.MonkeyPatch) -> None:
    discovery = Announced()
    monkeypatch.setattr("proctor.inference.balancing.members.discovery_of", lambda _: discovery)

    async def use(backend: BalancedBackend, servers: ScriptedServers) -> None:
        first = asyncio.create_task(backend.complete(trials_of(2), DECODING, deadline_s=60.0))
        await until(lambda: discovery.announce is not None)
        discovery.say("a")
        servers["a"].gate = asyncio.Event()
        await until(lambda: servers["a"].in_flight == 2)
        discovery.say("b")
        completions = await backend.complete(trials_of(20), DECODING, deadline_s=60.0)
        assert {one.endpoint for one in completions} == {"http://b"}
        assert not servers["a"].closed
        servers["a"].gate.set()
        assert {one.endpoint for one in await first} == {"http://a"}
        await until(lambda: servers["a"].closed)

    run(spec_of(), use)


def test_where_no_replica_is_found_trials_fail_in_passing(monkeypatch: pytest.MonkeyPatch) -> None:
    discovery = Announced()
    monkeypatch.setattr("proctor.inference.balancing.members.discovery_of", lambda _: discovery)
    monkeypatch.setattr(balanced, "_FIND_S", 0.01)

    async def use(backend: BalancedBackend, servers: ScriptedServers) -> list[Completion]:
        return await backend.complete(trials_of(2), DECODING, deadline_s=60.0)

    assert [(one.error, one.retryable) for one in run(spec_of(), use)] == [
        ("no replica can be asked: no replica of http://a is known", True)
    ] * 2


def test_a_failure_keeps_what_it_says_of_the_server_when_it_is_told_again() -> None:
    again = TrialFailure("x", retryable=True, unavailable=True).again()
    assert (again.retryable, again.unavailable) == (True, True)


def test_a_replica_whose_url_is_none_of_its_kind_is_said() -> None:
    def refuse(spec: EndpointSpec) -> ScriptedServer:
        raise BadInputError(f"the endpoint {spec.url!r} is not a URL")

    async def ask() -> None:
        backend = BalancedBackend(spec_of("a"), refuse)
        try:
            await backend.complete(trials_of(1), DECODING, deadline_s=20.0)
        finally:
            await backend.close()

    with pytest.raises(BadInputError, match="'http://a' is not a URL"):
        asyncio.run(ask())


def test_a_model_in_process_has_no_replicas(tmp_path: Path) -> None:
    spec = spec_of("a").model_copy(update={"backend": "in_process"})
    with pytest.raises(BadInputError, match="has no replicas"):
        open_backend(spec, Settings(home=tmp_path))
