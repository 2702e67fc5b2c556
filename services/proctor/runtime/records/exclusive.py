"""One at a time among all processes that share a record store."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from proctor.domain.errors import StoreError

#: What is done under the lock takes milliseconds; whoever waits longer waits for a process that hangs.
PATIENCE_S: Final = 30.0
_LOOK_S: Final = 0.01
#: Lock files beside a store, over which the names of locks are spread.
_PLACES: Final = 32
#: PostgreSQL's advisory locks are numbered; this one means nothing but itself ("proctor" in ASCII, cut to 56 bits).
_NUMBER: Final = int.from_bytes(b"proctor", "big")


@contextmanager
def exclusive(records_url: str, name: str = "", *, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Hold the lock of a record store for as long as the block lasts. It is given back when its holder dies.

    Beside the store and not in it: a transaction that wrote would keep the block's own writes waiting.

    Args:
        records_url: SQLite, whose lock is a file beside it, or PostgreSQL, which has locks of its own.
        name: of one lock of many; who holds another is not waited for, or seldom: names share a few places.
        patience_s: how long others may hold it.

    Raises:
        StoreError: when it cannot be had in that time, or the store is of another kind.
    """
    url = sa.make_url(records_url)
    kind = url.get_backend_name()
    if kind == "sqlite" and url.database:
        with _file_lock(Path(f"{url.database}{_place(name)}.lock"), patience_s):
            yield
    elif kind == "postgresql":
        with _advisory_lock(url, _number(name), patience_s):
            yield
    else:
        raise StoreError(
            f"{'a registry' if name else 'audits'} cannot be {'written' if name else 'counted'} one at a time with a "
            f"record store of the kind {kind}: use a file of SQLite, or PostgreSQL (PROCTOR_RECORDS_URL)"
            f"{'' if name else ', or leave out max_audits'}"
        )


def _place(name: str) -> str:
    # Files stay, so they are few.
    return f".{_hashed(name) % _PLACES:02d}" if name else ""


def _number(name: str) -> int:
    return _hashed(name) >> 1 if name else _NUMBER


def _hashed(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:8], "big")


@contextmanager
def _file_lock(path: Path, patience_s: float) -> Iterator[None]:
    deadline = time.monotonic() + patience_s
    # The file stays: whoever took it away could leave two holders, of the old file and of a new one.
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _locked(held):
            if time.monotonic() > deadline:
                raise StoreError(f"another process holds {path} for more than {patience_s:g} s: is it hanging?")
            time.sleep(_LOOK_S)
        yield
    finally:
        os.close(held)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _advisory_lock(url: sa.URL, number: int, patience_s: float) -> Iterator[None]:
    if url.drivername == "postgresql":
        # The driver that Proctor's record store takes, whatever SQLAlchemy would.
        url = url.set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, poolclass=NullPool)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(patience_s * 1000)}")
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))
            yield
    except sa.exc.OperationalError as error:
        raise StoreError(f"the record store gives no lock: {error.orig}") from None
    finally:
        engine.dispose()
