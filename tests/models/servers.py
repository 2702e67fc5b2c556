"""A server of the real model, as `scripts/serve_model.py` starts it, for the time of a block."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

import pytest

from proctor.localstack.ports import free_ports
from proctor.localstack.real_models import MODEL, Part, RealModels
from real_models.places import Places
from real_models.serving import SERVERS, Command, Ports, clear_regions, running
from tests.support import missing

#: Set by `make test-models`, where what is missing is a failure.
ASKED_FOR: Final = "PROCTOR_TEST_MODELS"


class Served(NamedTuple):
    """A server that is ready."""

    name: str
    command: Command
    weights: str
    """Digest of the bf16 weights, of which the quantised ones are another form."""
    group: int
    """The group of its processes."""

    def section(self, **changed: Any) -> dict[str, Any]:
        """A suite's section of the model."""
        return {
            "model_id": f"HuggingFaceTB/{MODEL}",
            "model_version": self.weights,
            "endpoint": self.name,
            "served_name": self.command.served_name,
            **changed,
        }


def kill_engine(served: Served) -> None:
    """Kill vLLM's engine, and leave the server around it alone."""
    engines = [
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _is_engine(entry, served.group)
    ]
    assert len(engines) == 1, engines
    os.kill(engines[0], signal.SIGKILL)


def _is_engine(entry: Path, group: int) -> bool:
    try:
        return os.getpgid(int(entry.name)) == group and b"VLLM::EngineCore" in (entry / "cmdline").read_bytes()
    except OSError:
        # It ended meanwhile.
        return False


def needed(models: RealModels, *parts: Part) -> None:
    """Skip where a part is not set up; fail where it was asked for."""
    if reason := models.lacking(*parts):
        _absent(reason)


def drawn_ports() -> dict[str, Ports]:
    """Ports for each kind of server."""
    return {name: Ports(*free_ports(3, random.Random())) for name in SERVERS}


@contextmanager
def serving(name: str, ports: Ports, folder: Path) -> Iterator[Served]:
    """One of the servers, which ends with the block, pass or fail."""
    models, server = RealModels.here(), SERVERS[name]
    needed(models, *server.needs)
    command = server.command(models, ports)
    begun = time.monotonic()
    try:
        with running(command, folder / f"{name}.log") as process:
            print(f"{name}: ready after {time.monotonic() - begun:.0f} s")
            weights = (models.installed(Part.WEIGHTS) or {})["weights"]
            yield Served(name, command, weights, process.pid)
    finally:
        clear_regions(ports)


def endpoints(folder: Path, at: dict[str, Ports]) -> Path:
    """The operator's file that names the servers, and gives Triton, which takes text alone, the model's template."""
    models = RealModels.here()
    named: dict[str, Any] = {name: server.command(models, at[name]).url for name, server in SERVERS.items()}
    template = Places.of(models).weights / "chat_template.jinja"
    named["triton"] = {"url": named["triton"], "chat_template": str(template)}
    path = folder / "endpoints.json"
    path.write_text(json.dumps(named))
    return path


def _absent(reason: str) -> NoReturn:
    if os.environ.get(ASKED_FOR):
        pytest.fail(f"missing, and asked for: {reason}")
    missing(reason)
