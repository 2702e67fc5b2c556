"""The gRPC perturbation service in a process of its own, and a client of it, for tests."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from proctor.perturbation.serving.rpc import perturbation_pb2 as pb
from proctor.perturbation.serving.rpc import perturbation_pb2_grpc
from tests.support import ending, wait_until
from tests.token_channel import own_token_of, token_channel

SERVICE = "proctor.v1.Perturbation"
#: Any window and surface: these tests are about the stream.
OPEN = {"min_semantic_distance": 0.0, "max_semantic_distance": 2.0, "max_token_overlap": 1.0}
SHUFFLE = {"perturbation_strategy": "option_shuffle", "num_variants_per_item": 1, **OPEN}


@dataclass(frozen=True)
class Server:
    """A server in a process of its own."""

    process: subprocess.Popen[bytes]
    address: str
    home: Path
    log: Path

    @contextmanager
    def channel(self) -> Iterator[grpc.Channel]:
        token = own_token_of(self.home, "perturbation", self.address)
        with token_channel(self.address, token) as channel:
            yield channel

    def perturb(self, messages: Iterable[pb.PerturbRequest]) -> list[pb.PerturbReply]:
        with self.channel() as channel:
            return list(perturbation_pb2_grpc.PerturbationStub(channel).Perturb(iter(messages), timeout=50))

    def resident_bytes(self) -> int:
        """The process's resident memory; the field after the whole address space's."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def library_rows(self) -> int:
        with closing(sqlite3.connect(self.home / "records.sqlite", timeout=20)) as connection:
            count: int = connection.execute("SELECT count(*) FROM variant_library").fetchone()[0]
            return count


@contextmanager
def serving(home: Path, *options: str, **environment: str) -> Iterator[Server]:
    """Start `proctor perturbation serve` and yield it once it listens."""
    home.mkdir(parents=True, exist_ok=True)
    log = home / "server.log"
    command = [sys.executable, "-m", "proctor", "perturbation", "serve", "--listen", "127.0.0.1:0", *options]
    # One thread: those of several wait for each other, ten times as long where other tests share the cores.
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PROCTOR_HOME": str(home), **environment}
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=variables)
    with ending(process):
        wait_until(lambda: "listens on" in log.read_text() or process.poll() is not None, what="the server's address")
        found = re.search(r"listens on (\S+)", log.read_text())
        assert found is not None, log.read_text()
        yield Server(process, found[1], home, log)


def settings(**config: Any) -> pb.PerturbRequest:
    return pb.PerturbRequest(settings=pb.StreamSettings(perturbation_config=pb.PerturbationConfig(**config)))


def item(item_id: str, question: str, *, choices: Iterable[str] = ("3", "4", "5"), **more: Any) -> pb.PerturbRequest:
    return pb.PerturbRequest(
        item=pb.Item(item_id=item_id, question=question, choices=choices, **{"target": "4", **more})
    )


def code_of(action: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as raised:
        action()
    return raised.value.code(), raised.value.details()


class Gate:
    """No message until it is opened, and then the end."""

    def __init__(self) -> None:
        self._opened = Event()

    def open(self) -> None:
        self._opened.set()

    def __iter__(self) -> Iterator[pb.PerturbRequest]:
        self._opened.wait(50)
        yield from ()


def health(channel: grpc.Channel, service: str = SERVICE) -> str:
    reply = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service), timeout=20)
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status))
