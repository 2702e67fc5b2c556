"""What a home folder says of its stack: the lock that a supervisor holds, and the state that it writes."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from proctor.domain.errors import StackError
from proctor.localstack.service import ServiceState
from proctor.runtime.processes import is_same_process, kill_until_none, marked

#: A supervisor's own budgets for an end (12 s of asking, 10 s of killing) and a margin.
STOP_TIMEOUT_S = 25.0
POLL_S = 0.05
#: A supervisor locks the home a moment before it writes its state, and removes the state a moment before it ends.
_NEITHER_S = 10.0
_LOG_TAIL_LINES = 12
_LOG_TAIL_BYTES = 16_384


class ServiceStatus(NamedTuple):
    """One service of a stack as its supervisor last wrote it."""

    name: str
    pid: int | None
    ports: Mapping[str, int]
    version: str
    state: ServiceState
    detail: str
    ready_after_s: float | None
    log: Path

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> ServiceStatus:
        """The status in one row of stack.json."""
        fields = {name: row[name] for name in cls._fields}
        return cls(**{**fields, "state": ServiceState(row["state"]), "log": Path(row["log"])})


def read_state(home: Path) -> dict[str, Any] | None:
    """The state in stack.json, of a supervisor that may be dead; None where there is none."""
    try:
        state = json.loads((home / "stack.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return state if isinstance(state, dict) and state.get("format") == 1 else None


def live_state(home: Path) -> dict[str, Any] | None:
    """The state of a home whose supervisor lives."""
    state = read_state(home)
    if state is None:
        return None
    supervisor = state["supervisor"]
    return state if is_same_process(supervisor["pid"], supervisor["started_at_ticks"]) else None


def forget(home: Path, token: str) -> None:
    """Remove the state of one stack, and of no other that may have started meanwhile."""
    state = read_state(home)
    if state is not None and state["token"] == token:
        (home / "stack.json").unlink(missing_ok=True)


@contextmanager
def locked(home: Path) -> Iterator[int]:
    """A descriptor of the home's locked lock file. The lock lives on in a process that inherits it.

    Raises:
        StackError: another stack has this home.
    """
    descriptor = os.open(home / "stack.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor, home)
        os.pwrite(descriptor, f"{os.getpid():<20}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, home: Path) -> None:
    began_s = time.monotonic()
    while True:
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A stack on its way out, e.g. of a command that was just interrupted, is worth waiting for.
        state = read_state(home)
        patience_s = _NEITHER_S if state is None else STOP_TIMEOUT_S if state["state"] == "stopping" else 0.0
        if time.monotonic() - began_s >= patience_s:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise StackError(
                f"a stack runs in {home} already (process {holder}); "
                f"see it with: proctor status --home {home}; end it with: proctor down --home {home}"
            )
        time.sleep(POLL_S)


def end_leftovers(home: Path) -> None:
    """End what a supervisor left that was itself killed. The caller holds the lock, so that stack is dead."""
    state = read_state(home)
    if state is not None and state["token"]:
        kill_until_none(lambda: marked(state["token"]), timeout_s=STOP_TIMEOUT_S)
        forget(home, state["token"])


def with_log(message: str, log: Path) -> str:
    """A message and the last lines of a log."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _LOG_TAIL_BYTES))
            lines = stream.read().decode("utf-8", "replace").splitlines()[-_LOG_TAIL_LINES:]
    except OSError:
        lines = []
    tail = "\n".join(f"  {line}" for line in lines)
    return f"{message}; the end of {log}:\n{tail}" if tail else f"{message}; its log {log} is empty"
