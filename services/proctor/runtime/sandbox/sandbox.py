"""Programs that a model wrote, each run in a sandbox of its own."""

from __future__ import annotations

import json
import os
import platform
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from proctor.domain.errors import CodeExecutionError
from proctor.domain.program import Failed, Fault, Ran
from proctor.runtime.sandbox.bubblewrap import INSTALL, bubblewrap, command
from proctor.runtime.sandbox.limits import DEFAULT_LIMITS, ProgramLimits
from proctor.runtime.sandbox.system_calls import ARCHITECTURES, filter_of

_HARNESS: Final = Path(__file__).with_name("harness.py")
#: Loaded before the door is locked, because models import them and limits may keep them from being read.
_MODULES: Final = ("collections", "functools", "heapq", "itertools", "math", "re", "string", "typing")
_PIECE: Final = 65_536
_SAID_BYTES: Final = 4_096
#: The program is gone when its end of the pipe is closed, and bubblewrap says at once how it went.
_LEAVES_S: Final = 5.0
_OUT_OF_TIME: Final = 128 + signal.SIGXCPU


class _Ended(NamedTuple):
    """How the command went."""

    output: bytes
    said: str
    """What bubblewrap and the harness complained of before the door was locked."""
    fault: Fault | None
    status: int
    """What the command ended with: 128 and the signal's number where the program was killed."""


class Sandbox:
    """Runs programs by bubblewrap; callable as `RunProgram`. May be used by several threads at once."""

    def __init__(self, bwrap: str, instructions: bytes, limits: ProgramLimits = DEFAULT_LIMITS) -> None:
        """Use `open_sandbox`, which tries it first."""
        self._command = command(bwrap, limits, _HARNESS.read_text("utf-8"))
        self._instructions, self._limits = instructions.hex(), limits

    def __call__(self, code: str, entry: str, calls: Sequence[Sequence[Any]], /) -> Ran:
        """What the calls gave; see `RunProgram`."""
        request = {
            "code": code,
            "entry": entry,
            "calls": [json.dumps(list(call)) for call in calls],
            "limits": self._limits.as_rlimits(),
            "filter": self._instructions,
            "modules": _MODULES,
        }
        # A lone surrogate travels as its escape, and is a fault of the program's there.
        ended = _run(self._command, json.dumps(request).encode(), self._limits)
        return _read(ended, len(calls), self._limits)


def open_sandbox(limits: ProgramLimits = DEFAULT_LIMITS) -> Sandbox:
    """The sandbox of this machine, tried once.

    Raises:
        CodeExecutionError: where there is none, with the mend.
    """
    if platform.system() != "Linux":
        raise CodeExecutionError(f"code is run on Linux alone, by its namespaces; this is {platform.system()}")
    instructions = filter_of(platform.machine())
    if instructions is None:
        raise CodeExecutionError(
            f"no code is run on {platform.machine()}: its system calls are not known here, only those of "
            f"{' and '.join(ARCHITECTURES)}"
        )
    bwrap = bubblewrap()
    if bwrap is None:
        raise CodeExecutionError(f"no code is run here, because bubblewrap is not installed; {INSTALL}")
    sandbox = Sandbox(bwrap, instructions, limits)
    ran = sandbox("def same(value):\n    return value\n", "same", [["sandbox"]])
    if ran.values != ("sandbox",):
        raise CodeExecutionError(f"no code is run here: the sandbox does not give back what it should ({ran.fault})")
    return sandbox


def _run(arguments: Sequence[str], request: bytes, limits: ProgramLimits) -> _Ended:
    given = os.memfd_create("request")
    try:
        os.write(given, request)
        os.lseek(given, 0, os.SEEK_SET)
        process = subprocess.Popen(
            arguments,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Bubblewrap itself is told nothing either.
            env={},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise CodeExecutionError(f"no code is run here: {error.strerror or error}") from None
    finally:
        os.close(given)
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        try:
            output, said, fault = _listen(process.stdout, process.stderr, limits)
            if fault is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LEAVES_S)
        finally:
            # Its end is the end of everything in its process namespace.
            process.kill()
            process.wait()
    return _Ended(output, said, fault, process.returncode)


def _listen(output: IO[bytes], errors: IO[bytes], limits: ProgramLimits) -> tuple[bytes, str, Fault | None]:
    """What comes until both ends are closed, the time is over, or more comes than is read."""
    held = {output.fileno(): bytearray(), errors.fileno(): bytearray()}
    deadline = time.monotonic() + limits.wall_s
    with selectors.DefaultSelector() as waiting:
        for descriptor in held:
            waiting.register(descriptor, selectors.EVENT_READ)
        while waiting.get_map():
            left = deadline - time.monotonic()
            ready = waiting.select(left) if left > 0 else []
            if not ready:
                return bytes(held[output.fileno()]), _said(held[errors.fileno()]), Fault.WALL
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE)
                if not piece:
                    waiting.unregister(key.fd)
                elif key.fd == output.fileno():
                    held[key.fd] += piece
                else:
                    held[key.fd] = (held[key.fd] + piece)[:_SAID_BYTES]
            if len(held[output.fileno()]) > limits.output_bytes:
                return bytes(held[output.fileno()]), _said(held[errors.fileno()]), Fault.OUTPUT
    return bytes(held[output.fileno()]), _said(held[errors.fileno()]), None


def _said(held: bytearray) -> str:
    lines = bytes(held).decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def _read(ended: _Ended, n_calls: int, limits: ProgramLimits) -> Ran:
    lines = ended.output[: limits.output_bytes].split(b"\n")[:-1]
    if not lines or lines[0] != b'{"ready": true}':
        # Nothing of the program has run.
        raise CodeExecutionError(
            f"no code is run here: the sandbox cannot be set up ({ended.said or ended.fault or 'it says nothing'}); it "
            "needs user namespaces, which containers and some distributions switch off (docs/security.md)"
        )
    values = list[Any]()
    for line in lines[1 : n_calls + 1]:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(said, dict) or "load" in said:
            return Ran((), Fault.NOT_LOADED)
        if "value" in said:
            values.append(said["value"])
        else:
            values.append(Failed(str(said.get("error", ""))[:80]))
    if len(values) == n_calls:
        # What comes behind the last result, or never ends after it, is nobody's concern.
        return Ran(tuple(values))
    if ended.fault is None and ended.status == _OUT_OF_TIME:
        return Ran(tuple(values), Fault.CPU)
    return Ran(tuple(values), ended.fault or Fault.ENDED)
