"""One cluster for the workers of a test run, and for one run at a time.

The first worker that needs it starts it and keeps it until the others have left; the others take it as it is. Whoever
dies gives back its locks by dying, so that nothing has to be cleaned.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Final

#: Between two looks at who has the cluster.
_LOOK_S: Final = 0.2


def this_run() -> str:
    """What xdist's workers of one run have in common; else this process."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"process {os.getpid()}"


@contextmanager
def shared(folder: Path, start: Callable[[], AbstractContextManager[Path]], run: str) -> Iterator[Path]:
    """What `start` yields, by whichever worker of this run it was started.

    Args:
        folder: of the cluster's state. Beside it lie two files: who has it, and who uses it.
        start: starts it, and ends it at exit.
        run: whose workers share it.
    """
    owners, users = folder.with_suffix(".lock"), folder.with_suffix(".users")
    said = False
    while True:
        with owners.open("a+") as owner:
            if _locked(owner, fcntl.LOCK_EX):
                with _owned(owner, users, run, start) as found:
                    yield found
                return
            with users.open("a+") as user:
                # Held before looking: who has it does not end it while somebody holds this.
                if _locked(user, fcntl.LOCK_SH) and (found_path := _ready(owner, run)) is not None:
                    yield found_path
                    return
            if not said and _holder(owner) not in ("", run):
                print(f"waiting for {owners}, which another run has", file=sys.stderr)
                said = True
        time.sleep(_LOOK_S)


@contextmanager
def _owned(owner: IO[str], users: Path, run: str, start: Callable[[], AbstractContextManager[Path]]) -> Iterator[Path]:
    _write(owner, run)
    try:
        with start() as found:
            _write(owner, f"{run}\n{found}")
            yield found
            # Before it ends, the others of this run have to leave.
            with users.open("a+") as user:
                fcntl.flock(user, fcntl.LOCK_EX)
                _write(owner, "")
    finally:
        _write(owner, "")


def _locked(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(file: IO[str], text: str) -> None:
    file.seek(0)
    file.truncate()
    file.write(text)
    file.flush()


def _holder(file: IO[str]) -> str:
    file.seek(0)
    return file.read().partition("\n")[0]


def _ready(file: IO[str], run: str) -> Path | None:
    file.seek(0)
    holder, _, path = file.read().partition("\n")
    return Path(path) if holder == run and path else None
