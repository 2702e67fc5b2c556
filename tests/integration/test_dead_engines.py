"""Two real servers behind one endpoint, of which one stays ready while its engine is dead: Triton's, and OpenAI's."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from proctor.domain.endpoint import EndpointSpec, Replica
from proctor.domain.trial import Arm, Completion, Decoding, Trial
from proctor.inference.worker.backend import Backend, Probe
from proctor.inference.worker.open_backend import open_backend
from proctor.runtime.settings import Settings
from tests.backend_kinds import MODEL, VERSION
from tests.misbehaving_http import misbehaving_http
from tests.misbehaving_triton import DECOUPLED, write_misbehaving_bundle
from tests.misbehaviour import DEAD, ENGINE_DIED, Stage, tell
from tests.triton_server import triton_server

MENDED = "mended"
DECODING = Decoding(max_tokens=64)


class Two(NamedTuple):
    """An endpoint of two servers; the engine of the first is dead until its flag MENDED is raised."""

    spec: EndpointSpec
    dead: Stage
    alive: Stage


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PROCTOR_API_KEY", "PROCTOR_API_KEYS", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(params=["triton", "openai"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Two]:
    stages = []
    for name in ("dead", "alive"):
        (tmp_path / name).mkdir()
        stages.append(Stage(tmp_path / name))
    dead, alive = stages
    alive.raise_flag(MENDED)
    with ExitStack() as running:
        if request.param == "triton":
            urls = [f"grpc://127.0.0.1:{triton(running, stage, tmp_path)}" for stage in stages]
            name, version = DECOUPLED, VERSION
        else:
            ports = [running.enter_context(misbehaving_http(stage, model=MODEL)) for stage in stages]
            urls = [f"http://127.0.0.1:{port}/v1" for port in ports]
            name, version = MODEL, None
        replicas = tuple(Replica(url=url) for url in urls)
        spec = EndpointSpec(
            backend=request.param, url=urls[0], served_name=name, model_version=version, replicas=replicas
        )
        yield Two(spec, dead, alive)


def triton(running: ExitStack, stage: Stage, folder: Path) -> int:
    """The port of a server whose model acts on a stage."""
    bundle, runtime = folder / f"{stage.folder.name}-bundle", folder / f"{stage.folder.name}-run"
    runtime.mkdir()
    write_misbehaving_bundle(bundle, stage.folder, version=VERSION)
    return running.enter_context(triton_server(bundle, runtime)).grpc_port


def used(spec: EndpointSpec, use: Callable[[Backend], Awaitable[None]]) -> None:
    async def main() -> None:
        backend = open_backend(spec, Settings(home=Path()))
        try:
            await use(backend)
        finally:
            await backend.close()

    asyncio.run(main())


async def asked(backend: Backend, *prompts: str) -> list[Completion]:
    trials = [Trial(arm=Arm.CANONICAL, item_id=str(place), prompt=prompt) for place, prompt in enumerate(prompts)]
    return await backend.complete(trials, DECODING, deadline_s=30.0)


def prompt(name: str) -> str:
    return tell(name, say=name, always=DEAD, until=MENDED)


@pytest.mark.timeout(180)
def test_the_one_whose_engine_is_dead_is_left_alone_and_asked_a_prompt_now_and_then_until_it_answers(
    two: Two, caplog: pytest.LogCaptureFixture
) -> None:
    numbers = itertools.count()

    async def use(backend: Backend) -> None:
        names = [f"p{next(numbers)}" for _ in range(120)]
        got = await asked(backend, *map(prompt, names))
        assert [(one.text, one.error) for one in got] == [(name, None) for name in names]
        assert ENGINE_DIED in caplog.text
        assert "is left alone for a while" in caplog.text
        tried = sum(two.dead.times_asked(name) for name in names)
        assert 5 <= tried < 60, "half of them were its turn"
        found: Probe = await backend.probe()
        assert found.ok
        assert "of 2 replicas" not in found.detail, "both say that they are ready"
        two.dead.raise_flag(MENDED)
        until = time.monotonic() + 60
        answers_again = False
        while not answers_again and time.monotonic() < until:
            name = f"p{next(numbers)}"
            (one,) = await asked(backend, prompt(name))
            assert one.error is None
            answers_again = two.dead.times_asked(name) > 0
            await asyncio.sleep(0.05)
        assert answers_again, "nobody found that its engine is back"

    used(two.spec, use)
