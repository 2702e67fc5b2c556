"""Runs inside of the sandbox, by itself: locks the door behind it, then runs what a model wrote.

It is given a request on standard input and writes a line for each call to standard output. It knows what is to be
called and not what is right, so nothing that the code finds out or writes makes a wrong program pass.
"""

import ctypes
import importlib
import json
import os
import random
import resource
import sys
from typing import Any

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2


class _Instructions(ctypes.Structure):
    _fields_ = (("n", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class _Nothing:
    """Where prints go."""

    def write(self, text: str) -> int:
        """Take it."""
        return len(text)

    def flush(self) -> None:
        """There is nothing."""


def _lock(limits: dict[str, tuple[int, int]], instructions: str) -> None:
    for name, (soft, hard) in limits.items():
        resource.setrlimit(getattr(resource, name), (soft, hard))
    code = bytes.fromhex(instructions)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Instructions(len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "the filter of system calls is refused")


def _say(out: int, line: dict[str, Any]) -> None:
    data = json.dumps(line, allow_nan=False).encode() + b"\n"
    while data:
        data = data[os.write(out, data) :]


def main() -> None:
    """Read the request, lock, run."""
    request = json.loads(sys.stdin.buffer.read())
    out = os.dup(1)
    # Loaded while there are files and memory for it.
    for name in request["modules"]:
        importlib.import_module(name)
    _lock(request["limits"], request["filter"])
    _say(out, {"ready": True})
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        setattr(sys, name, _Nothing())
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    random.seed(0)
    space: dict[str, Any] = {"__name__": "answer", "__builtins__": __builtins__}
    try:
        exec(compile(request["code"], "answer", "exec", dont_inherit=True), space)  # noqa: S102, it is what this is for
        function = space[request["entry"]]
    except BaseException as error:
        _say(out, {"load": f"{type(error).__name__}: {error}"[:200]})
        os._exit(0)
    for call in request["calls"]:
        try:
            # Each its own copy: a program may change what it is given.
            _say(out, {"value": function(*json.loads(call))})
        except BaseException as error:
            _say(out, {"error": type(error).__name__[:80]})
    os._exit(0)


if __name__ == "__main__":
    main()
