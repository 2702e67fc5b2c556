"""The sandbox of this machine, for tests that run code."""

from __future__ import annotations

from functools import cache

from proctor.domain.errors import CodeExecutionError
from proctor.runtime.sandbox.limits import DEFAULT_LIMITS, ProgramLimits
from proctor.runtime.sandbox.sandbox import Sandbox, open_sandbox
from tests.support import missing


def sandbox(limits: ProgramLimits = DEFAULT_LIMITS) -> Sandbox:
    """The sandbox, or a skip with what is missing."""
    found = _opened(limits)
    if isinstance(found, str):
        missing(f"{found}; scripts/setup_sandbox.sh")
    return found


@cache
def _opened(limits: ProgramLimits) -> Sandbox | str:
    try:
        return open_sandbox(limits)
    except CodeExecutionError as error:
        return str(error)
