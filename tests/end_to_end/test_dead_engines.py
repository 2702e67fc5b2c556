"""An audit during which the model's engine dies, while its server stays ready: it waits, goes on, and loses nothing.

Triton is real, its model says what vLLM's backend says; over OpenAI's protocol a server answers 400 in vLLM's words.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proctor.cli.audits.reaching import desk
from proctor.gateway.status import AuditStatus
from tests.backend_kinds import VERSION
from tests.misbehaving_triton import DECOUPLED, write_misbehaving_bundle
from tests.misbehaviour import ENGINE_DIED, OUT_OF_ORDER, Stage
from tests.replay_server import recorded_answers, replay_server
from tests.standing_stack import standing_stack
from tests.suites.gsm8k import gsm8k_suite
from tests.support import ending, shared_data, wait_until
from tests.triton_server import triton_server

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


class Model(NamedTuple):
    """A served model whose engine dies and comes back as it is told."""

    suite: Path
    die: Callable[[], None]
    come_back: Callable[[], None]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("standing")
    with standing_stack(folder / "home", "--no-triton", "--no-metrics", "--no-gateway") as home:
        yield home


def suite_file(folder: Path, endpoint: str, **model: Any) -> Path:
    imported = {
        "perturbation_strategy": "imported",
        "rewordings_path": str(shared_data() / "gsm8k" / "rephrased.jsonl"),
    }
    path = gsm8k_suite(folder, endpoint, items=50, perturbation=imported)
    suite = json.loads(path.read_text("utf-8"))
    suite["model_config"] |= model
    path.write_text(json.dumps(suite), "utf-8")
    return path


@pytest.fixture
def openai(tmp_path: Path) -> Iterator[Model]:
    with replay_server(recorded_answers(shared_data())) as replay:

        def say(words: str | None) -> Callable[[], None]:
            return lambda: setattr(replay, "refuses", words)

        yield Model(suite_file(tmp_path, replay.url), say(ENGINE_DIED), say(None))


@pytest.fixture
def triton(tmp_path: Path) -> Iterator[Model]:
    (tmp_path / "stage").mkdir()
    (tmp_path / "run").mkdir()
    stage = Stage(tmp_path / "stage")
    write_misbehaving_bundle(tmp_path / "bundle", stage.folder, version=VERSION)
    with triton_server(tmp_path / "bundle", tmp_path / "run") as server:
        suite = suite_file(
            tmp_path, f"grpc://127.0.0.1:{server.grpc_port}", model_version=VERSION, served_name=DECOUPLED
        )
        yield Model(suite, lambda: stage.raise_flag(OUT_OF_ORDER), lambda: stage.lower_flag(OUT_OF_ORDER))


@pytest.mark.parametrize("kind", ["openai", "triton"])
def test_an_audit_waits_for_a_dead_engine_of_a_server_that_is_ready_and_loses_nothing(
    request: pytest.FixtureRequest, home: Path, kind: str
) -> None:
    model: Model = request.getfixturevalue(kind)
    command = [sys.executable, "-m", "proctor", "audit", "run", str(model.suite), "--home", str(home)]
    command += ["--format", "json"]
    calm = subprocess.run(command, capture_output=True, text=True)
    assert calm.returncode in (0, 3), calm.stderr
    model.die()
    begun = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with ending(begun) as running, desk(home, None) as audits:

        def newest() -> AuditStatus:
            (status,) = audits.audits(1)
            assert isinstance(status, AuditStatus)
            return status

        wait_until(
            lambda: newest().away_s is not None or running.poll() is not None, timeout_s=90, what="the engine's death"
        )
        found = newest()
        assert running.poll() is None, "it did not wait"
        assert found.failures == ()
        model.come_back()
        out, errors = running.communicate(timeout=150)
        assert running.returncode == calm.returncode, errors
        assert newest().failures == ()
    once, again = json.loads(calm.stdout), json.loads(out)
    assert again["report_path"] != once["report_path"]
    assert {key: again[key] for key in again if key not in ("report_path", "registry_version")} == {
        key: once[key] for key in once if key not in ("report_path", "registry_version")
    }
