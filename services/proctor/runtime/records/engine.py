"""Connections to the record store, and what is done when they break.

A database server restarts, fails over and is upgraded while audits run. Whatever may be done twice is done again then;
what may not says that its outcome is not known.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError

from proctor.domain.errors import BadInputError, StoreNotReadyError

logger = logging.getLogger(__name__)

#: A writer may wait this long for another process' transaction.
_LOCK_TIMEOUT_S: Final = 30.0
#: A server that answers nothing at all is given up after this; one that is restarting refuses at once.
_CONNECT_TIMEOUT_S: Final = 5
#: Before a statement is given again that a server did not let end: eight seconds in all. PostgreSQL is back from an
#: immediate shutdown in one or two, and a task that gives up is itself taken again (`proctor.runtime.messaging.tasks`).
AWAY_WAITS_S: Final = (0.1, 0.4, 1.0, 2.0, 4.5)
#: SQLSTATE classes of what passes: connection lost, transaction rolled back, too few resources, operator intervention.
_PASSING: Final = ("08", "40", "53", "57")

Method = TypeVar("Method", bound=Callable[..., Any])


def store_url(url: str) -> sa.URL:
    """The URL of a record store. PostgreSQL is spoken to by psycopg 3, whatever SQLAlchemy would take by default.

    Raises:
        BadInputError: when it is no URL.
    """
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        # Not the text itself: it may hold a password.
        raise BadInputError(
            "PROCTOR_RECORDS_URL is no database URL: write sqlite:////path/records.sqlite, or "
            "postgresql://user:password@host/database"
        ) from None
    if parsed.drivername in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    return parsed


def open_engine(url: str, **options: Any) -> sa.Engine:
    """An engine for a record store; nothing is connected to yet.

    Raises:
        BadInputError: when the URL is none, or names a database whose driver is not installed.
    """
    parsed = store_url(url)
    connect_args: dict[str, Any] = {}
    if parsed.get_backend_name() == "sqlite":
        connect_args["timeout"] = _LOCK_TIMEOUT_S
    elif parsed.get_backend_name() == "postgresql":
        # An application name tells an operator whose connection it is.
        connect_args |= {"connect_timeout": _CONNECT_TIMEOUT_S, "application_name": "proctor"}
        # A connection that has broken in the pool is found before it is used, and not by the statement.
        options.setdefault("pool_pre_ping", True)
    try:
        return sa.create_engine(parsed, connect_args=connect_args, **options)
    except ModuleNotFoundError as error:
        mend = "pip install 'proctor[postgres]'" if error.name == "psycopg" else f"pip install {error.name}"
        raise BadInputError(f"the record store {parsed!r} needs {error.name}: {mend}") from None
    except sa.exc.NoSuchModuleError:
        raise BadInputError(
            f"the record store {parsed!r} is of a kind that Proctor does not know: use sqlite or postgresql"
        ) from None


def is_passing(error: BaseException) -> bool:
    """Whether the same statement may find its database well again: a server that restarts, a deadlock."""
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated:
        return True
    code = getattr(error.orig, "sqlstate", None)
    if code is not None:
        return str(code)[:2] in _PASSING
    # psycopg knows no code where no connection was made. SQLite has waited by itself for whoever holds its lock.
    return isinstance(error, OperationalError) and type(error.orig).__module__.startswith("psycopg")


def is_locked(error: BaseException) -> bool:
    """Whether another process holds SQLite's lock."""
    code = getattr(error.orig, "sqlite_errorcode", 0) if isinstance(error, OperationalError) else 0
    # The upper bits say more of the same.
    return code & 0xFF == sqlite3.SQLITE_BUSY


def outlasting(method: Method) -> Method:
    """Have a method outlast a server that is away for a moment. For reads, and for writes that may be given twice.

    Raises:
        StoreNotReadyError: when the server is still away after `AWAY_WAITS_S`.
    """

    @wraps(method)
    def patient(*arguments: Any, **keywords: Any) -> Any:
        # Not by `retrying`, which would cost as much as a third of what a row costs to read.
        for wait_s in (*AWAY_WAITS_S, None):
            try:
                return method(*arguments, **keywords)
            except DBAPIError as error:
                if not is_passing(error):
                    raise
                if wait_s is None:
                    raise StoreNotReadyError(f"the record store does not answer: {said(error)}") from error
                note_wait(error, wait_s)
                time.sleep(wait_s)
        raise AssertionError("the last round returns or raises")

    return cast(Method, patient)


def said(error: DBAPIError) -> str:
    """What the database said, on one line and without the statement, whose values may be long."""
    return " ".join(str(error.orig).split())[:300]


def note_wait(error: BaseException, wait_s: float) -> None:
    """Say in the log what is waited for."""
    assert isinstance(error, DBAPIError)
    logger.warning("the record store is asked again in %g s: %s", wait_s, said(error))
