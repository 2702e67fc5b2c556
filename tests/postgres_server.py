"""A real PostgreSQL, of Debian's package or any other, in a folder of its own."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg

from tests.support import free_port, missing, wait_until

_NAMES = count(1)


class PostgresServer:
    """A cluster on a port of loopback, for which one must show a password."""

    def __init__(self, folder: Path, binaries: Path, user: str | None) -> None:
        self._folder, self._binaries, self._user = folder, binaries, user
        self._password = secrets.token_hex(12)
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def _command(self, name: str, *arguments: str) -> list[str]:
        command = [str(self._binaries / name), *arguments]
        if self._user is None:
            return command
        # PostgreSQL does not run as root.
        return ["setpriv", f"--reuid={self._user}", f"--regid={self._user}", "--init-groups", *command]

    def create(self) -> None:
        """Make the cluster's files."""
        password = self._folder / "password"
        password.write_text(self._password)
        if self._user is not None:
            for path in (self._folder, password):
                shutil.chown(path, self._user, self._user)
        subprocess.run(
            self._command(
                "initdb", "--pgdata", str(self._folder / "data"), "--username", "proctor", "--pwfile", str(password),
                "--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale", "--no-sync",
            ),
            check=True, stdout=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip

    def start(self) -> None:
        """Start the server over its files, and wait until it takes connections."""
        # What the machine may lose with its power is not tested, so nothing is flushed.
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
        options = [option for name, value in settings.items() for option in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command("postgres", "-D", str(self._folder / "data"), "-p", str(self._port), *options),
                stdout=log, stderr=log, cwd="/",
            )  # fmt: skip
        wait_until(self._answers, what="PostgreSQL")

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
            return True
        except psycopg.OperationalError:
            return False

    def stop(self) -> None:
        """End the server as `pg_ctl stop --mode immediate` does: every connection breaks, nothing is written out."""
        assert self._process is not None
        # setpriv has become the server itself.
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(timeout=30)

    def url(self, database: str) -> str:
        """Where a database is."""
        return f"postgresql://proctor:{self._password}@127.0.0.1:{self._port}/{database}"

    def new_database(self) -> str:
        """The URL of a database in which there is nothing."""
        name = f"test_{os.getpid()}_{next(_NAMES)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


def _binaries() -> Path:
    if found := shutil.which("initdb"):
        return Path(found).parent
    # Debian keeps them out of the path, several versions side by side.
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not versions:
        missing("PostgreSQL is not installed: scripts/setup_postgres.sh, or apt-get install postgresql")
    return versions[-1].parent


def _other_user() -> str | None:
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return "nobody"


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A server with no database of ours; it is ended, and its files are removed."""
    binaries = _binaries()
    # Not in pytest's folders: those are root's alone.
    with tempfile.TemporaryDirectory(prefix="proctor-postgres-") as folder:
        server = PostgresServer(Path(folder), binaries, _other_user())
        server.create()
        try:
            server.start()
            yield server
        finally:
            server.stop()
