"""`python -I private_exec.py PROGRAM ARGUMENT...`: become a program whose files stay its owner's, whatever it says.

A umask is not enough for Triton: its Python backend makes its regions of shared memory by Boost, which opens each to
everybody's eyes with fchmod (0644) right after the umask has closed it, and prompts and answers pass through them. To
close a region afterwards would come too late for whoever had opened it by then. So the kernel is told (seccomp, which
any user may) that an fchmod that gives others a right is to succeed and do nothing, here and in every child.

Run as a file, and standard library only: the program's environment is not ours. The process stays the same one.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_ALLOW = 0x7FFF0000
#: An error of 0: the call succeeds without being made.
_DO_NOTHING = 0x00050000
_OTHERS = 0o077
#: Machine → the kernel's name of it, and the number of fchmod there.
_FCHMOD = {"x86_64": (0xC000003E, 91), "aarch64": (0xC00000B7, 52)}
# Of the kernel's struct seccomp_data: the number of the call, the machine, and the low half of the second argument.
_NUMBER, _MACHINE, _MODE = 0, 4, 24
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_ANY, _RETURN = 0x20, 0x15, 0x45, 0x06


def fchmod_filter(machine: int, number: int) -> bytes:
    """The filter as the kernel's virtual machine (classic BPF) reads it."""
    steps = [
        (_LOAD, 0, 0, _MACHINE),
        (_JUMP_IF_EQUAL, 0, 5, machine),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_IF_EQUAL, 0, 3, number),
        (_LOAD, 0, 0, _MODE),
        (_JUMP_IF_ANY, 0, 1, _OTHERS),
        (_RETURN, 0, 0, _DO_NOTHING),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def ignore_fchmod_for_others() -> None:
    """From now on, in this process and its children, no fchmod gives others a right.

    Raises:
        OSError: the kernel does not let it be done.
    """
    if platform.machine() not in _FCHMOD:
        raise OSError(f"not known for {platform.machine()}")
    code = fchmod_filter(*_FCHMOD[platform.machine()])
    libc, steps = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("n_steps", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    program = Program(len(code) // 8, ctypes.addressof(steps))
    calls = (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0),
    )
    for call in calls:
        if libc.prctl(*call) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def main() -> None:
    """Become the program of the command line."""
    os.umask(_OTHERS)
    try:
        ignore_fchmod_for_others()
    except OSError as error:
        sys.stderr.write(f"warning: other users of this machine can read this program's shared memory: {error}\n")
        sys.stderr.flush()
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 - to be that program is what this one is for


if __name__ == "__main__":
    main()
