"""A process that has one gibibyte: whatever is attacked runs in it.

The limit is on data (heap, anonymous mappings, stacks), not on the address space, which libraries reserve and never
touch. What would need more gets a MemoryError and ends the process with a traceback, so that the test fails.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Mapping

import pytest

LIMIT_BYTES = 1 << 30
_LIMITED = f"import resource; resource.setrlimit(resource.RLIMIT_DATA, ({LIMIT_BYTES}, {LIMIT_BYTES}))\n"


def run_limited(
    code: str, *arguments: str, timeout_s: float = 30.0, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python code in a process of its own with one GiB; `arguments` are its `sys.argv[1:]`.

    Returns:
        The ended process, whatever its exit status.
    """
    try:
        return subprocess.run(
            [sys.executable, "-c", _LIMITED + code, *arguments],
            env=env,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"the attacked process was not done after {timeout_s:g} s")


def limit(pid: int) -> None:
    """Lay the same limit on a process that runs, such as a worker that a test has started."""
    resource.prlimit(pid, resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
