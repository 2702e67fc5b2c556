"""The servers of the real model: the command of each, and where it says that it is ready."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import httpx

from proctor.domain.errors import StackError
from proctor.domain.host import LOOPBACK
from proctor.localstack.real_models import SERVED_NAME, Part, RealModels
from proctor.localstack.triton_server import find
from real_models.places import Places

#: Gibibytes that vLLM keeps for what it has read: all that 16 requests of this model can fill.
_KEPT_GIB: Final = 1
_REQUESTS: Final = 16
#: Within which each can be asked, on a processor that others use as well.
START_S: Final = 400.0
_POLL_S: Final = 0.5
_TAIL: Final = 3_000
_MODULE: Final = "vllm.entrypoints.openai.api_server"


class Command(NamedTuple):
    """A server to start, in a process group of its own: vLLM's engine is a child that a killed server leaves behind."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """All of its environment."""
    url: str
    """The endpoint, as a suite names it."""
    ready: str
    """A URL that answers 200 when the model can be asked."""
    served_name: str = SERVED_NAME


class Ports(NamedTuple):
    """Where a server listens, on loopback. Only Triton takes all three."""

    api: int
    """OpenAI's API, or gRPC."""
    http: int
    metrics: int

    @classmethod
    def beginning_at(cls, first: int) -> Ports:
        """Three that follow each other."""
        return cls(first, first + 1, first + 2)


class Server(NamedTuple):
    """One of the kinds of server."""

    name: str
    needs: tuple[Part, ...]
    command: Callable[[RealModels, Ports], Command]


def llama_cpp(models: RealModels, ports: Ports) -> Command:
    """llama.cpp's server on the quantised model, under the name that it has by default: the file's path."""
    program = Path(__file__).with_name("llama_cpp.py")
    places = Places.of(models)
    argv = (str(places.python), str(program), str(places.quantised), str(ports.api))
    return Command(argv, _environment(), _url(ports), f"http://{LOOPBACK}:{ports.api}/health", str(places.quantised))


def vllm(
    models: RealModels,
    ports: Ports,
    *,
    weights: Path | None = None,
    served_name: str = SERVED_NAME,
    options: Mapping[str, str] = MappingProxyType({}),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Command:
    """vLLM's server of OpenAI's API.

    Args:
        models: what is set up.
        ports: where it listens.
        weights: a folder with a model of the same kind; None is the model that is set up.
        served_name: what requests call it.
        options: of vLLM, over those that it has here.
        variables: of its environment, over those that it has here.
    """
    places = Places.of(models)
    given = {
        "--model": str(weights or places.weights),
        "--served-model-name": served_name,
        "--dtype": "bfloat16",
        "--max-num-seqs": str(_REQUESTS),
        "--host": LOOPBACK,
        "--port": str(ports.api),
        **options,
    }
    argv = (str(places.python), "-m", _MODULE, "--enforce-eager", *(word for one in given.items() for word in one))
    env = _environment(**{**_of_vllm(), **variables})
    return Command(argv, env, _url(ports), f"http://{LOOPBACK}:{ports.api}/health", served_name)


def triton(models: RealModels, ports: Ports) -> Command:
    """Triton with its vLLM backend.

    Raises:
        LookupError: there is no Triton here.
    """
    installation = find()
    if installation is None:
        raise LookupError("Triton is not installed")
    places = Places.of(models)
    argv = (
        str(installation.server),
        f"--model-repository={places.repository}",
        f"--backend-directory={places.backends}",
        "--model-control-mode=none",
        *(f"--{protocol}-address={LOOPBACK}" for protocol in ("grpc", "http", "metrics")),
        f"--grpc-port={ports.api}",
        f"--http-port={ports.http}",
        f"--metrics-port={ports.metrics}",
        # Two servers at once must not share their regions of memory.
        f"--backend-config=python,shm-region-prefix-name=proctor_models_{ports.api}_",
        "--exit-timeout-secs=10",
        "--log-info=false",
    )
    stubs = places.stub_environment
    libraries = [str(installation.libpython.parent)] if installation.libpython is not None else []
    env = _environment(
        **_of_vllm(),
        PATH=os.pathsep.join([str(stubs / "bin"), os.environ.get("PATH", os.defpath)]),
        VIRTUAL_ENV=str(stubs),
        LD_LIBRARY_PATH=os.pathsep.join(filter(None, [*libraries, os.environ.get("LD_LIBRARY_PATH")])),
        LC_ALL="C.UTF-8",
        # The stub's own threads do not survive a fork.
        VLLM_WORKER_MULTIPROCESSING_METHOD="spawn",
    )
    return Command(argv, env, f"grpc://{LOOPBACK}:{ports.api}", f"http://{LOOPBACK}:{ports.http}/v2/health/ready")


SERVERS: Final = {
    one.name: one
    for one in (
        Server("llama.cpp", (Part.ENVIRONMENT, Part.WEIGHTS), llama_cpp),
        Server("vllm", (Part.ENVIRONMENT, Part.WEIGHTS), vllm),
        Server("triton", (Part.ENVIRONMENT, Part.WEIGHTS, Part.BACKEND), triton),
    )
}


def is_ready(command: Command) -> bool:
    """Whether a server says that its model can be asked."""
    try:
        return httpx.get(command.ready, timeout=2, trust_env=False).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


@contextmanager
def running(command: Command, log: Path, *, timeout_s: float = START_S) -> Iterator[subprocess.Popen[bytes]]:
    """A server that can be asked, for the time of a block; what it says goes to a file.

    Raises:
        StackError: it ended before, or took longer; with the end of what it said.
    """
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command.argv, env=command.env, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        deadline_s = time.monotonic() + timeout_s
        while not is_ready(command):
            if process.poll() is not None or time.monotonic() > deadline_s:
                said = log.read_text("utf-8", "replace")[-_TAIL:]
                raise StackError(
                    f"{Path(command.argv[0]).name} is not ready (its exit status: {process.returncode}): {said}"
                )
            time.sleep(_POLL_S)
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes], *, grace_s: float = 15) -> None:
    """End a server and its children, which not every server takes with it."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=grace_s)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def clear_regions(ports: Ports) -> None:
    """Remove the regions of memory that a killed Triton left behind."""
    for region in Path("/dev/shm").glob(f"proctor_models_{ports.api}_*"):  # noqa: S108 - where Triton's backend keeps them
        region.unlink(missing_ok=True)


def _url(ports: Ports) -> str:
    return f"http://{LOOPBACK}:{ports.api}/v1"


def _of_vllm() -> dict[str, str]:
    return {"VLLM_CPU_KVCACHE_SPACE": str(_KEPT_GIB), "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}


def _environment(**added: str) -> dict[str, str]:
    """This process' own, without what is meant for another Python, or would keep a server to one core."""
    unwanted = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}
    return {name: value for name, value in os.environ.items() if name not in unwanted} | added
