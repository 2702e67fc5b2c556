"""Processes that tests start: they heed signals wherever the tests run, and they end with their test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.support import REPOSITORY, ending

#: Does not end when it is asked to.
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("runs", flush=True)
time.sleep(600)
"""


def test_a_process_that_a_test_starts_heeds_an_interrupt_and_an_order_to_end() -> None:
    program = "import signal; print(*(signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)), sep='\\n')"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == [str(signal.default_int_handler), str(signal.SIG_DFL)]


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one process", "workers"])
def test_so_it_does_where_the_tests_themselves_were_started_with_both_ignored(workers: tuple[str, ...]) -> None:
    """As `nohup make test &` in a script, and many schedulers, start them."""
    name = test_a_process_that_a_test_starts_heeds_an_interrupt_and_an_order_to_end.__name__
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, f"{__file__}::{name}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(
        ["sh", "-c", "trap '' INT TERM; exec \"$@\"", "sh", *tests],
        cwd=REPOSITORY, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert (run.returncode, "1 passed" in run.stdout) == (0, True), run.stdout


def test_a_process_of_a_test_that_fails_is_ended_and_its_pipes_are_closed() -> None:
    sleeper = [sys.executable, "-c", "print('runs', flush=True); import time; time.sleep(600)"]
    process = subprocess.Popen(sleeper, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def fail() -> None:
        with ending(process):
            assert process.stdout is not None
            assert process.stdout.readline() == "runs\n"
            raise AssertionError("the test's own")

    with pytest.raises(AssertionError, match="the test's own"):
        fail()
    assert process.poll() == -signal.SIGTERM
    assert process.stdin is not None
    assert process.stdin.closed
    assert process.stdout is not None
    assert process.stdout.closed


def test_a_stopped_process_is_ended_too() -> None:
    with ending(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])) as process:
        process.send_signal(signal.SIGSTOP)
    assert process.poll() == -signal.SIGTERM


def test_a_process_that_does_not_leave_when_asked_is_killed_and_fails_its_test() -> None:
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE)

    def leave_it_running() -> None:
        with ending(process, within_s=0.1):
            assert process.stdout is not None
            assert process.stdout.readline() == b"runs\n"

    with pytest.raises(subprocess.TimeoutExpired):
        leave_it_running()
    assert process.poll() == -signal.SIGKILL


def test_a_process_that_is_gone_keeps_its_exit_code() -> None:
    with ending(subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])) as process:
        process.wait(timeout=30)
    assert process.returncode == 3
