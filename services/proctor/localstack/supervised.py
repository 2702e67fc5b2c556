"""A plan in the hands of a supervisor process, as the process that started it or another one sees it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from proctor.domain.errors import StackError
from proctor.localstack.log_files import open_log
from proctor.localstack.service import Plan
from proctor.localstack.state import POLL_S, STOP_TIMEOUT_S, ServiceStatus, forget, with_log
from proctor.runtime.processes import MARK, is_same_process, kill_until_none, marked, signal_all, started_at_ticks

Progress = Callable[[ServiceStatus], None]


class Supervised:
    """A running supervisor: a child that ends with this process, or one that lives by itself."""

    def __init__(self, home: Path, token: str, pid: int, start_ticks: int) -> None:
        """A handle on a supervisor that is no child of this process.

        Args:
            home: the home folder of its plan.
            token: its plan's token.
            pid: the supervisor's process.
            start_ticks: when that process began (`started_at_ticks`).
        """
        self._home = home
        self._token = token
        self._pid = pid
        self._start_ticks = start_ticks
        self._child: subprocess.Popen[bytes] | None = None

    @classmethod
    def start(cls, plan: Plan, lock: int, progress: Progress | None = None) -> Self:
        """Run a plan and wait until all of its services are ready.

        Args:
            lock: the locked descriptor of `locked(plan.home)`, which the supervisor inherits.
            progress: called with a service's status whenever it changes.

        Raises:
            StackError: a service failed, with the tail of its log. Nothing is left running then.
        """
        child = _spawn(plan, lock)
        supervised = cls(plan.home, plan.token, child.pid, started_at_ticks(child.pid) or 0)
        supervised._child = child
        try:
            _hand_over(plan, child)
            _follow(plan, child, progress)
        except BaseException:
            supervised.stop()
            raise
        return supervised

    @property
    def attached(self) -> bool:
        """Whether it ends with this process."""
        return self._child is not None

    def detach(self) -> None:
        """Let it live on when this process ends."""
        if self._child is None:
            return
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        with suppress(BrokenPipeError):
            self._child.stdin.write(b"detach\n")
            self._child.stdin.close()
        self._child.stdout.close()
        # Nobody waits for it any more, and Popen would warn of a child that still runs.
        self._child.returncode = 0
        self._child = None

    def stop(self) -> None:
        """End it and every process of its plan; returns when none is left."""
        if self._child is not None:
            self._stop_child(self._child)
        else:
            self._stop_other()
        kill_until_none(lambda: marked(self._token), timeout_s=STOP_TIMEOUT_S)
        forget(self._home, self._token)

    @staticmethod
    def _stop_child(child: subprocess.Popen[bytes]) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        with suppress(BrokenPipeError):
            child.stdin.close()
        child.stdout.close()
        try:
            child.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def _stop_other(self) -> None:
        deadline_s = time.monotonic() + STOP_TIMEOUT_S
        if self._lives():
            # Once: the supervisor takes a second signal for an order to end without waiting.
            signal_all([self._pid], signal.SIGTERM)
        while self._lives():
            if time.monotonic() > deadline_s:
                signal_all([self._pid], signal.SIGKILL)
            time.sleep(POLL_S)

    def _lives(self) -> bool:
        return is_same_process(self._pid, self._start_ticks)


def python_environment() -> dict[str, str]:
    """PYTHONPATH for a child that starts in another folder and must import this very package.

    An installed Proctor needs no path: one in front of the standard library could hide a part of it.
    """
    paths = [str(Path(path).absolute()) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    package_root = Path(__file__).resolve().parents[2]
    if package_root.name != "site-packages" and str(package_root) not in paths:
        paths.insert(0, str(package_root))
    return {"PYTHONPATH": os.pathsep.join(paths)} if paths else {}


def _spawn(plan: Plan, lock: int) -> subprocess.Popen[bytes]:
    with os.fdopen(open_log(plan.log_path("supervisor")), "ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "proctor.localstack.supervisor", str(lock)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **python_environment(), MARK: plan.token},
            pass_fds=[lock],
            start_new_session=True,
        )


def _hand_over(plan: Plan, child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    # Should the supervisor be dead already, `_follow` sees the end of its output and has the better message.
    with suppress(BrokenPipeError):
        child.stdin.write(plan.to_json().encode() + b"\n")
        child.stdin.flush()


def _follow(plan: Plan, child: subprocess.Popen[bytes], progress: Progress | None) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        event = json.loads(line)
        kind = event.pop("event")
        if kind == "service" and progress is not None:
            progress(ServiceStatus.from_row(event))
        elif kind == "failed":
            raise StackError(with_log(event["message"], plan.log_path(event["service"])))
        elif kind == "ready":
            return
    raise StackError(with_log("the supervisor ended before the stack was ready", plan.log_path("supervisor")))
