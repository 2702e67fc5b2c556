"""Logs that never fill a disk: what services print goes through a pipe into files that are rotated by size.

The supervisor reads the pipes and writes the files. A service that wrote into its file itself, by a descriptor that it
keeps, could only be rotated by copying the file and cutting it off, which loses what is written between the two; a
pipe loses nothing, and a line is never torn over two files. Its price: a supervisor that stands still holds up who
prints more than a pipe holds, so the pipe is made large, and one turn at it is bounded.

Where the disk is full, output is dropped instead of holding its service up, and how much is said where it goes on.

Standard library only: the supervisor imports it, and must stay light.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import selectors
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from proctor.runtime.private import PRIVATE_FILE, make_folder

#: One log file: hours of a busy worker, and still quick to open.
MAX_LOG_BYTES: Final = 16 << 20
#: Older files of a service that are kept (`.log.1` is the newest): 64 MiB with the one that is written.
KEPT_LOGS: Final = 3
#: What prints longer lines than this has one torn over two files.
MAX_LINE_BYTES: Final = 64 << 10
#: Tracebacks of commands that are kept, and of each its beginning and end: a script may fail every minute for ever.
KEPT_CRASHES: Final = 20
MAX_CRASH_BYTES: Final = 1 << 20

#: What Linux lets any user have.
_PIPE_BYTES: Final = 1 << 20
#: Of one service's output at a time, so that one that prints without end keeps nobody else waiting.
_TURN_BYTES: Final = 256 << 10


class LogFile:
    """A file that is appended to, and begun anew where it is long; the older ones are kept for a while."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_LOG_BYTES, anew: bool = True) -> None:
        """Begin an empty file, and what was there is the newest older one; or go on with what is there.

        Raises:
            OSError: when it cannot be made.
        """
        self._path = path
        self._max_bytes = max_bytes
        self._size = self._lost = 0
        self._file: int | None = None
        make_folder(path.parent)
        if anew:
            rotate(path)
        self._open()

    def write(self, data: bytes) -> None:
        """Append; never raises. What there is no room for is dropped, and counted where there is room again."""
        if self._file is not None and self._size + len(data) > self._max_bytes:
            data = self._rotated(data)
        self._append(data)

    def close(self) -> None:
        """Give the descriptor back."""
        if self._file is not None:
            os.close(self._file)
        self._file = None

    def _rotated(self, data: bytes) -> bytes:
        """Begin a new file, where the data ends a line; returns what is to stand in it."""
        cut = data.find(b"\n") + 1
        if cut == 0 and self._size + len(data) <= self._max_bytes + MAX_LINE_BYTES:
            return data
        if 0 < cut <= MAX_LINE_BYTES:
            self._append(data[:cut])
            data = data[cut:]
        self.close()
        # Where no new one can be made now, the next write tries again.
        with suppress(OSError):
            self._begin()
        return data

    @property
    def size(self) -> int:
        """Bytes of the file that is written."""
        return self._size

    def _begin(self) -> None:
        rotate(self._path)
        self._open()

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE)
        self._size = os.fstat(self._file).st_size

    def _append(self, data: bytes) -> None:
        if self._file is None:
            with suppress(OSError):
                self._begin()
        if self._lost and self._written(b"\n[%d bytes of output were lost: the disk was full]\n" % self._lost):
            self._lost = 0
        self._lost += len(data) - self._written(data)

    def _written(self, data: bytes) -> int:
        """How much of the data could be written."""
        done = 0
        with suppress(OSError):
            while self._file is not None and done < len(data):
                done += os.write(self._file, data[done:])
        self._size += done
        return done


class ServiceLog:
    """A service's output on its way from a pipe to its log file."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_LOG_BYTES, anew: bool = True) -> None:
        """Begin the file, or go on with the one that is there, and open the pipe.

        Raises:
            OSError: when there cannot be either.
        """
        self._file = LogFile(path, max_bytes=max_bytes, anew=anew)
        self._selector: selectors.BaseSelector | None = None
        self._read_end: int | None
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        # A user who has many pipes gets the ordinary size, 64 KiB.
        with suppress(OSError):
            fcntl.fcntl(self._read_end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    @property
    def size(self) -> int:
        """Bytes of the file that is written."""
        return self._file.size

    def register(self, selector: selectors.BaseSelector) -> None:
        """Have `keeping_logs` on this selector write down what comes, until the service and its children have ended."""
        self._selector = selector
        if self._read_end is not None:
            selector.register(self._read_end, selectors.EVENT_READ, self)

    @contextmanager
    def output(self) -> Iterator[int]:
        """What a service is started with as its output; nobody else holds it after the block."""
        try:
            yield self._write_end
        finally:
            os.close(self._write_end)

    def pump(self, at_most: int = _TURN_BYTES) -> None:
        """Write down what is there, up to a bound. At the end of the output the descriptors are given back."""
        while at_most > 0 and self._read_end is not None:
            try:
                data = os.read(self._read_end, MAX_LINE_BYTES)
            except BlockingIOError:
                return
            if data:
                self._file.write(data)
                at_most -= len(data)
            else:
                self._close(self._read_end)

    def drain(self) -> None:
        """Write down what is in the pipe when its service has ended, though another may hold on to its end of it."""
        self.pump(_PIPE_BYTES)

    def _close(self, read_end: int) -> None:
        if self._selector is not None:
            self._selector.unregister(read_end)
        os.close(read_end)
        self._read_end = None
        self._file.close()


def keeping_logs(selector: selectors.BaseSelector, timeout_s: float | None) -> list[selectors.SelectorKey]:
    """As `selector.select`: what else is ready, while what services print is written down; nothing after the timeout.

    However much they print, whoever waits here for a timeout gets it, and is not woken before.
    """
    until_s = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        ready = [key for key, _ in selector.select(timeout_s)]
        for key in ready:
            if isinstance(key.data, ServiceLog):
                key.data.pump()
        others = [key for key in ready if not isinstance(key.data, ServiceLog)]
        timeout_s = None if until_s is None else until_s - time.monotonic()
        if others or (timeout_s is not None and timeout_s <= 0):
            return others


def rotate(path: Path) -> None:
    """Move a log file aside, and the older ones after it; the oldest goes. Does nothing where there is none."""
    if not path.exists():
        return
    for number in range(KEPT_LOGS, 0, -1):
        newer = path if number == 1 else _older(path, number - 1)
        with suppress(FileNotFoundError):
            newer.replace(_older(path, number))


def _older(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def open_log(path: Path) -> int:
    """A descriptor that appends to a log which nobody pumps, such as the supervisor's own few lines."""
    make_folder(path.parent)
    with suppress(FileNotFoundError):
        if path.stat().st_size > MAX_LOG_BYTES:
            rotate(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE)


def write_crash(home: Path, text: str) -> Path:
    """Keep a command's traceback in the home, and of the earlier ones the newest few.

    Raises:
        OSError: when it cannot be written.
    """
    folder = home / "logs"
    make_folder(folder)
    data = text.encode("utf-8", "backslashreplace")
    if len(data) > MAX_CRASH_BYTES:
        half = MAX_CRASH_BYTES // 2
        data = data[:half] + b"\n[...]\n" + data[-half:]
    # By their names the oldest first.
    for old in sorted(folder.glob("crash-*.log"))[: -(KEPT_CRASHES - 1)]:
        old.unlink(missing_ok=True)
    path = folder / f"crash-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}-{secrets.token_hex(2)}.log"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE), "wb") as stream:
        stream.write(data)
    return path
