"""Processes of this machine as Linux' /proc shows them: who descends from whom, and who carries a stack's mark.

Standard library only: the supervisor imports it, and must stay light.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

#: The variable that every process of a local stack inherits; its value is the stack's token.
MARK = "PROCTOR_STACK"
_POLL_S = 0.02


def _process_ids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on (index 0); None when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command name may hold spaces and brackets: fields are counted from its last bracket.
    return text.rpartition(")")[2].split()


def started_at_ticks(pid: int) -> int | None:
    """When a live process began, in clock ticks since boot; with the pid it names one process for ever.

    None when the process is gone or is a zombie.
    """
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] not in "ZX" else None


def is_same_process(pid: int, start_ticks: int) -> bool:
    """Whether the process that began at `start_ticks` still lives (a reused pid is another process)."""
    return started_at_ticks(pid) == start_ticks


def descendants(root: int) -> set[int]:
    """Every process below `root`, zombies included."""
    children: dict[int, list[int]] = {}
    for pid in _process_ids():
        fields = _stat(pid)
        if fields:
            children.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    pending = [root]
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in found:
                found.add(child)
                pending.append(child)
    return found


def marked(token: str) -> set[int]:
    """Live processes of this user, other than this one, whose environment carries a stack's mark."""
    needle = f"{MARK}={token}".encode()
    found: set[int] = set()
    for pid in _process_ids():
        if pid == os.getpid():
            continue
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if needle in environment.split(b"\0") and started_at_ticks(pid) is not None:
            found.add(pid)
    return found


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to every process that still is there and is ours."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def kill_until_none(find: Callable[[], set[int]], *, timeout_s: float) -> set[int]:
    """SIGKILL what `find` returns until it returns nothing; what is left after `timeout_s` is returned.

    Once is not enough: a process may fork between being listed and being killed.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        pids = find()
        if not pids or time.monotonic() > deadline:
            return pids
        signal_all(pids, signal.SIGKILL)
        time.sleep(_POLL_S)
