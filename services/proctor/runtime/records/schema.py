"""The version of the record store's tables: which one a store has, which this program works with, how it is raised.

A version is a migration of Alembic in `migrations/versions`, numbered from 1. A migration only adds what the program
of the version before can leave alone (a table, a column with a default or none needed), so a store works with the
program of its own version and with that of the one before: while a deployment is upgraded, both are at work. What is
not needed any more is taken away a version later at the earliest. docs/architecture.md says the same to operators.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from proctor.domain.errors import StoreError, StoreNotReadyError
from proctor.runtime.records.engine import open_engine

logger = logging.getLogger(__name__)

#: The version of the tables in `record_tables`, which is that of the newest migration.
SCHEMA_VERSION: Final = 2
#: By how many versions a store may be ahead of the program that uses it.
AHEAD: Final = 1
MIGRATIONS: Final = Path(__file__).with_name("migrations")

_VERSION_TABLE: Final = "alembic_version"
#: Of PostgreSQL's advisory lock; any number will do that nothing else in the database takes.
_LOCK: Final = 0x50524F43_544F52
#: Whoever finds a migration under way waits for its end: it may have to go through large tables.
_LOCK_WAIT_S: Final = 300


def schema_version(connection: sa.Connection) -> int:
    """The version that a store has; 0 where it has none: it is empty, or was made before versions were kept.

    Raises:
        StoreError: when its version is none of Proctor's.
    """
    if not sa.inspect(connection).has_table(_VERSION_TABLE):
        return 0
    found = connection.execute(sa.text(f"SELECT version_num FROM {_VERSION_TABLE}")).scalars().all()  # noqa: S608
    if not found:
        return 0
    if len(found) > 1 or not str(found[0]).isascii() or not str(found[0]).isdigit():
        raise StoreError(
            f"the record store's schema version is {str(found)[:80]}, which is none of Proctor's: "
            "does PROCTOR_RECORDS_URL name another program's database?"
        )
    return int(found[0])


def version_of(url: str) -> int:
    """The version of the store behind a URL, which is left as it is; 0 where there is none yet.

    Raises:
        StoreError: when it cannot be opened, or its version is none of Proctor's.
    """
    engine = open_engine(url)
    database = engine.url.database
    if engine.dialect.name == "sqlite" and not (database and Path(database).exists()):
        return 0
    try:
        with engine.connect() as connection:
            return schema_version(connection)
    except sa.exc.SQLAlchemyError as error:
        raise StoreError(f"the record store {engine.url!r} cannot be opened: {error}") from error
    finally:
        engine.dispose()


def prepare(engine: sa.Engine, *, migrate: bool) -> None:
    """See to it that this program can work with a store.

    Raises:
        StoreError: when the store is of a version that this program does not work with, or of an earlier one and it is
            not to be migrated here (StoreNotReadyError), or cannot be migrated.
    """
    with engine.connect() as connection:
        found = schema_version(connection)
    _check_not_too_new(found)
    if found >= SCHEMA_VERSION:
        return
    if not migrate:
        raise StoreNotReadyError(
            f"the record store is at schema version {found} and this Proctor needs {SCHEMA_VERSION}: give "
            "`proctor records migrate` once, or start a worker that may (PROCTOR_RECORDS_MIGRATE=auto)"
        )
    migrate_store(engine)


def migrate_store(engine: sa.Engine) -> None:
    """Bring a store to this program's version, under a lock: of several processes one does it, the others find it done.

    A migration happens whole or not at all, whenever its process dies.

    Raises:
        StoreError: when the store is newer than what this program works with, or its tables are none that a Proctor
            made.
    """
    with _locked(engine) as connection:
        found = schema_version(connection)
        _check_not_too_new(found)
        if found < SCHEMA_VERSION:
            logger.info("the record store is migrated from schema version %d to %d", found, SCHEMA_VERSION)
            _upgrade(connection)


def _check_not_too_new(found: int) -> None:
    if found > SCHEMA_VERSION + AHEAD:
        raise StoreError(
            f"the record store is at schema version {found}, and this Proctor works with {SCHEMA_VERSION} and "
            f"{SCHEMA_VERSION + AHEAD}: use a newer Proctor (nothing was changed)"
        )


@contextmanager
def _locked(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that no other process' migration is beside; it is committed at the end."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            # Python's driver begins no transaction for what changes tables.
            connection.exec_driver_sql("BEGIN EXCLUSIVE")
        else:
            connection.execute(sa.text(f"SET LOCAL lock_timeout = '{_LOCK_WAIT_S}s'"))
            # Gone with the transaction, and so with the process that holds it.
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        yield connection
        connection.commit()


def _upgrade(connection: sa.Connection) -> None:
    # Half a second of imports, of which a process that finds its store as it should be has no need.
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(MIGRATIONS))

    def steps(revision: Any, _: object) -> Any:
        return scripts._upgrade_revs("head", revision)

    with EnvironmentContext(Config(), scripts, fn=steps) as environment:
        environment.configure(connection=connection, version_table=_VERSION_TABLE)
        environment.run_migrations()
