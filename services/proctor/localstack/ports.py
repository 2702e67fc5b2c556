"""Free TCP ports on loopback."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack
from pathlib import Path

from proctor.domain.host import LOOPBACK
from proctor.runtime.files import write_atomic

_RANGE_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 20_000
_TRIES = 200


def _first_ephemeral() -> int:
    try:
        return int(_RANGE_FILE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768


def free_ports(count: int, rng: random.Random) -> list[int]:
    """Ports on 127.0.0.1 on which nothing listens now.

    They lie below the range from which the kernel takes ports for outgoing connections: between this call and the
    server's own bind, a client's connection could otherwise get one of them.
    """
    low, high = _LOWEST, _first_ephemeral()
    with ExitStack() as held:
        found: list[int] = []
        for attempt in range(_TRIES + count):
            if len(found) == count:
                break
            # A range without room, or full: let the kernel choose.
            port = rng.randrange(low, high) if high - low > 1_000 and attempt < _TRIES else 0
            probe = held.enter_context(socket.socket())
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            found.append(probe.getsockname()[1])
    if len(found) < count:
        raise OSError(f"only {len(found)} of {count} ports on 127.0.0.1 could be bound")
    return found


def kept_port(path: Path, drawn: int) -> int:
    """The port that a file holds, where nothing listens on it now; another one that was drawn, which is kept, else.

    For an address that people write down: it stays the same from one start to the next as far as it can.
    """
    try:
        kept = int(path.read_text("ascii"))
        with socket.socket() as probe:
            # What a server before it left behind for a minute does not count: the next one asks for the same.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((LOOPBACK, kept))
    except (OSError, ValueError, OverflowError):
        write_atomic(path, f"{drawn}\n".encode())
        return drawn
    return kept
