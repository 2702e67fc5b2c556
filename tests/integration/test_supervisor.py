"""The supervisor with real processes: whatever dies, whenever, nothing is left."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.errors import StackError
from proctor.localstack.restarts import LIMIT
from proctor.localstack.service import Plan, Readiness, Service, ServiceState
from proctor.localstack.stack import LocalStack
from proctor.localstack.state import locked, read_state
from proctor.localstack.supervised import Supervised
from tests.supervised_plans import plan_of, supervised
from tests.support import ending, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")

#: A variable of the tests' own, so that what is left is counted without the code under test.
MARK = "PROCTOR_TEST_MARK"

POLITE = "import time; print('ready', flush=True); time.sleep(600)"
SLOW = "import time; print('not yet', flush=True); time.sleep(600)"
#: Ignores SIGTERM, and so does its double-forked child in a session of its own.
STUBBORN = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(write, b"x")
        time.sleep(600)
    os._exit(0)
os.wait()
os.read(read, 1)
print("ready", flush=True)
time.sleep(600)
"""
STARTER = """
import sys, time
from pathlib import Path
from proctor.localstack.restarts import LIMIT
from proctor.localstack.service import Plan
from proctor.localstack.state import locked
from proctor.localstack.supervised import Supervised
plan = Plan.from_json(sys.stdin.readline())
with locked(plan.home) as lock:
    supervised = Supervised.start(plan, lock)
print("started", flush=True)
if sys.stdin.readline() == "detach\\n":
    supervised.detach()
else:
    time.sleep(600)
"""


def service(name: str, program: str, **more: Any) -> Service:
    defaults: dict[str, Any] = {"ready": Readiness("line", text="ready"), "stop_timeout_s": 0.5}
    return Service(name=name, argv=(sys.executable, "-c", program), **{**defaults, **more})


def left_over(mark: str) -> list[tuple[int, str]]:
    """Live processes that carry the mark, other than this one."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            marked = f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0")
            if marked and (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append((int(folder.name), (folder / "cmdline").read_text().replace("\0", " ")[:100]))
        except OSError:
            continue
    return found


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A mark that every process started in the test inherits. What still carries it afterwards is killed."""
    value = uuid.uuid4().hex
    monkeypatch.setenv(MARK, value)
    yield value
    for pid, _ in left_over(value):
        os.kill(pid, signal.SIGKILL)


def make_plan(home: Path, *services: Service) -> Plan:
    home.mkdir(exist_ok=True)
    return plan_of(home, *services)


#: Starts a plan under a supervisor that is a child of the tests.
Start = Callable[[Plan], Supervised]
#: Starts a plan in a process of its own, which says `started` and then waits for a line.
StartElsewhere = Callable[[Plan], subprocess.Popen[str]]


@pytest.fixture
def start(mark: str) -> Iterator[Start]:
    """Plans that are started with it are stopped, pass or fail."""
    with ExitStack() as stack:
        yield lambda plan: stack.enter_context(supervised(plan))


@pytest.fixture
def start_in_another_process(mark: str) -> Iterator[StartElsewhere]:
    """Processes that are started with it are ended, pass or fail."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "services")}
    pipe = subprocess.PIPE
    with ExitStack() as stack:

        def begin(plan: Plan) -> subprocess.Popen[str]:
            command = [sys.executable, "-c", STARTER]
            starter = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)
            stack.enter_context(ending(starter))
            assert starter.stdin is not None
            starter.stdin.write(plan.to_json() + "\n")
            starter.stdin.flush()
            return starter

        yield begin


def expect_nothing_left(plan: Plan, mark: str) -> None:
    wait_until(lambda: left_over(mark) == [], what=f"an end of {left_over(mark)}")
    assert not plan.state_path.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("moment", ["starting", "ready"])
def test_killing_the_starter_leaves_no_process(
    number: signal.Signals, moment: str, tmp_path: Path, mark: str, start_in_another_process: StartElsewhere
) -> None:
    last = SLOW if moment == "starting" else POLITE
    plan = make_plan(tmp_path / "home", service("stubborn", STUBBORN), service("last", last, after=("stubborn",)))
    starter = start_in_another_process(plan)
    if moment == "ready":
        assert starter.stdout is not None
        assert starter.stdout.readline() == "started\n"
    else:
        wait_until(lambda: plan.log_path("last").exists() and b"not yet" in plan.log_path("last").read_bytes())
    assert len(left_over(mark)) >= 5  # starter, supervisor, stubborn, its grandchild, last
    starter.send_signal(number)
    starter.wait(timeout=20)
    expect_nothing_left(plan, mark)


@pytest.mark.parametrize("seed", range(8))
def test_killing_the_starter_at_any_moment_leaves_no_process(
    seed: int, tmp_path: Path, mark: str, start_in_another_process: StartElsewhere
) -> None:
    rng = random.Random(seed)
    plan = make_plan(tmp_path / "home", service("stubborn", STUBBORN), service("polite", POLITE, after=("stubborn",)))
    starter = start_in_another_process(plan)
    time.sleep(rng.uniform(0.0, 0.5))
    starter.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
    starter.wait(timeout=20)
    expect_nothing_left(plan, mark)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_supervisor_ends_everything(
    number: signal.Signals, tmp_path: Path, mark: str, start: Start
) -> None:
    plan = make_plan(tmp_path / "home", service("stubborn", STUBBORN), service("polite", POLITE))
    running = start(plan)
    state = read_state(plan.home)
    assert state is not None
    os.kill(state["supervisor"]["pid"], number)
    expect_nothing_left(plan, mark)
    running.stop()


def test_the_next_start_ends_what_a_killed_supervisor_left(tmp_path: Path, mark: str, start: Start) -> None:
    plan = make_plan(tmp_path / "home", service("stubborn", STUBBORN))
    running = start(plan)
    state = read_state(plan.home)
    assert state is not None
    os.kill(state["supervisor"]["pid"], signal.SIGKILL)
    # The kernel ends the service itself; its double-forked child is beyond that.
    wait_until(lambda: len(left_over(mark)) == 1, what="the kernel's kill of the direct child")
    with pytest.raises(StackError, match="has died"):
        LocalStack(plan.home).check()
    LocalStack.end_leftovers(plan.home)
    expect_nothing_left(plan, mark)
    running.stop()


def test_a_plan_of_a_test_that_fails_is_stopped(tmp_path: Path, mark: str) -> None:
    plan = make_plan(tmp_path / "home", service("stubborn", STUBBORN))

    def fail() -> None:
        with supervised(plan):
            raise AssertionError("the test's own")

    with pytest.raises(AssertionError, match="the test's own"):
        fail()
    expect_nothing_left(plan, mark)


def test_a_service_that_dies_before_it_is_ready_is_reported_with_its_log(tmp_path: Path, mark: str) -> None:
    dying = "import sys; print('cannot bind the port'); sys.exit(3)"
    plan = make_plan(tmp_path / "home", service("stubborn", STUBBORN), service("dying", dying, after=("stubborn",)))
    with locked(plan.home) as lock, pytest.raises(StackError, match=r"(?s)dying exited with code 3.*cannot bind"):
        Supervised.start(plan, lock)
    expect_nothing_left(plan, mark)


#: Aborts, as a server does that meets a fault of its own, so many times; then it is ready.
ABORTING = """
import os, pathlib, time
count = pathlib.Path({count!r})
died = int(count.read_text()) if count.exists() else 0
if died < {times}:
    count.write_text(str(died + 1))
    print("terminate called", flush=True)
    os.abort()
print("ready", flush=True)
time.sleep(600)
"""


def test_a_service_that_crashes_while_all_start_is_started_once_more(tmp_path: Path, mark: str, start: Start) -> None:
    """Triton now and then aborts over a lock of its own when it starts; that is no reason to give the stack up."""
    program = ABORTING.format(count=str(tmp_path / "count"), times=1)
    plan = make_plan(tmp_path / "home", service("crashing", program), service("after", POLITE, after=("crashing",)))
    running = start(plan)
    rows = LocalStack(plan.home).status()
    assert [row.state for row in rows] == [ServiceState.READY] * 2
    assert rows[0].detail == "restart 1: it was killed by SIGABRT"
    running.stop()
    expect_nothing_left(plan, mark)


def test_a_service_that_crashes_twice_while_all_start_ends_the_start(tmp_path: Path, mark: str) -> None:
    program = ABORTING.format(count=str(tmp_path / "count"), times=2)
    plan = make_plan(tmp_path / "home", service("crashing", program), service("stubborn", STUBBORN))
    with locked(plan.home) as lock, pytest.raises(StackError, match=r"(?s)crashing was killed by SIGABRT.*terminate"):
        Supervised.start(plan, lock)
    expect_nothing_left(plan, mark)


def kill(stack: LocalStack, name: str) -> int:
    """SIGKILL a service of a stack; gives the id that its process had."""
    pid = next(row.pid for row in stack.status() if row.name == name)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    return pid


def is_back(stack: LocalStack, name: str, old: int) -> bool:
    """Whether a service that was killed is ready in a new process.

    By one reading of the state: of two, the first may still be of the process that was killed, and the second of none.
    """
    row = next(row for row in stack.status() if row.name == name)
    return row.state is ServiceState.READY and row.pid != old


def test_a_service_that_dies_is_started_again_and_the_others_go_on(tmp_path: Path, mark: str, start: Start) -> None:
    plan = make_plan(tmp_path / "home", service("first", POLITE), service("second", POLITE))
    running = start(plan)
    stack = LocalStack(plan.home)
    second = stack.status()[1]
    for times in (1, 2):
        old = kill(stack, "first")
        wait_until(partial(is_back, stack, "first", old))
        assert stack.status()[0].detail == f"restart {times}: it was killed by SIGKILL"
        stack.check()
    assert stack.status()[1] == second
    assert plan.log_path("first").read_text() == "ready\n" * 3, "what it said before it died is lost"
    running.stop()
    expect_nothing_left(plan, mark)


def test_a_service_that_dies_again_and_again_is_given_up_and_the_others_go_on(
    tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    # The supervisor is another process: what it imports first makes its delays short.
    quick = tmp_path / "quick"
    quick.mkdir()
    (quick / "sitecustomize.py").write_text("from proctor.localstack import restarts\nrestarts.DELAYS_S = (0.01,)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(quick), str(Path(__file__).parents[2] / "services")]))
    once = tmp_path / "once"
    dying = (
        "import pathlib, sys, time\n"
        f"once = pathlib.Path({str(once)!r})\n"
        "if once.exists():\n    print('no more'); sys.exit(3)\n"
        "once.touch(); print('ready', flush=True); time.sleep(600)"
    )
    plan = make_plan(tmp_path / "home", service("dying", dying), service("second", POLITE))
    running = start(plan)
    stack = LocalStack(plan.home)
    second = stack.status()[1]
    kill(stack, "dying")
    wait_until(lambda: stack.status()[0].state is ServiceState.FAILED)
    given_up = stack.status()[0]
    assert given_up.detail == f"exited with code 3; given up, because it died {LIMIT} times in a row"
    assert given_up.pid is None
    with pytest.raises(StackError, match=r"(?s)dying exited with code 3.*no more"):
        stack.check()
    assert stack.status()[1] == second
    running.stop()
    expect_nothing_left(plan, mark)


def test_a_service_that_comes_after_another_is_started_again_when_that_is_back(
    tmp_path: Path, mark: str, start: Start
) -> None:
    plan = make_plan(tmp_path / "home", service("server", POLITE), service("user", POLITE, after=("server",)))
    running = start(plan)
    stack = LocalStack(plan.home)
    olds = {kill(stack, "user"), kill(stack, "server")}
    wait_until(lambda: all(row.state is ServiceState.READY and row.pid not in olds for row in stack.status()))
    running.stop()
    expect_nothing_left(plan, mark)


def test_a_service_that_is_killed_leaves_none_of_its_processes_beside_the_next(
    tmp_path: Path, mark: str, start: Start
) -> None:
    forking = "import os, time; os.fork(); print('ready', flush=True); time.sleep(600)"
    plan = make_plan(tmp_path / "home", service("forking", forking))
    running = start(plan)
    stack = LocalStack(plan.home)
    before = {pid for pid, command in left_over(mark) if "os.fork" in command}
    old = kill(stack, "forking")
    wait_until(lambda: is_back(stack, "forking", old))
    now = {pid for pid, command in left_over(mark) if "os.fork" in command}
    assert len(before) == len(now) == 2
    assert not before & now
    running.stop()
    expect_nothing_left(plan, mark)


def test_the_sockets_of_a_killed_service_do_not_keep_the_next_from_listening(
    tmp_path: Path, mark: str, start: Start
) -> None:
    folder = tmp_path / "sockets"
    folder.mkdir()
    listening = (
        "import socket, time\n"
        f"for name in ('other', 'one'):\n    s = socket.socket(socket.AF_UNIX); s.bind({str(folder)!r} + '/' + name)\n"
        "    s.listen(); globals()[name] = s\n"
        "time.sleep(600)"
    )
    one, other = str(folder / "one"), str(folder / "other")
    plan = make_plan(
        tmp_path / "home", service("server", listening, ready=Readiness("unix", path=one), clears=(other,))
    )
    running = start(plan)
    stack = LocalStack(plan.home)
    old = kill(stack, "server")
    wait_until(lambda: is_back(stack, "server", old))
    running.stop()
    expect_nothing_left(plan, mark)
    assert list(folder.iterdir()) == []


def test_a_service_that_is_never_ready_is_given_up(tmp_path: Path, mark: str) -> None:
    plan = make_plan(tmp_path / "home", service("slow", SLOW, ready_timeout_s=0.5))
    with locked(plan.home) as lock, pytest.raises(StackError, match=r"(?s)slow was not ready after 0.5 s.*not yet"):
        Supervised.start(plan, lock)
    expect_nothing_left(plan, mark)


def test_a_program_that_is_not_there_is_a_clear_error(tmp_path: Path, mark: str) -> None:
    absent = Service(name="absent", argv=("/no/such/program",), ready=Readiness("line", text="ready"))
    plan = make_plan(tmp_path / "home", absent)
    with locked(plan.home) as lock, pytest.raises(StackError, match=r"absent cannot be started: .*no/such/program"):
        Supervised.start(plan, lock)
    expect_nothing_left(plan, mark)


def test_two_stacks_never_share_a_home(tmp_path: Path, mark: str, start: Start) -> None:
    plan = make_plan(tmp_path / "home", service("polite", POLITE))
    running = start(plan)
    state = read_state(plan.home)
    assert state is not None
    with pytest.raises(StackError, match=rf"runs in .*home already \(process {state['supervisor']['pid']}\)"):
        LocalStack(plan.home).start()
    assert LocalStack(plan.home).status()[0].state is ServiceState.READY
    running.stop()
    expect_nothing_left(plan, mark)


def test_a_start_right_after_a_kill_waits_for_the_old_stack_to_end(
    tmp_path: Path, mark: str, start: Start, start_in_another_process: StartElsewhere
) -> None:
    plan = make_plan(tmp_path / "home", service("stubborn", STUBBORN))
    starter = start_in_another_process(plan)
    assert starter.stdout is not None
    assert starter.stdout.readline() == "started\n"
    starter.kill()
    starter.wait(timeout=20)
    wait_until(lambda: (read_state(plan.home) or {"state": "stopping"})["state"] == "stopping")
    again = make_plan(plan.home, service("polite", POLITE))
    running = start(again)
    assert "stubborn" not in str(left_over(mark))
    running.stop()
    expect_nothing_left(again, mark)


def test_a_detached_stack_outlives_its_starter_until_somebody_stops_it(
    tmp_path: Path, mark: str, start_in_another_process: StartElsewhere
) -> None:
    plan = make_plan(tmp_path / "home", service("stubborn", STUBBORN), service("polite", POLITE))
    starter = start_in_another_process(plan)
    assert starter.stdin is not None
    assert starter.stdout is not None
    assert starter.stdout.readline() == "started\n"
    starter.stdin.write("detach\n")
    starter.stdin.flush()
    assert starter.wait(timeout=20) == 0
    stack = LocalStack.attach(plan.home)
    stack.check()
    assert {row.name: row.state for row in stack.status()} == {"stubborn": "ready", "polite": "ready"}
    stack.stop()
    assert left_over(mark) == []
    assert LocalStack(plan.home).status() == []


def test_a_service_ends_before_what_it_uses(tmp_path: Path, mark: str, start: Start) -> None:
    note = tmp_path / "note"
    user = (
        "import signal, sys, time\n"
        f"def end(*_):\n    time.sleep(0.2); open({str(note)!r}, 'a').write('user '); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('ready', flush=True); time.sleep(600)"
    )
    server = user.replace("'user '", "'server '").replace("time.sleep(0.2)", "None")
    plan = make_plan(tmp_path / "home", service("server", server), service("user", user, uses=("server",)))
    running = start(plan)
    running.stop()
    assert note.read_text() == "user server "
    expect_nothing_left(plan, mark)


def test_the_state_file_is_private_and_a_log_is_kept_from_the_run_before(
    tmp_path: Path, mark: str, start: Start
) -> None:
    for _ in range(2):
        plan = make_plan(tmp_path / "home", service("polite", POLITE))
        running = start(plan)
        assert plan.state_path.stat().st_mode & 0o077 == 0
        assert json.loads(plan.state_path.read_text())["state"] == "ready"
        running.stop()
    assert plan.log_path("polite").read_text() == "ready\n"
    assert plan.log_path("polite").with_suffix(".log.1").read_text() == "ready\n"


def test_the_supervisor_is_light(tmp_path: Path, mark: str, start: Start) -> None:
    plan = make_plan(tmp_path / "home", service("polite", POLITE))
    running = start(plan)
    state = read_state(plan.home)
    assert state is not None
    status = Path(f"/proc/{state['supervisor']['pid']}/status").read_text()
    resident_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    running.stop()
    assert resident_kib < 40_000
