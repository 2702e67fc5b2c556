"""A real Triton server over a bundle of untrained models, for tests."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from proctor.domain.endpoint import EndpointSpec
from tests.support import free_port, missing, wait_until

QUESTION = "Question: what is the capital of {entity}?\nOptions:\n{options}\nAnswer:"
_WORDS = ["red", "green", "blue", "pink", "gold", "grey", "teal", "plum", "lime", "rust"]


def prompt(number: int) -> str:
    """One of many prompts that differ in the order of their options."""
    words = random.Random(number).sample(_WORDS, 10)
    options = "\n".join(f"{letter}. {word}" for letter, word in zip("ABCDEFGHIJ", words, strict=True))
    return QUESTION.format(entity=("zorvex", "quell", "mirran")[number % 3], options=options)


def write_untrained_bundle(
    bundle: Path, names: tuple[str, ...] = ("reference-clean",), *, batched: bool = False
) -> None:
    """Models with random weights, as a bundle that Triton can serve."""
    import torch
    from safetensors.torch import save_file

    from proctor.inference.reference.model import ModelShape, Network, Vocabulary
    from proctor.inference.reference.triton_repository import write_model_repository

    vocabulary = Vocabulary.of([prompt(0), prompt(1), prompt(2), " ".join(_WORDS)])
    shape = ModelShape()
    for seed, name in enumerate(names):
        torch.manual_seed(seed)
        network = Network(len(vocabulary), shape)
        # Far larger than any training would begin with: the answers then depend on every token of the prompt.
        weights = {
            key: value if "norm" in key else torch.randn_like(value) * (1.0 if key == "embedding.weight" else 0.5)
            for key, value in network.state_dict().items()
        }
        folder = bundle / "models" / name / "1"
        folder.mkdir(parents=True)
        save_file(weights, folder / "model.safetensors")
        document = {"shape": shape._asdict(), "tokens": vocabulary.tokens}
        (folder / "vocabulary.json").write_text(json.dumps(document), "utf-8")
    write_model_repository(bundle, batched=batched)


@dataclass
class RunningTriton:
    """A Triton server that is ready, and how to reach it."""

    bundle: Path
    grpc_port: int
    http_port: int
    metrics_port: int
    runtime_dir: Path
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> Path:
        """What the server has said."""
        return self.runtime_dir / "triton.log"

    def keep_up(self) -> None:
        """Start it again, on the same ports, where it has ended by itself.

        Triton 2.51 aborts at times when a request is cancelled while its answer leaves
        (triton-inference-server/server#8034); the test that met it fails, and not all that come after it.
        """
        if self.process.poll() is not None:
            _kill(self)
            self.process = _launch(
                self.bundle, (self.grpc_port, self.http_port, self.metrics_port), runtime_dir=self.runtime_dir
            )
            wait_until(lambda: _is_ready(self), timeout_s=45, what="Triton, once more")

    def spec(self, name: str = "reference-clean", *, version: str | None = None) -> EndpointSpec:
        """The endpoint of one of its models, pinned to the weights it serves."""
        from proctor.inference.reference.model import weights_digest

        pinned = version or weights_digest(self.bundle / "models" / name.removesuffix("-batched") / "1")
        url = f"grpc://127.0.0.1:{self.grpc_port}"
        return EndpointSpec(backend="triton", url=url, served_name=name, model_version=pinned)

    def answered(self, name: str) -> int:
        """How many requests Triton itself says that a model has answered."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=5) as response:
            lines = response.read().decode().splitlines()
        wanted = [
            line for line in lines if line.startswith("nv_inference_request_success{") and f'model="{name}"' in line
        ]
        return sum(int(float(line.rsplit(" ", 1)[1])) for line in wanted)


def _start(bundle: Path, runtime_dir: Path) -> RunningTriton:
    from proctor.localstack.triton_server import obstacle

    if reason := obstacle():
        missing(f"no Triton server: {reason}")
    ports = free_port(), free_port(), free_port()
    return RunningTriton(bundle, *ports, runtime_dir, _launch(bundle, ports, runtime_dir=runtime_dir))


def _launch(bundle: Path, ports: tuple[int, int, int], *, runtime_dir: Path) -> subprocess.Popen[bytes]:
    from proctor.localstack.triton_server import triton_command

    grpc_port, http_port, metrics_port = ports
    command = triton_command(
        bundle, grpc_port=grpc_port, http_port=http_port, metrics_port=metrics_port, runtime_dir=runtime_dir
    )
    with (runtime_dir / "triton.log").open("ab") as stream:
        # A group of its own: the Python backend's stubs outlive a killed server, and go with the group.
        return subprocess.Popen(
            command.argv,
            env={**os.environ, **command.env},
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def start_and_wait_for_the_end(bundle: Path, runtime_dir: Path) -> tuple[int, str]:
    """Start a server that is expected to refuse its models; its exit status and log."""
    server = _start(bundle, runtime_dir)
    try:
        return server.process.wait(timeout=40), server.log.read_text("utf-8", "replace")
    finally:
        _kill(server)


@contextmanager
def triton_server(bundle: Path, runtime_dir: Path) -> Iterator[RunningTriton]:
    """A server that is ready; it is ended at exit."""
    server = _start(bundle, runtime_dir)
    try:
        try:
            wait_until(lambda: _is_ready(server), timeout_s=45, what="Triton")
        except Aborted:
            server.keep_up()
        yield server
    finally:
        server.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.process.wait(timeout=15)
        _kill(server)


def _kill(server: RunningTriton) -> None:
    with suppress(ProcessLookupError):
        os.killpg(server.process.pid, signal.SIGKILL)
    server.process.wait()


class Aborted(AssertionError):
    """Triton crashed of itself, as it now and then does over a lock that it has just made: once is let pass."""


def _is_ready(server: RunningTriton) -> bool:
    if server.process.poll() is not None:
        raise (Aborted if server.process.returncode == -signal.SIGABRT else AssertionError)(
            f"Triton ended with {server.process.returncode}:\n{server.log.read_text('utf-8', 'replace')}"
        )
    # The metrics' port is opened after the other: a server that says that it is ready may not serve them yet.
    asked = (f"{server.http_port}/v2/health/ready", f"{server.metrics_port}/metrics")
    return all(map(_is_served, asked))


def _is_served(where: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{where}", timeout=1) as response:
            return bool(response.status == 200)
    except OSError:
        return False
