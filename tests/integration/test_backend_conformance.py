"""One contract, every backend: the same prompts make each kind of server answer, misbehave or fall silent.

HTTP servers are real ones; Triton is a real one too, whose models do what the prompts say. Between each of them and the
backend stands a forwarder, which breaks connections and counts those that are left.
"""

from __future__ import annotations

import asyncio
import gc
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

from proctor.domain.answer_bounds import max_answer_bytes
from proctor.domain.endpoint import EndpointSpec
from proctor.domain.errors import EndpointError
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.worker import retry, shards
from proctor.inference.worker.backend import MAX_PROMPT_BYTES, Backend, Probe
from proctor.inference.worker.open_backend import open_backend
from proctor.inference.worker.shards import Backends, ShardUnanswered
from proctor.runtime.settings import Settings
from tests.backend_kinds import KINDS, MODEL, VERSION, Kind, Server
from tests.forwarder import forwarding
from tests.misbehaving_http import misbehaving_http
from tests.misbehaving_triton import TENSORRT_LLM, write_misbehaving_bundle
from tests.misbehaviour import BROKEN, BUSY, DEAD, ENGINE_DIED, HALF, Stage, tell
from tests.support import free_port, wait_until
from tests.triton_server import RunningTriton, triton_server

OTHER = "sha256:" + "cd" * 32
DEADLINE_S = 20.0
DECODING = Decoding(max_tokens=64)
SETTINGS = Settings(home=Path())
NEVER = "never"

T = TypeVar("T")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(tmp_path_factory.mktemp("stage"))


@pytest.fixture(scope="module")
def triton(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTriton]:
    bundle = tmp_path_factory.mktemp("bundle")
    write_misbehaving_bundle(bundle, stage.folder, version=VERSION)
    with triton_server(bundle, tmp_path_factory.mktemp("triton")) as running:
        yield running


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.name)
def server(request: pytest.FixtureRequest, stage: Stage) -> Iterator[Server]:
    kind: Kind = request.param
    with ExitStack() as stack:
        if kind.backend == "triton":
            port = request.getfixturevalue("triton").grpc_port
        else:
            version = VERSION if kind.reports_version else None
            port = stack.enter_context(misbehaving_http(stage, model=MODEL, version=version))
        yield Server(kind, stage, stack.enter_context(forwarding(port)))


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PROCTOR_API_KEY", "PROCTOR_API_KEYS", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(shards, "_AGAIN_AFTER_S", (0.05, 0.5))
    monkeypatch.setattr(retry, "_BASE_S", 0.01)


@pytest.fixture(autouse=True)
def up(request: pytest.FixtureRequest, server: Server) -> None:
    if server.kind.backend == "triton":
        request.getfixturevalue("triton").keep_up()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """What prompts of this test are called: flags are kept apart by it."""
    return "".join(character if character.isalnum() else "-" for character in request.node.name)


def trials(*prompts: str) -> list[Trial]:
    return [Trial(arm=Arm.CANONICAL, item_id=str(number), prompt=text) for number, text in enumerate(prompts)]


def with_backend(spec: EndpointSpec, use: Callable[[Backend], Awaitable[T]]) -> T:
    async def run() -> T:
        backend = open_backend(spec, SETTINGS)
        try:
            return await use(backend)
        finally:
            await backend.close()

    return asyncio.run(run())


def complete(spec: EndpointSpec, *prompts: str, deadline_s: float = DEADLINE_S) -> list[Completion]:
    return with_backend(spec, lambda backend: backend.complete(trials(*prompts), DECODING, deadline_s=deadline_s))


def probe(spec: EndpointSpec) -> Probe:
    return with_backend(spec, lambda backend: backend.probe())


def answer(spec: EndpointSpec, *prompts: str, deadline_s: float = DEADLINE_S) -> list[Completion]:
    """The completions of a shard, with the second and third asking of what failed in passing."""

    async def run() -> list[Completion]:
        backends = Backends(SETTINGS)
        try:
            return await backends.answer(spec, trials(*prompts), DECODING, deadline_s=deadline_s)
        finally:
            await backends.close()

    return asyncio.run(run())


async def came_about(condition: Callable[[], bool], what: str) -> None:
    await asyncio.to_thread(wait_until, condition, what=what)


def test_answers_keep_the_order_of_the_prompts_whichever_comes_first(server: Server, name: str) -> None:
    last = f"{name}-19"
    prompts = [tell(f"{name}-0", say="0", wait_for=f"{last}.asked-1")]
    prompts += [tell(f"{name}-{number}", say=str(number)) for number in range(1, 20)]
    got = complete(server.spec(), *prompts)
    assert [c.text for c in got] == [str(number) for number in range(20)]
    assert [c.trial_id for c in got] == [trial.trial_id for trial in trials(*prompts)]
    assert {c.error for c in got} == {None}


def test_a_completion_says_where_it_came_from_and_what_the_protocol_reports(server: Server, name: str) -> None:
    [got] = complete(server.spec(), tell(name, say="fine"))
    assert (got.text, got.endpoint, got.error) == ("fine", server.url, None)
    assert got.latency_ms > 0
    assert (got.input_tokens, got.output_tokens) == ((3, 2) if server.kind.reports_counts else (None, None))
    assert got.model_digest == (VERSION if server.kind.reports_version else None)
    if server.kind.served_name != TENSORRT_LLM:
        assert got.finish_reason == ("stop" if server.kind.reports_finish else "unknown")


def test_trials_with_the_same_id_each_get_their_own_answer(server: Server, name: str) -> None:
    one, other = (trials(tell(f"{name}-{text}", say=text))[0] for text in "ab")
    assert one.trial_id == other.trial_id
    got = with_backend(
        server.spec(), lambda backend: backend.complete([one, other, one], DECODING, deadline_s=DEADLINE_S)
    )
    assert [c.text for c in got] == ["a", "b", "a"]


def test_a_trial_without_an_answer_ends_at_the_deadline_and_the_others_keep_theirs(server: Server, name: str) -> None:
    prompts = [tell(f"{name}-a", say="a"), tell(f"{name}-b", wait_for=NEVER), tell(f"{name}-c", say="c")]
    got = complete(server.spec(), *prompts, deadline_s=1.0)
    assert [c.text for c in got] == ["a", "", "c"]
    assert [c.error is None for c in got] == [True, False, True]
    assert "before the deadline" in str(got[1].error)
    assert got[1].retryable
    wait_until(lambda: server.stage.is_raised(f"{name}-b.abandoned"), what="the server's notice")


def test_a_deadline_that_is_over_asks_nothing_and_answers_every_trial(server: Server, name: str) -> None:
    got = complete(server.spec(), tell(f"{name}-a", wait_for=NEVER), tell(f"{name}-b", wait_for=NEVER), deadline_s=0.0)
    assert [(c.text, c.finish_reason, c.retryable) for c in got] == [("", "error", True)] * 2


def test_a_cancelled_shard_leaves_no_task_and_no_connection_and_the_backend_works_on(server: Server, name: str) -> None:
    async def use(backend: Backend) -> list[Completion]:
        await backend.complete(trials(tell(f"{name}-first", say="x")), DECODING, deadline_s=DEADLINE_S)
        before = asyncio.all_tasks()
        prompts = [tell(f"{name}-{number}", wait_for=NEVER if number == 0 else "") for number in range(30)]
        running = asyncio.create_task(backend.complete(trials(*prompts), DECODING, deadline_s=DEADLINE_S))
        await came_about(lambda: server.stage.times_asked(f"{name}-0") == 1, "the question")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert asyncio.all_tasks() <= before
        await came_about(lambda: server.stage.is_raised(f"{name}-0.abandoned"), "the server's notice")
        return await backend.complete(trials(tell(f"{name}-after", say="after")), DECODING, deadline_s=DEADLINE_S)

    [after] = with_backend(server.spec(), use)
    assert (after.text, after.error) == ("after", None)

    def all_are_closed() -> bool:
        # A call that was cancelled may stand in a cycle of references, and hold its connection until that is collected.
        gc.collect()
        return server.forwarder.connections == 0

    wait_until(all_are_closed, what="the end of the last connection")


def test_an_answer_that_was_cut_off_is_reported_as_such_where_the_protocol_can_say_it(
    server: Server, name: str
) -> None:
    [got] = complete(server.spec(), tell(name, say="and so", finish="length"))
    assert (got.text, got.error) == ("and so", None)
    assert got.finish_reason == ("length" if server.kind.reports_finish else "unknown")


def test_an_empty_answer_is_an_answer(server: Server, name: str) -> None:
    [got] = complete(server.spec(), tell(name, say=""))
    assert (got.text, got.error) == ("", None)


def test_an_answer_past_the_limit_is_refused_and_the_others_are_kept(server: Server, name: str) -> None:
    got = complete(
        server.spec(),
        tell(f"{name}-a", say="a"),
        tell(f"{name}-b", say="x", times=max_answer_bytes(DECODING.max_tokens) + 1),
        tell(f"{name}-c", say="c"),
    )
    assert [c.text for c in got] == ["a", "", "c"]
    assert "64 tokens have at most 65,536 bytes" in str(got[1].error)
    assert not got[1].retryable


@pytest.mark.parametrize(
    "text",
    ["è漢字", "🙂𝔘👩‍🚀", "שלום ‏مرحبا‎ \u202eabc", "a\x00b\x1b[2J\r\n\t", "\ufeff\ufffd\U0010ffff", '"\\{}'],
    ids=["letters", "astral", "right-to-left", "controls", "edges", "quotes"],
)
def test_unicode_arrives_whole_both_ways(server: Server, name: str, text: str) -> None:
    [got] = complete(server.spec(), tell(name, say=text))
    assert (got.text, got.error) == (text, None)


def test_a_prompt_that_cannot_travel_fails_alone(server: Server, name: str) -> None:
    bad = ["half a pair: \ud83d", "x" * (MAX_PROMPT_BYTES + 1)]
    got = complete(server.spec(), tell(f"{name}-a", say="a"), *bad, tell(f"{name}-c", say="c"))
    assert [c.text for c in got] == ["a", "", "", "c"]
    assert "lone surrogate at character 13" in str(got[1].error)
    assert "the limit is 1,048,576" in str(got[2].error)
    assert not any(c.retryable for c in got)


@pytest.mark.parametrize("fault", [BUSY, BROKEN, DEAD], ids=["429", "5xx", "dead-engine"])
def test_a_server_in_passing_trouble_is_asked_again(server: Server, name: str, fault: str) -> None:
    got = answer(server.spec(), tell(f"{name}-a", say="a"), tell(f"{name}-b", say="b", faults=(fault,)))
    assert [(c.text, c.error) for c in got] == [("a", None), ("b", None)]
    assert server.stage.times_asked(f"{name}-b") == 2


def test_a_server_whose_engine_died_is_away_though_it_is_ready_until_the_engine_is_back(
    server: Server, name: str
) -> None:
    asked = [tell(f"{name}-{number}", say="said", always=DEAD, until=f"{name}-mended") for number in range(3)]
    with pytest.raises(ShardUnanswered, match=re.escape(ENGINE_DIED)) as raised:
        answer(server.spec(), *asked)
    assert raised.value.unreachable
    assert probe(server.spec()).ok, "the server says that it is ready"
    server.stage.raise_flag(f"{name}-mended")
    assert [(one.text, one.error) for one in answer(server.spec(), *asked)] == [("said", None)] * 3


@pytest.mark.parametrize("fault", [BUSY, BROKEN, DEAD], ids=["429", "5xx", "dead-engine"])
def test_a_server_that_stays_in_trouble_fails_the_shard_and_is_not_asked_for_ever(
    server: Server, name: str, fault: str
) -> None:
    with pytest.raises(ShardUnanswered):
        answer(server.spec(), tell(f"{name}-a", say="a"), tell(f"{name}-b", always=fault))
    assert 1 < server.stage.times_asked(f"{name}-b") <= 15 * max(len(server.kind.replicas), 1)


def test_an_answer_of_which_half_came_before_the_connection_broke_is_no_answer(server: Server, name: str) -> None:
    """An HTTP backend asks again by itself; Triton's says that asking again may help, and the shard is asked again."""

    async def use(backend: Backend) -> list[Completion]:
        asked = trials(tell(name, say="whole answer", faults=(HALF,)))
        running = asyncio.create_task(backend.complete(asked, DECODING, deadline_s=DEADLINE_S))
        await came_about(lambda: server.stage.is_raised(f"{name}.halved"), "half an answer")
        await asyncio.to_thread(server.forwarder.drop)
        [first] = await running
        if first.error is None:
            return [first]
        assert (first.text, first.retryable) == ("", True)
        return await backend.complete(asked, DECODING, deadline_s=DEADLINE_S)

    [got] = with_backend(server.spec(), use)
    assert (got.text, got.error) == ("whole answer", None)
    assert server.stage.times_asked(name) == 2


def test_a_connection_that_was_cut_between_two_shards_costs_no_answer(server: Server, name: str) -> None:
    async def use(backend: Backend) -> list[Completion]:
        await backend.complete(trials(tell(f"{name}-a", say="a")), DECODING, deadline_s=DEADLINE_S)
        await asyncio.to_thread(server.forwarder.drop)
        return await backend.complete(trials(tell(f"{name}-b", say="b")), DECODING, deadline_s=DEADLINE_S)

    [got] = with_backend(server.spec(), use)
    assert (got.text, got.error) == ("b", None)


def test_other_weights_than_the_pinned_ones_are_refused_where_the_endpoint_reports_them(
    server: Server, name: str
) -> None:
    prompt = tell(name, say="x")
    if server.kind.reports_version:
        with pytest.raises(EndpointError, match=f"weights {VERSION}, the suite pins {OTHER}"):
            complete(server.spec(version=OTHER), prompt)
        assert probe(server.spec(version=OTHER)).ok is (server.kind.backend == "infer")
    else:
        [got] = complete(server.spec(version=OTHER), prompt)
        assert got.model_digest is None


def test_any_weights_answer_where_none_are_pinned(server: Server, name: str) -> None:
    [got] = complete(server.spec(version=None), tell(name, say="x"))
    assert (got.text, got.error) == ("x", None)


def test_a_probe_finds_the_endpoint_and_the_weights_that_it_reports(server: Server) -> None:
    found = probe(server.spec())
    assert found.ok
    assert found.server
    # The article's contract has no question about the model: its weights show in the answers alone.
    asked_first = server.kind.reports_version and server.kind.backend != "infer"
    assert found.model_digest == (VERSION if asked_first else None)


def test_a_probe_misses_a_model_that_the_endpoint_does_not_serve(server: Server) -> None:
    found = probe(server.spec(name="absent"))
    assert found.ok is (server.kind.backend == "infer")
    assert "unchecked" in found.detail if found.ok else "absent" in found.detail


def test_nobody_at_the_address_is_said_in_one_line(server: Server, name: str) -> None:
    spec = server.spec(port=free_port())
    said = {f"connection refused at {url}" for url in (spec.url, *(replica.url for replica in spec.replicas))}
    found = probe(spec)
    assert (found.ok, found.detail in said) == (False, True)
    got: list[Any] = complete(spec, tell(f"{name}-a"), tell(f"{name}-b"))
    assert [(c.error in said, c.retryable) for c in got] == [(True, True)] * 2
