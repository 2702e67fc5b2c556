"""Programs that begin at the same moment, for what several processes do at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from tests.support import ending


def said_together(program: str, calls: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Run a Python program once a call; output and errors of each.

    Args:
        program: says `ready` in a line, and goes on when it is given one.
        calls: the arguments of each.
    """
    pipe = subprocess.PIPE
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                ending(
                    subprocess.Popen(
                        [sys.executable, "-c", program, *call], stdin=pipe, stdout=pipe, stderr=pipe, text=True
                    )
                )
            )
            for call in calls
        ]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        return [process.communicate(timeout=50) for process in processes]
