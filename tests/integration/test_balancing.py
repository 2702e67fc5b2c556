"""Several real servers behind one endpoint: HTTP ones that fail, fall silent or serve other weights."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

from proctor.domain.endpoint import Balance, EndpointSpec, Replica
from proctor.domain.errors import EndpointError
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.worker import retry
from proctor.inference.worker.backend import Backend
from proctor.inference.worker.open_backend import open_backend
from proctor.runtime.settings import Settings
from tests.answering_http import Reply, serving
from tests.forwarder import Forwarder, forwarding
from tests.misbehaving_http import misbehaving_http
from tests.misbehaviour import BROKEN, Stage, tell
from tests.support import free_port, wait_until

T = TypeVar("T")

THIS, OTHER = "sha256:" + "ab" * 32, "sha256:" + "cd" * 32


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PROCTOR_API_KEY", "PROCTOR_API_KEYS", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(retry, "_BASE_S", 0.01)


def started(stack: ExitStack, stage: Stage, *, version: str | None = THIS) -> Forwarder:
    """A server, behind a forwarder that can break its connections."""
    return stack.enter_context(forwarding(stack.enter_context(misbehaving_http(stage, model="m", version=version))))


def spec_of(*ports: int, version: str | None = THIS, balance: Balance = Balance.ROUND_ROBIN) -> EndpointSpec:
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    return EndpointSpec(
        backend="infer",
        url=urls[0],
        served_name="m",
        model_version=version,
        replicas=tuple(Replica(url=url) for url in urls),
        balance=balance,
    )


def trials_of(*prompts: str) -> list[Trial]:
    return [Trial(arm=Arm.CANONICAL, item_id=str(place), prompt=prompt) for place, prompt in enumerate(prompts)]


def used(spec: EndpointSpec, use: Callable[[Backend], Awaitable[T]]) -> T:
    async def main() -> T:
        backend = open_backend(spec, Settings(home=Path()))
        try:
            return await use(backend)
        finally:
            await backend.close()

    return asyncio.run(main())


def complete(spec: EndpointSpec, *prompts: str, deadline_s: float = 20.0) -> list[Completion]:
    return used(spec, lambda backend: backend.complete(trials_of(*prompts), Decoding(), deadline_s=deadline_s))


def say(count: int, **settings: Any) -> list[str]:
    return [tell(f"p{number}", say=f"answer {number}", **settings) for number in range(count)]


@pytest.mark.parametrize("balance", Balance)
def test_all_replicas_answer_and_every_trial_gets_its_own_answer(
    stack: ExitStack, stage: Stage, balance: Balance
) -> None:
    spec = spec_of(started(stack, stage).port, started(stack, stage).port, balance=balance)
    completions = complete(spec, *say(60))
    assert [completion.text for completion in completions] == [f"answer {number}" for number in range(60)]
    assert {completion.endpoint for completion in completions} == {replica.url for replica in spec.replicas}
    assert {completion.model_digest for completion in completions} == {THIS}


def test_a_replica_that_is_not_there_costs_no_trial_its_answer(stack: ExitStack, stage: Stage) -> None:
    spec = spec_of(free_port(), started(stack, stage).port)
    assert all(completion.error is None for completion in complete(spec, *say(60)))
    assert max(stage.times_asked(f"p{number}") for number in range(60)) == 1


def test_trials_in_flight_to_a_replica_whose_connections_break_are_asked_of_the_other(
    stack: ExitStack, stage: Stage
) -> None:
    dying, staying = started(stack, stage), started(stack, stage)
    prompts = say(20, wait_for="released")

    async def use(backend: Backend) -> list[Completion]:
        shard = asyncio.create_task(backend.complete(trials_of(*prompts), Decoding(), deadline_s=20.0))
        await asyncio.to_thread(wait_until, lambda: all(stage.times_asked(f"p{number}") for number in range(20)))
        await asyncio.to_thread(dying.drop)
        stage.raise_flag("released")
        return await shard

    completions = used(spec_of(dying.port, staying.port), use)
    assert [completion.text for completion in completions] == [f"answer {number}" for number in range(20)]


def test_a_server_in_trouble_is_asked_once_a_trial_and_the_other_answers(stack: ExitStack, stage: Stage) -> None:
    spec = spec_of(started(stack, stage).port, started(stack, stage).port)
    completions = complete(spec, tell("p", say="yes", faults=(BROKEN,)))
    assert [completion.text for completion in completions] == ["yes"]
    assert stage.times_asked("p") == 2


def test_a_replica_with_other_weights_answers_nothing_that_counts(
    stack: ExitStack, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    spec = spec_of(started(stack, stage, version=OTHER).port, started(stack, stage).port)
    completions = complete(spec, *say(40))
    assert {(completion.model_digest, completion.endpoint) for completion in completions} == {
        (THIS, spec.replicas[1].url)
    }
    assert OTHER in caplog.text
    assert THIS in caplog.text


def test_where_all_replicas_have_other_weights_the_error_is_that_of_a_single_endpoint(
    stack: ExitStack, stage: Stage
) -> None:
    spec = spec_of(started(stack, stage, version=OTHER).port, started(stack, stage, version=OTHER).port)
    with pytest.raises(EndpointError, match="the suite pins"):
        complete(spec, *say(10))


def test_one_digest_answers_a_shard_also_where_none_is_pinned(stack: ExitStack, stage: Stage) -> None:
    ports = started(stack, stage, version=OTHER).port, started(stack, stage).port
    completions = complete(spec_of(*ports, version=None), *say(60))
    assert all(completion.error is None for completion in completions)
    assert len({completion.model_digest for completion in completions}) == 1


def test_nobody_there_fails_every_trial_in_passing(stack: ExitStack) -> None:
    completions = complete(spec_of(free_port(), free_port()), *say(30))
    assert {(completion.retryable, "refused" in (completion.error or "")) for completion in completions} == {
        (True, True)
    }


def test_a_server_that_was_found_by_its_address_is_asked_under_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(lambda *_: Reply(body=b'{"response": "yes"}')) as server:
        host = f"models.example:{server.url.rpartition(':')[2]}"
        monkeypatch.setenv("PROCTOR_API_KEYS", json.dumps({host: "the-key-of-the-name"}))
        spec = EndpointSpec(
            backend="infer", url=server.url, served_name="m", model_version=None, server_name="models.example"
        )
        assert complete(spec, "?")[0].text == "yes"
    assert server.asked[0].headers["host"] == host
    assert server.asked[0].headers["authorization"] == "Bearer the-key-of-the-name"
