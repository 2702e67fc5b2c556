"""The system calls that a program may make, as a filter that the kernel applies (seccomp).

What computes, reads its own files and asks the time is allowed; everything else is refused with EPERM: processes and
threads, signals, sockets, pipes, mounts, tracing, key rings, io_uring and whatever a newer kernel has. So is all that
waits: a program that only sleeps would hold a grader for as long as the clock lets it, and cost it nothing. Of futexes
one may wake others and not wait, since there are none. Another architecture's calls end the program.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

_LOAD: Final = 0x20
_JUMP_EQUAL: Final = 0x15
_JUMP_AT_LEAST: Final = 0x35
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_REFUSE: Final = 0x00050000 | 1  # SECCOMP_RET_ERRNO with EPERM
_AND: Final = 0x54
_NUMBER_AT: Final = 0
_ARCHITECTURE_AT: Final = 4
#: The low half of the second argument, on a little-endian machine.
_SECOND_AT: Final = 24
_FUTEX_COMMAND: Final = 0x7F
_FUTEX_WAKE: Final = 1
#: Calls of the x32 form of x86-64 have this bit.
_X32: Final = 0x40000000


class Architecture(NamedTuple):
    """How the kernel names an architecture, and its numbers of what is allowed."""

    audit: int
    numbers: tuple[int, ...]
    futex: int


#: read write close fstat lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn ioctl pread64
#: pwrite64 readv writev sched_yield mremap madvise dup fcntl fsync fdatasync ftruncate getdents64 getcwd chdir
#: fchdir gettid getpid getppid getuid geteuid getgid getegid uname sigaltstack sched_getaffinity clock_gettime
#: clock_getres gettimeofday times getrusage exit exit_group openat mkdirat unlinkat renameat renameat2 newfstatat
#: statx readlinkat faccessat faccessat2 getrandom dup3 sysinfo umask set_robust_list rseq getrlimit prlimit64
_GENERIC: Final = (
    63, 64, 57, 80, 62, 222, 226, 215, 214, 134, 135, 139, 29, 67, 68, 65, 66, 124, 216, 233, 23, 25, 82, 83, 46,
    61, 17, 49, 50, 178, 172, 173, 174, 175, 176, 177, 160, 132, 123, 113, 114, 169, 153, 165, 93, 94, 56, 34, 35,
    38, 276, 79, 291, 78, 48, 439, 278, 24, 179, 166, 99, 293, 163, 261,
)  # fmt: skip
#: The same, and open stat lstat access dup2 time unlink rmdir mkdir rename readlink getdents arch_prctl, which that
#: architecture has of old.
_X86_64: Final = (
    0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 24, 25, 28, 32, 72, 74, 75, 77, 217, 79, 80, 81,
    186, 39, 110, 102, 107, 104, 108, 63, 131, 204, 228, 229, 96, 100, 98, 60, 231, 257, 258, 263, 264, 316, 262,
    332, 267, 269, 439, 318, 292, 99, 95, 273, 334, 97, 302, 2, 4, 6, 21, 33, 201, 87, 84, 83, 82, 89, 78, 158,
)  # fmt: skip

#: By the name that `uname` gives.
ARCHITECTURES: Final = {
    "x86_64": Architecture(0xC000003E, _X86_64, 202),
    "aarch64": Architecture(0xC00000B7, _GENERIC, 98),
}


def filter_of(machine: str) -> bytes | None:
    """The filter for a machine, as the kernel takes it; None for an architecture whose numbers are not known here."""
    known = ARCHITECTURES.get(machine)
    if known is None:
        return None
    lines = [
        _line(_LOAD, 0, 0, _ARCHITECTURE_AT),
        _line(_JUMP_EQUAL, 1, 0, known.audit),
        _line(_RETURN, 0, 0, _KILL),
        _line(_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":
        lines += [_line(_JUMP_AT_LEAST, 0, 1, _X32), _line(_RETURN, 0, 0, _KILL)]
    lines += [
        _line(_JUMP_EQUAL, 0, 5, known.futex),
        _line(_LOAD, 0, 0, _SECOND_AT),
        _line(_AND, 0, 0, _FUTEX_COMMAND),
        _line(_JUMP_EQUAL, 0, 1, _FUTEX_WAKE),
        _line(_RETURN, 0, 0, _ALLOW),
        _line(_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join([*lines, *_allowed(known.numbers), _line(_RETURN, 0, 0, _REFUSE)])


def _allowed(numbers: Iterable[int]) -> Iterable[bytes]:
    for number in sorted(numbers):
        yield _line(_JUMP_EQUAL, 0, 1, number)
        yield _line(_RETURN, 0, 0, _ALLOW)


def _line(code: int, when_true: int, when_false: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, when_true, when_false, value)
