"""A local stack that stays up for several tests: starting one costs twenty processor seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def standing_stack(home: Path, *options: str, **environment: str) -> Iterator[Path]:
    """A home whose stack is up; it is taken down at exit, pass or fail.

    Args:
        home: the stack's folder, which is made.
        options: of `proctor up`.
        environment: variables of its services beside this process' own.
    """
    try:
        _proctor("up", "--home", str(home), *options, **environment)
        yield home
    finally:
        _proctor("down", "--home", str(home))


def _proctor(*arguments: str, **environment: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "proctor", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert run.returncode == 0, run.stderr
