"""Programs that mean harm: none reaches the machine, its network, its files, its processes, its secrets, or a pass."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from proctor.domain.errors import CodeExecutionError
from proctor.domain.program import Failed, Fault, Ran
from proctor.grading.programs import CodeTests, try_answer, written_tests
from proctor.runtime.sandbox import sandbox as sandboxes
from proctor.runtime.sandbox.limits import ProgramLimits
from proctor.runtime.sandbox.sandbox import open_sandbox
from tests.sandboxes import sandbox

_QUICK = ProgramLimits(cpu_s=1, wall_s=15.0, memory_bytes=256 << 20)


def run(body: str, *arguments: Any, limits: ProgramLimits = _QUICK) -> Ran:
    """What `f(*arguments)` with this body gives."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return sandbox(limits)(f"def f(*arguments):\n{lines}\n", "f", [list(arguments)])


def failed(ran: Ran) -> str:
    """The name of what the one call raised."""
    (value,) = ran.values
    assert isinstance(value, Failed), ran
    return value.error


def test_a_program_computes() -> None:
    assert run("return [sum(arguments[0]), 'é', None, 1.5]", [1, 2]) == Ran(([3, "é", None, 1.5],))


@pytest.mark.parametrize(
    "body",
    [
        "import os\nwhile True:\n    os.fork()",
        "import os\nos.posix_spawn('/bin/sh', ['sh'], {})",
        "import subprocess\nsubprocess.run(['true'])",
        "import multiprocessing\nmultiprocessing.get_context('fork').Process(target=print).start()",
        "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'pass'])",
    ],
)
def test_it_makes_no_process_and_becomes_no_other(body: str) -> None:
    assert failed(run(body)) in {"PermissionError", "BlockingIOError"}


def test_it_makes_no_thread() -> None:
    assert failed(run("import threading\nthreading.Thread(target=print).start()")) == "RuntimeError"


def test_it_takes_no_more_memory_than_it_is_given() -> None:
    assert failed(run("return len(bytearray(10 ** 12))")) == "MemoryError"
    body = "held = []\nwhile True:\n    held.append(bytearray(1 << 20))"
    assert failed(run(body, limits=ProgramLimits(memory_bytes=256 << 20))) == "MemoryError"


def test_anonymous_files_are_no_way_round_that() -> None:
    assert failed(run("import os\nos.memfd_create('m')")) == "PermissionError"
    assert failed(run("from multiprocessing import shared_memory as s\ns.SharedMemory(create=True, size=10**9)")) in {
        "PermissionError",
        "FileNotFoundError",
        "OSError",
    }


def test_what_never_ends_is_ended_by_its_processor_time() -> None:
    assert run("while True: pass") == Ran((), Fault.CPU)


def test_a_program_that_will_not_hear_of_it_is_ended_too() -> None:
    body = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    ran = run(body)
    assert ran.values == ()
    assert ran.fault in {Fault.CPU, Fault.ENDED}


def test_what_is_not_through_when_the_clock_is_over_is_ended_and_invalid() -> None:
    before = time.monotonic()
    ran = run("while True: pass", limits=ProgramLimits(cpu_s=60, wall_s=2.0))
    assert (ran.values, ran.fault) == ((), Fault.WALL)
    assert time.monotonic() - before < 30


@pytest.mark.parametrize(
    "body",
    [
        "import time\ntime.sleep(600)",
        "import select\nselect.select([], [], [], 600)",
        "import select\nselect.poll().poll(600_000)",
        "import select\nselect.epoll().poll(600)",
        "import signal\nsignal.pause()",
        "import signal\nsignal.sigtimedwait([1], 600)",
        "import os\nread, write = os.pipe()\nos.read(read, 1)",
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire(timeout=600)",
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
        "import asyncio\nasyncio.run(asyncio.sleep(600))",
    ],
)
def test_nothing_waits_so_that_a_sleeper_holds_no_grader(body: str) -> None:
    before = time.monotonic()
    ran = run(body, limits=ProgramLimits(wall_s=60.0))
    assert (
        ran.fault is Fault.ENDED
        or ran.values == (None,)
        or failed(ran) in {"PermissionError", "OSError", "AttributeError"}
    )
    assert time.monotonic() - before < 30


def test_nothing_of_it_is_left_when_it_is_ended() -> None:
    mark = f"proctor-left-{os.getpid()}"
    run(f"x = '{mark}'\nwhile True: pass", limits=ProgramLimits(cpu_s=60, wall_s=1.0))
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "bwrap" not in listed or mark not in listed


def test_a_deep_recursion_ends_itself_alone() -> None:
    body = "import sys\nsys.setrecursionlimit(10 ** 9)\ndef g(n): return g(n + 1)\nreturn g(0)"
    ran = run(body)
    assert ran.fault in {Fault.ENDED, Fault.CPU} or failed(ran) in {"MemoryError", "RecursionError"}


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/proc/self/environ", "/proc/1/environ", "/sys/kernel/version", "/dev/mem"]
)
def test_it_reads_nothing_of_the_machine_s(path: str) -> None:
    assert failed(run("return open(arguments[0]).read()", path)) in {"FileNotFoundError", "PermissionError"}


def test_it_sees_neither_the_home_nor_this_repository(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    for path in (secret, Path(__file__)):
        assert failed(run("open(arguments[0])", str(path))) == "FileNotFoundError"
    (home,) = run(
        "import os\nreturn os.listdir(arguments[0]) if os.path.exists(arguments[0]) else []", str(Path.home())
    ).values
    # Where the interpreter stands in somebody's home, the way to it is all that is there.
    assert set(home) <= set(Path(sys.base_prefix).parts)


def test_it_is_told_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_API_KEY", "s3cret")
    (told,) = run("import os\nreturn [dict(os.environ), os.environb.get(b'PROCTOR_API_KEY')]").values
    assert "s3cret" not in str(told)
    assert set(told[0]) <= {"PYTHONHASHSEED", "PWD", "LC_CTYPE"}


def test_it_inherits_nothing_that_is_open() -> None:
    with Path(__file__).open() as held, socket.socket() as listening:
        os.set_inheritable(held.fileno(), True)
        os.set_inheritable(listening.fileno(), True)
        body = """
import os
found = []
for descriptor in range(64):
    try:
        os.fstat(descriptor)
        found.append(descriptor)
    except OSError:
        pass
return len(found)
"""
        # What it gives back is written to the one that there is.
        assert run(body).values == (1,)


@pytest.mark.parametrize("path", ["/x", "/usr/lib/x", "/lib/x", "/root/x", "/home/x", "/dev/shm/x"])
def test_it_writes_nowhere_but_in_its_folder(path: str) -> None:
    assert failed(run("open(arguments[0], 'w').write('x')", path)) in {
        "OSError",
        "PermissionError",
        "FileNotFoundError",
    }


def test_its_folder_is_small_and_gone_with_it() -> None:
    assert run("open('/tmp/x', 'w').write('x')\nreturn open('/tmp/x').read()").values == ("x",)
    assert run("import os\nreturn os.listdir('/tmp')").values == ([],)
    # Past the size of a file the kernel refuses, and past that of the folder.
    assert failed(run("open('/tmp/x', 'wb').write(bytes(2 << 20))")) == "OSError"
    body = "for n in range(100):\n    open(f'/tmp/{n}', 'wb').write(bytes(1 << 20))"
    assert failed(run(body)) == "OSError"


def test_no_link_leads_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    for target in (secret, "/proc/self/root", "/etc"):
        assert failed(run("import os\nos.symlink(arguments[0], '/tmp/link')", str(target))) == "PermissionError"
    assert failed(run("import os\nos.mkfifo('/tmp/pipe')")) == "PermissionError"


def test_no_namespace_is_left_and_none_made() -> None:
    body = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
return [libc.unshare(0x10000000), libc.mount(b'none', b'/tmp', b'tmpfs', 0, None), libc.chroot(b'/tmp'),
        libc.ptrace(16, 1, 0, 0), libc.setns(0, 0), libc.personality(0), libc.prctl(22, 0, 0, 0, 0)]
"""
    assert run(body).values == ([-1] * 7,)


@pytest.mark.parametrize(
    "body",
    [
        "import socket\nsocket.create_connection(('127.0.0.1', arguments[0]), 5)",
        "import socket\nsocket.socket(socket.AF_UNIX)",
        "import urllib.request\nurllib.request.urlopen(f'http://127.0.0.1:{arguments[0]}', timeout=5)",
    ],
)
def test_it_has_no_network_not_even_this_machine_s(body: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert failed(run(body, server.getsockname()[1])) in {"PermissionError", "URLError", "OSError"}


def test_it_signals_nobody() -> None:
    body = "import os, signal\nos.kill(arguments[0], signal.SIGKILL)"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        for pid in (other.pid, os.getpid(), 1, -1):
            assert failed(run(body, pid)) == "PermissionError"
        assert other.poll() is None
        other.communicate(b"\n")
    assert run("import os\nreturn os.getpid() < 10").values == (True,)


def test_what_it_prints_goes_nowhere_however_much_it_is() -> None:
    body = "import sys\nfor _ in range(1000):\n    print('x' * 100000)\n    sys.stderr.write('y' * 100000)\nreturn 1"
    assert run(body, limits=ProgramLimits()).values == (1,)


def test_more_than_is_read_of_what_it_gives_back_ends_it() -> None:
    assert run("return 'x' * (4 << 20)") == Ran((), Fault.OUTPUT)
    body = "import os\nwhile True:\n    os.write(3, b'x' * 65536)"
    ran = run(body)
    assert ran.values == ()


@pytest.mark.parametrize(
    "line",
    [b'{"value": ' + b"[" * 100_000, b'{"value": 1e999}', b'{"value": ' + b"9" * 10_000 + b"}", b"\xff", b"[]", b"1"],
)
def test_what_it_writes_itself_is_read_with_care(line: bytes) -> None:
    ran = run(f"import os\nos.write(3, {line!r} + b'\\n')\nos._exit(0)")
    assert ran.fault is not None or ran.values[0] != 1


@pytest.mark.parametrize(
    "body",
    [
        "import os\nos._exit(0)",
        "raise SystemExit(0)",
        'import os\nos.write(3, b\'{"ready": true}\\n{"passed": true}\\n\')\nos._exit(0)',
        "class A:\n    def __eq__(self, other): return True\nreturn A()",
        "class A(int):\n    def __eq__(self, other): return True\nreturn A(7)",
        "import json\njson.dumps = lambda *a, **k: '{\"value\": true}'\nreturn 1",
        "import sys\nframe = sys._getframe(1)\nreturn str(frame.f_locals.get('request', {}).get('expected'))",
    ],
)
def test_no_trick_passes_a_test(body: str) -> None:
    """What is right is not in the sandbox: whoever would write it there has to have computed it."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    target = written_tests(CodeTests("f", ((2,), (3,)), (4, 9)))
    assert try_answer(f"def f(*arguments):\n{lines}\n", target, sandbox(_QUICK)).passed == 0


def test_a_program_is_not_told_what_is_right() -> None:
    tests = CodeTests("f", ((2,),), ("the-answer-that-is-right",))
    body = "def f(x):\n    import gc\n    return [o for o in gc.get_objects() if 'that-is-right' in str(o)][:1]\n"
    assert try_answer(body, written_tests(tests), sandbox(ProgramLimits())).passed == 0


def test_the_same_program_does_the_same_each_time() -> None:
    body = "import random\nreturn [random.random(), hash('x'), list({'a', 'b', 'c', 'd'}), id(0) > 0]"
    assert run(body) == run(body)


def test_installed_packages_cannot_be_imported() -> None:
    for name in ("numpy", "proctor", "pydantic", "pip"):
        assert failed(run(f"import {name}")) == "ModuleNotFoundError"


def test_without_bubblewrap_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "bubblewrap", lambda: None)
    with pytest.raises(CodeExecutionError, match="bubblewrap is not installed; apt-get install bubblewrap"):
        open_sandbox()


def test_where_no_namespace_can_be_made_nothing_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(sandboxes, "bubblewrap", lambda: str(refusing))
    with pytest.raises(CodeExecutionError, match=r"No permissions to create new namespace.*user namespaces"):
        open_sandbox()


def test_on_a_machine_whose_calls_are_not_known_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(CodeExecutionError, match=r"riscv64.*x86_64 and aarch64"):
        open_sandbox()
