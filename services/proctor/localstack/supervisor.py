"""`python -m proctor.localstack.supervisor LOCK`: starts the services of a local stack and ends every one of them.

The process that starts it holds the other end of its standard input. The first line there is the plan
(`proctor.localstack.service.Plan`, JSON). End of file means that the starter is gone, however it died, and ends the
stack; a line `detach` before it lets the stack live on by itself (`proctor up`). SIGTERM, SIGINT and SIGHUP end the
stack too, a second one without waiting for anybody. Events leave on standard output, one JSON object a line; the
whole state is in HOME/stack.json while the supervisor lives. A service that dies once all were ready is started again,
later and later, until it is given up (`proctor.localstack.restarts`): with the ports, the secrets and the files that it
had, so that whoever uses it finds it where it was. One that crashes before is started once more. LOCK is an inherited
descriptor of HOME/stack.lock, locked by the starter: the lock ends with the supervisor, so two stacks never share a
home.

Nothing survives it: it is a child subreaper, so a service's double-forked children become its own and are killed;
direct children get SIGKILL from the kernel should the supervisor itself be killed, and whatever is left then carries
the stack's mark in its environment, by which the next start on the same home ends it.

Standard library only, one thread.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.domain.host import LOOPBACK
from proctor.localstack.log_files import ServiceLog, keeping_logs
from proctor.localstack.restarts import Restarts
from proctor.localstack.service import Plan, Readiness, Service, ServiceState
from proctor.runtime.files import write_atomic
from proctor.runtime.private import work_privately
from proctor.runtime.processes import descendants, kill_until_none, started_at_ticks

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
#: A loopback server answers in microseconds or is not ready; the loop must stay quick to stop.
_PROBE_TIMEOUT_S = 0.25
_PROBE_EVERY_S = 0.05
#: Longer than any service's own `stop_timeout_s`, shorter than a person's patience.
_STOP_BUDGET_S = 12.0
_KILL_BUDGET_S = 10.0
#: Of a fault in the program itself. One such death while everything starts is met with a second start (Triton 2.51 now
#: and then aborts over a lock that it has just made); another end would only come again.
_CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
_LIVE = (ServiceState.STARTING, ServiceState.READY)

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def _die_with(supervisor: int) -> None:
    """Between fork and exec: be killed when the supervisor dies, which may have happened already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(1)


@dataclass
class _Orders:
    """Orders to stop so far. A signal handler counts them, so they may come before there is anything to stop."""

    stop: int = 0


@dataclass
class _Run:
    """A service and what became of it."""

    service: Service
    state: ServiceState = ServiceState.WAITING
    process: subprocess.Popen[bytes] | None = None
    log: ServiceLog | None = None
    started_s: float = 0.0
    ready_at_s: float | None = None
    ready_after_s: float | None = None
    log_from: int = 0
    """Where in its log the present process begins."""
    cause: str = ""
    """Why it died last, or is about to."""
    detail: str = ""
    restarts: Restarts = field(default_factory=Restarts)
    start_again_s: float = 0.0
    kill_at_s: float | None = None

    def is_due(self, now_s: float) -> bool:
        """Whether it is to be started as soon as what it comes after is ready."""
        again = self.state is ServiceState.RESTARTING and now_s >= self.start_again_s
        return again or self.state is ServiceState.WAITING

    def row(self, log: Path) -> dict[str, Any]:
        return {
            "name": self.service.name,
            "pid": self.process.pid if self.process and self.state in _LIVE else None,
            "ports": dict(self.service.ports),
            "version": self.service.version,
            "state": self.state.value,
            "detail": self.detail,
            "ready_after_s": self.ready_after_s,
            "log": str(log),
        }


class Supervisor:
    """Runs one plan until its starter goes, a signal comes, or a service dies before all were ready."""

    def __init__(self, plan: Plan, wake: int, orders: _Orders) -> None:
        self._plan = plan
        self._orders = orders
        self._runs = {service.name: _Run(service) for service in plan.services}
        self._selector = selectors.DefaultSelector()
        self._selector.register(wake, selectors.EVENT_READ, "wake")
        self._selector.register(0, selectors.EVENT_READ, "control")
        self._detached = False
        self._state = "starting"
        self._failure: str | None = None
        self._culprit = ""

    def run(self) -> int:
        """Start everything, watch, end everything. The exit status is 1 when the start failed."""
        try:
            self._save()
            while not self._orders.stop and self._failure is None:
                self._launch_due()
                self._probe()
                self._wait(self._patience_s())
        finally:
            self._end_all()
        if self._failure is not None:
            self._emit(event="failed", service=self._culprit, message=self._failure)
            return 1
        return 0

    def _patience_s(self) -> float | None:
        """How long nothing can become due by itself."""
        if any(run.state is ServiceState.STARTING for run in self._runs.values()):
            return _PROBE_EVERY_S
        now_s = time.monotonic()
        # One that is due already waits for another service, and is looked at when that one is ready.
        due_s = (run.start_again_s for run in self._runs.values() if run.state is ServiceState.RESTARTING)
        return min((at_s - now_s for at_s in due_s if at_s > now_s), default=None)

    def _launch_due(self) -> None:
        for run in self._runs.values():
            due = run.is_due(time.monotonic())
            if due and all(self._runs[name].state is ServiceState.READY for name in run.service.after):
                self._launch(run)

    def _launch(self, run: _Run) -> None:
        service = run.service
        _clear(service)
        supervisor = os.getpid()
        try:
            # What a process said that died stays before what the next one says.
            run.log = ServiceLog(self._plan.log_path(service.name), anew=not run.restarts.total)
            run.log.register(self._selector)
            run.log_from = run.log.size
            with run.log.output() as output:
                run.process = subprocess.Popen(
                    service.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **service.env},
                    cwd=self._plan.home,
                    process_group=0,
                    preexec_fn=lambda: _die_with(supervisor),
                )
        except (OSError, subprocess.SubprocessError) as error:
            run.cause = f"cannot be started: {error}"
            self._died(run)
            return
        run.state, run.started_s, run.ready_at_s = ServiceState.STARTING, time.monotonic(), None
        if run.restarts.total:
            run.detail, run.cause = f"restart {run.restarts.total}: it {run.cause}", ""
        self._changed(run)

    def _probe(self) -> None:
        for run in self._runs.values():
            if run.state is not ServiceState.STARTING:
                continue
            after_s = time.monotonic() - run.started_s
            if _is_ready(run.service.ready, self._plan.log_path(run.service.name), run.log_from):
                run.state, run.ready_at_s, run.ready_after_s = ServiceState.READY, time.monotonic(), round(after_s, 2)
                self._changed(run)
                self._launch_due()
            elif after_s > run.service.ready_timeout_s and not run.cause:
                run.cause = f"was not ready after {run.service.ready_timeout_s:g} s"
                if self._state == "starting":
                    self._died(run)
                else:
                    assert run.process is not None
                    # Its end is seen to when it has come.
                    with suppress(ProcessLookupError):
                        os.kill(run.process.pid, signal.SIGKILL)
        if self._state == "starting" and all(run.state is ServiceState.READY for run in self._runs.values()):
            self._state = "ready"
            self._save()
            self._emit(event="ready")

    def _wait(self, timeout_s: float | None) -> None:
        for key in keeping_logs(self._selector, timeout_s):
            if key.data == "wake":
                os.read(key.fd, 4096)
            else:
                self._read_control()
        self._reap()

    def _read_control(self) -> None:
        data = os.read(0, 4096)
        if b"detach\n" in data:
            self._detached = True
        if not data:
            self._selector.unregister(0)
            if not self._detached:
                # Not counted on top of a signal's order: only a second signal means hurry.
                self._orders.stop = max(self._orders.stop, 1)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for run in self._runs.values():
                if run.process is not None and run.process.pid == pid:
                    self._exited(run, os.waitstatus_to_exitcode(status))

    def _exited(self, run: _Run, code: int) -> None:
        assert run.process is not None
        # waitpid(-1) took the status away from Popen, which must not ask the kernel for it again.
        run.process.returncode = code
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(run.process.pid, signal.SIGKILL)
        if run.log is not None:
            # Whoever is told of its end reads the end of its log.
            run.log.drain()
        if self._state in ("starting", "ready"):
            run.cause = run.cause or _ended(code)
            self._died(run, crashed=-code in _CRASHES)
        else:
            run.state = ServiceState.STOPPED
            self._changed(run)

    def _died(self, run: _Run, *, crashed: bool = False) -> None:
        run.detail = run.cause
        if self._state == "starting" and not (crashed and run.restarts.total == 0):
            # A service that is late still runs, and has to be ended with the others.
            alive = run.process is not None and run.process.returncode is None
            run.state = run.state if alive else ServiceState.FAILED
            if self._failure is None:
                self._failure, self._culprit = f"{run.service.name} {run.cause}", run.service.name
            return
        now_s = time.monotonic()
        ready_for_s = 0.0 if run.ready_at_s is None else now_s - run.ready_at_s
        delay_s = run.restarts.after_death(ready_for_s)
        if delay_s is None:
            run.state = ServiceState.FAILED
            run.detail += f"; given up, because it died {run.restarts.in_a_row} times in a row"
        else:
            run.state, run.start_again_s = ServiceState.RESTARTING, now_s + delay_s
            run.detail += f"; starts again in {delay_s:g} s"
        self._changed(run)

    def _end_all(self) -> None:
        self._state = "stopping"
        try:
            with suppress(OSError):
                self._save()
            self._ask_to_end()
        finally:
            kill_until_none(self._left, timeout_s=_KILL_BUDGET_S)
        for run in self._runs.values():
            if run.log is not None:
                run.log.drain()
            _clear(run.service)
        self._plan.state_path.unlink(missing_ok=True)

    def _ask_to_end(self) -> None:
        deadline_s = time.monotonic() + _STOP_BUDGET_S
        while live := [run for run in self._runs.values() if run.state in _LIVE]:
            needed = {name for run in live for name in (*run.service.after, *run.service.uses)}
            hurry = self._orders.stop > 1 or time.monotonic() > deadline_s
            for run in live:
                self._end(run, needed=run.service.name in needed, hurry=hurry)
            self._wait(_PROBE_EVERY_S)

    def _left(self) -> set[int]:
        self._reap()
        return descendants(os.getpid())

    def _end(self, run: _Run, *, needed: bool, hurry: bool) -> None:
        assert run.process is not None
        with suppress(ProcessLookupError):
            if hurry or (run.kill_at_s is not None and time.monotonic() > run.kill_at_s):
                os.kill(run.process.pid, signal.SIGKILL)
            elif run.kill_at_s is None and not needed:
                run.kill_at_s = time.monotonic() + run.service.stop_timeout_s
                os.kill(run.process.pid, signal.SIGTERM)

    def _changed(self, run: _Run) -> None:
        with suppress(OSError):
            self._save()
        self._emit(event="service", **run.row(self._plan.log_path(run.service.name)))

    def _save(self) -> None:
        state = {
            "format": 1,
            "token": self._plan.token,
            "state": self._state,
            "supervisor": {"pid": os.getpid(), "started_at_ticks": started_at_ticks(os.getpid())},
            "settings": dict(self._plan.settings),
            "services": [run.row(self._plan.log_path(name)) for name, run in self._runs.items()],
            "notes": list(self._plan.notes),
        }
        write_atomic(self._plan.state_path, json.dumps(state, indent=2).encode() + b"\n", private=True)

    @staticmethod
    def _emit(**event: Any) -> None:
        # The starter may be gone, or detached and no longer reading: the state file has it all.
        with suppress(BrokenPipeError, BlockingIOError):
            os.write(1, json.dumps(event).encode() + b"\n")


def _clear(service: Service) -> None:
    """Remove what would make a service that does not run yet look ready, or keep it from listening."""
    ready = (service.ready.path,) if service.ready.kind in ("file", "unix") else ()
    for path in (*ready, *service.clears):
        Path(path).unlink(missing_ok=True)


def _ended(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _is_ready(ready: Readiness, log: Path, log_from: int) -> bool:
    if ready.kind == "file":
        return Path(ready.path).exists()
    if ready.kind == "line":
        return ready.text.encode() in log.read_bytes()[log_from:]
    try:
        with _connection(ready) as connection:
            if ready.kind != "http":
                return True
            secret = f"Authorization: {ready.authorization}\r\n" if ready.authorization else ""
            head = f"GET {ready.path} HTTP/1.0\r\nHost: 127.0.0.1:{ready.port}\r\n{secret}\r\n"
            connection.sendall(head.encode())
            return b" 200 " in connection.recv(64).partition(b"\r\n")[0]
    except OSError:
        return False


def _connection(ready: Readiness) -> socket.socket:
    if ready.kind != "unix":
        return socket.create_connection((LOOPBACK, ready.port), timeout=_PROBE_TIMEOUT_S)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_PROBE_TIMEOUT_S)
        connection.connect(ready.path)
    except OSError:
        connection.close()
        raise
    return connection


def _read_plan() -> Plan | None:
    """The first line of standard input; None when the starter is gone before it was complete."""
    data = b""
    # One byte at a time: what follows the line, a `detach` perhaps, must stay in the pipe for the loop.
    while not data.endswith(b"\n"):
        chunk = os.read(0, 1)
        if not chunk:
            return None
        data += chunk
    return Plan.from_json(data)


def main() -> int:
    """Run the plan on standard input."""
    # Servers make files that everybody can read unless they inherit this.
    work_privately()
    wake, write_end = os.pipe()
    for descriptor in (wake, write_end):
        os.set_blocking(descriptor, False)
    os.set_blocking(1, False)
    orders = _Orders()

    def on_stop(number: int, frame: object) -> None:
        orders.stop += 1

    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_stop)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    plan = _read_plan()
    if plan is None:
        return 0
    lock = int(sys.argv[1])
    os.set_inheritable(lock, False)
    os.pwrite(lock, f"{os.getpid():<20}\n".encode(), 0)
    return Supervisor(plan, wake, orders).run()


if __name__ == "__main__":
    sys.exit(main())
