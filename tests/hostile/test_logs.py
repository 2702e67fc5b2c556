"""Whatever a service prints, or a command fails by, takes a bounded part of the disk, and no line is torn or lost."""

from __future__ import annotations

import errno
import os
import selectors
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.localstack.log_files import (
    KEPT_CRASHES,
    KEPT_LOGS,
    MAX_CRASH_BYTES,
    MAX_LINE_BYTES,
    MAX_LOG_BYTES,
    LogFile,
    ServiceLog,
    keeping_logs,
    open_log,
    write_crash,
)
from proctor.localstack.service import Readiness, Service
from proctor.localstack.state import locked
from proctor.localstack.supervised import Supervised
from tests.supervised_plans import plan_of, supervised
from tests.support import wait_until

ENDLESS = """
import os
os.close(os.open("ready", os.O_CREAT))
line = b"x" * 199 + b"\\n"
while True:
    os.write(1, line * 300)
"""


def files(log: Path) -> list[Path]:
    """A log's files, the oldest first."""
    older = [log.with_name(f"{log.name}.{number}") for number in range(KEPT_LOGS, 0, -1)]
    return [path for path in (*older, log) if path.exists()]


def together(log: Path) -> bytes:
    return b"".join(path.read_bytes() for path in files(log))


def full(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def service(name: str, program: str, **more: Any) -> Service:
    defaults: dict[str, Any] = {"ready": Readiness("line", text="ready"), "stop_timeout_s": 0.5}
    return Service(name, (sys.executable, "-c", program), **{**defaults, **more})


@pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")
def size(path: Path) -> int:
    """Bytes of a file; 0 in the moment in which another takes its name."""
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def changed_at(path: Path) -> int:
    """When a file was written to last; 0 in that moment."""
    with suppress(FileNotFoundError):
        return path.stat().st_mtime_ns
    return 0


def test_a_service_that_prints_without_end_fills_no_disk_and_holds_up_no_other(tmp_path: Path) -> None:
    polite = service("polite", "import time; print('ready', flush=True); time.sleep(600)", after=("endless",))
    # Not by a line in its log, which may be rotated away before anybody looks.
    endless = service("endless", ENDLESS, ready=Readiness("file", path=str(tmp_path / "home" / "ready")))
    plan = plan_of(tmp_path / "home", endless, polite)
    plan.home.mkdir()
    log = plan.log_path("endless")
    oldest = log.with_name(f"{log.name}.{KEPT_LOGS}")
    bound = (KEPT_LOGS + 1) * (MAX_LOG_BYTES + MAX_LINE_BYTES)
    with supervised(plan):
        wait_until(lambda: oldest.exists() or size(log) > bound, what="the oldest file")
        written = changed_at(oldest)
        wait_until(lambda: changed_at(oldest) not in (0, written), what="its end")
        assert sum(map(size, files(log))) <= bound
    assert plan.log_path("polite").read_bytes() == b"ready\n"


def test_the_last_words_of_a_service_stand_in_its_log_when_its_end_is_told(tmp_path: Path) -> None:
    words = "import sys; sys.stdout.write('word ' * 40_000 + 'last'); sys.exit(3)"
    plan = plan_of(tmp_path / "home", service("dying", words))
    plan.home.mkdir()
    with locked(plan.home) as lock, pytest.raises(Exception, match=r"exited with code 3(.|\n)* last"):
        Supervised.start(plan, lock)


@settings(max_examples=60)
@given(
    chunks=st.lists(st.lists(st.binary(max_size=60).map(lambda text: text.replace(b"\n", b" ") + b"\n"), max_size=12)),
    cuts=st.lists(st.integers(1, 90), min_size=1),
    max_bytes=st.integers(100, 2000),
)
def test_lines_stay_whole_and_in_order_however_they_come(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[bytes]], cuts: list[int], max_bytes: int
) -> None:
    log = tmp_path_factory.mktemp("log") / "a.log"
    printed, file, place = b"".join(line for chunk in chunks for line in chunk), LogFile(log, max_bytes=max_bytes), 0
    for turn in range(len(printed)):
        cut = cuts[turn % len(cuts)]
        file.write(printed[place : place + cut])
        place += cut
    file.close()
    kept = together(log)
    assert printed.endswith(kept)
    assert len(kept) == len(printed) or len(files(log)) == KEPT_LOGS + 1
    for path in files(log):
        assert path.stat().st_size <= max_bytes + 2 * 90
        assert path == log or path.read_bytes().endswith(b"\n")


def test_a_line_without_end_is_bounded_too(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "a.log", max_bytes=1000)
    for _ in range(20 * MAX_LINE_BYTES // 4096):
        log.write(b"x" * 4096)
    log.close()
    assert all(path.stat().st_size <= 1000 + MAX_LINE_BYTES for path in files(tmp_path / "a.log"))


def test_a_writer_is_never_held_up_and_nothing_is_lost_while_its_log_is_rotated(tmp_path: Path) -> None:
    printed = b"".join(b"line %d of what a service prints\n" % number for number in range(40_000))
    path = tmp_path / "a.log"
    log, selector = ServiceLog(path, max_bytes=len(printed) // KEPT_LOGS), selectors.DefaultSelector()
    log.register(selector)
    with log.output() as output:
        end = os.dup(output)

    def print_all() -> None:
        with os.fdopen(end, "wb", buffering=0) as stream:
            for start in range(0, len(printed), 1000):
                stream.write(printed[start : start + 1000])

    writer = threading.Thread(target=print_all)
    writer.start()
    while selector.get_map():
        keeping_logs(selector, 0.01)
    writer.join()
    selector.close()
    assert together(path) == printed
    assert len(files(path)) == KEPT_LOGS + 1


def test_output_that_a_full_disk_has_no_room_for_is_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, write = LogFile(tmp_path / "a.log"), os.write
    log.write(b"before\n")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        log.write(b"lost\n")
        log.write(b"as well\n")
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    log.write(b"after\n")
    log.close()
    told = b"\n[13 bytes of output were lost: the disk was full]\n"
    assert (tmp_path / "a.log").read_bytes() == b"before\n" + told + b"after\n"


def test_a_disk_without_room_for_a_new_file_goes_on_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogFile(tmp_path / "a.log", max_bytes=100)
    log.write(b"first" * 20 + b"\n")
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", full)
        log.write(b"begins the next file\n" * 5)
        log.write(b"third\n")
    log.write(b"fourth\n")
    log.close()
    assert (tmp_path / "a.log").read_bytes().endswith(b"fourth\n")
    assert b"bytes of output were lost" in (tmp_path / "a.log").read_bytes()


def test_tracebacks_of_a_command_that_fails_for_ever_are_bounded(tmp_path: Path) -> None:
    for number in range(KEPT_CRASHES + 15):
        path = write_crash(tmp_path, f"Traceback {number}\n" + "x" * 3 * MAX_CRASH_BYTES * (number % 10 == 0) + "end")
        assert path.read_text().startswith(f"Traceback {number}\n")
        assert path.read_text().endswith("end")
    kept = list((tmp_path / "logs").iterdir())
    assert len(kept) == KEPT_CRASHES
    assert path in kept
    assert all(one.stat().st_size <= MAX_CRASH_BYTES + 10 for one in kept)


def test_the_supervisors_own_log_is_begun_anew_where_it_is_long(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "supervisor.log"
    os.close(open_log(log))
    os.truncate(log, MAX_LOG_BYTES + 1)
    os.close(open_log(log))
    assert log.stat().st_size == 0
