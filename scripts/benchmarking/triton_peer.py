"""A real Triton server with the benchmark's models, and the peer: a bare asyncio loop of tritonclient's on it."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarking.null_model import DIGEST, texts
from benchmarking.servers import process, wait_for
from proctor.domain.trial import Decoding
from proctor.inference.reference.triton_repository import model_config
from proctor.inference.triton.vllm import sampling_parameters
from proctor.inference.worker.window import MAX_REQUESTS
from proctor.localstack.ports import free_ports
from proctor.localstack.triton_server import triton_command


class Waits(NamedTuple):
    """How long a model waits, in milliseconds, for how many requests together: 0 for as many as there are."""

    ms: int
    batch: int = 0


#: 16 requests in 20 ms are 160,000 tokens a second, more than any GPU makes, and leave two processors half of their
#: time. Without a limit the 64 in flight make four times as many, which is more than two processors can pass on: they,
#: and not the model, then bound the server.
MODELS: Final = {"batches": Waits(20, batch=16), "waits": Waits(20), "at-once": Waits(0)}
_SOURCE: Final = Path(__file__).with_name("triton_model.py")


@contextmanager
def triton(folder: Path) -> Iterator[str]:
    """A server with the models; yields host and port of its gRPC.

    Raises:
        StackError: no Triton server can run here, or it does not start.
    """
    for name, waits in MODELS.items():
        version = folder / "bundle" / "models" / name / "1"
        version.mkdir(parents=True)
        said = {"wait_ms": waits.ms, "batch": waits.batch}
        lines = [f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in said.items()]
        (version.parent / "config.pbtxt").write_text(model_config(name, DIGEST) + "".join(lines), "utf-8")
        (version / "model.py").write_text(_SOURCE.read_text("utf-8"), "utf-8")
        (version / "answers.json").write_text(json.dumps(texts()), "utf-8")
    http, grpc, metrics = free_ports(3, Random())
    command = triton_command(
        folder / "bundle", http_port=http, grpc_port=grpc, metrics_port=metrics, runtime_dir=folder / "triton"
    )
    log = folder / "triton.log"
    with process(command.argv, log, command.env) as server:
        wait_for(lambda: _ready(http), server, log)
        yield f"127.0.0.1:{grpc}"


def bare_loop(address: str, model: str, prompts: Sequence[str], decoding: Decoding) -> float:
    """Seconds in which tritonclient alone gets an answer to every prompt, as many in flight as Proctor has."""
    return asyncio.run(_ask_all(address, model, prompts, decoding))


async def _ask_all(address: str, model: str, prompts: Sequence[str], decoding: Decoding) -> float:
    from tritonclient.grpc.aio import InferenceServerClient

    free = asyncio.Semaphore(MAX_REQUESTS)

    async def requests() -> AsyncIterator[dict[str, Any]]:
        for number, prompt in enumerate(prompts):
            await free.acquire()
            yield {"model_name": model, "inputs": _tensors(prompt, decoding), "request_id": str(number)}

    answers = dict[str, bytes]()
    async with InferenceServerClient(address) as client:
        started_s = time.monotonic()
        async for result, error in client.stream_infer(requests()):
            if error is not None:
                raise error
            answers[result.get_response().id] = result.as_numpy("text_output")[0]
            free.release()
            if len(answers) == len(prompts):
                break
        return time.monotonic() - started_s


def _tensors(prompt: str, decoding: Decoding) -> list[Any]:
    """The tensors that Proctor sends."""
    values: dict[str, tuple[str, Any]] = {
        "text_input": ("BYTES", np.array([prompt.encode()], dtype=np.object_)),
        "stream": ("BOOL", np.array([False])),
        "sampling_parameters": ("BYTES", np.array([sampling_parameters(decoding).encode()], dtype=np.object_)),
        **{
            name: ("BOOL", np.array([True]))
            for name in (
                "exclude_input_in_output",
                "return_finish_reason",
                "return_num_input_tokens",
                "return_num_output_tokens",
            )
        },
    }
    from tritonclient.grpc import InferInput

    tensors = []
    for name, (kind, array) in values.items():
        tensor = InferInput(name, [1], kind)
        tensor.set_data_from_numpy(array)
        tensors.append(tensor)
    return tensors


def _ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
