"""Servers of this home that were started without a token of the operator's: each draws its own, for its user alone.

Loopback is shared by every user of a machine. So a server there writes its token to HOME/run/SERVICE-PORT.json, which
nobody else can read, and the commands of the same home find it there. With the token stands the process: once that is
gone another user may have its port, and must not be shown what the next one may ask for.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from proctor.domain.host import LOOPBACK, is_same_loopback
from proctor.runtime.files import write_atomic
from proctor.runtime.processes import is_same_process, started_at_ticks

GATEWAY: Final = "gateway"
PERTURBATION: Final = "perturbation"
#: A token and two numbers; whatever is longer was not written here.
MAX_FILE_BYTES: Final = 4096


def own_server_file(home: Path, service: str, port: int) -> Path:
    """Where such a server writes its token; it is there while the server listens."""
    return home / "run" / f"{service}-{port}.json"


@contextmanager
def own_token(home: Path, service: str, host: str) -> Iterator[tuple[str, Callable[[int], None]]]:
    """A new token for a server of this process on a loopback host, and what to call with its port once it listens.

    The token is forgotten with the block.
    """
    token = secrets.token_urlsafe(32)
    written: list[Path] = []

    def listens(port: int) -> None:
        path = own_server_file(home, service, port)
        said = {"token": token, "host": host, "pid": os.getpid(), "started_at_ticks": started_at_ticks(os.getpid())}
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(path, json.dumps(said).encode(), private=True)
        written.append(path)

    try:
        yield token, listens
    finally:
        for path in written:
            path.unlink(missing_ok=True)


def token_of_own_server(home: Path, service: str, host: str, port: int) -> str | None:
    """The token of a server that runs in a home and listens there; None where it has none, or is not this home's."""
    try:
        with own_server_file(home, service, port).open("rb") as stream:
            said = json.loads(stream.read(MAX_FILE_BYTES))
        token, pid, started = said["token"], said["pid"], said["started_at_ticks"]
        # Another address of this machine may be another user's, with the same port.
        here = is_same_loopback(host, said.get("host", LOOPBACK))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    right = isinstance(token, str) and isinstance(pid, int) and isinstance(started, int)
    return token if right and here and is_same_process(pid, started) else None
