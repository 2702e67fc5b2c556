"""Another user of the same machine reads nothing of a home: it is 0700, and what is in it 0600, whatever the umask."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from proctor.localstack.service import Readiness, Service
from proctor.runtime.artifacts.local import LocalArtifacts
from proctor.runtime.files import write_atomic
from proctor.runtime.private import prepare_database, tighten
from proctor.runtime.records.store import Records
from tests.supervised_plans import plan_of, supervised
from tests.support import loose_paths

PROGRAM = "import sys; from proctor.cli.main import main; sys.exit(main())"


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=["umask 000", "umask 022", "umask 077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def proctor(*arguments: str | Path, home: Path, umask: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        env={**os.environ, "PROCTOR_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        umask=umask,
    )


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def make_loose(home: Path) -> None:
    for path in (home, *home.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o777 if path.is_dir() else 0o666)


def test_a_home_that_audit_list_makes_is_its_owners_alone(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    listed = proctor("audit", "list", home=home)
    assert listed.returncode == 0, listed.stderr
    assert (home / "records.sqlite").is_file()
    assert mode(home.parent) == 0o700
    assert loose_paths(home) == []


def test_a_home_that_is_found_open_is_closed_with_all_that_is_in_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in (
        "artifacts/ab/abcd.z", "reports/an-audit/report.html", "logs/router.log", "logs/crash-1.log", "stack.json",
        "mlflow/mlflow.db", "mlflow/artifacts/1/run/artifacts/file", "valkey/appendonlydir/appendonly.aof.1.incr.aof",
        "run/stack-metrics/router-1/counter_1.db",
    ):  # fmt: skip
        write_atomic(home / name, b"secret")
    Records(f"sqlite:///{home / 'records.sqlite'}").close()
    make_loose(home)
    # Opened here, so that the files beside the database are there, and stay open to others if nobody closes them.
    records = Records(f"sqlite:///{home / 'records.sqlite'}")
    records.create_audit("subject", "{}", {})
    for end in ("-wal", "-shm"):
        (home / f"records.sqlite{end}").chmod(0o666)
    listed = proctor("audit", "list", home=home, PROCTOR_RECORDS_URL=f"sqlite:///{tmp_path / 'others.sqlite'}")
    records.close()
    assert listed.returncode == 0, listed.stderr
    assert loose_paths(home) == []


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
def test_a_database_elsewhere_is_closed_with_the_files_beside_it(tmp_path: Path, end: str) -> None:
    path = tmp_path / "records.sqlite"
    for name in (path, Path(f"{path}{end}")):
        name.touch(0o666)
        name.chmod(0o666)
    prepare_database(path)
    assert loose_paths(path.with_name(f"records.sqlite{end}")) == []


def test_databases_that_are_no_files_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite://", "sqlite:///:memory:"):
        Records(url).close()
    assert os.listdir(tmp_path) == []


def test_a_link_in_a_home_opens_and_closes_nothing_elsewhere(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("another's")
    home.mkdir()
    (home / "run").mkdir()
    (home / "run" / "backends").symlink_to(elsewhere)
    (home / "file").symlink_to(elsewhere / "file")
    elsewhere.chmod(0o755)
    (elsewhere / "file").chmod(0o644)
    tighten(home)
    assert (mode(elsewhere), mode(elsewhere / "file")) == (0o755, 0o644)


def test_a_home_that_is_a_link_is_closed_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(0o755)
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    tighten(tmp_path / "home")
    assert mode(tmp_path / "disk") == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user, which root alone may")
def test_what_belongs_to_another_user_is_left_to_him(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_atomic(home / "theirs" / "file", b"x")
    os.chown(home / "theirs", 65534, 65534)
    (home / "theirs").chmod(0o755)
    tighten(home)
    assert mode(home / "theirs") == 0o755


def test_a_folder_deep_in_the_home_that_is_private_is_not_gone_through_again(tmp_path: Path) -> None:
    """A store of a million objects costs a look at its 256 folders."""
    objects = tmp_path / "home" / "artifacts" / "ab"
    write_atomic(objects / "one.z", b"x")
    (objects / "one.z").chmod(0o644)
    tighten(tmp_path / "home")
    assert mode(objects / "one.z") == 0o644
    objects.chmod(0o755)
    tighten(tmp_path / "home")
    assert loose_paths(tmp_path / "home") == []


def test_artifacts_are_private(tmp_path: Path, umask: int) -> None:
    LocalArtifacts(tmp_path / "new" / "artifacts").put(b"a prompt")
    assert loose_paths(tmp_path / "new") == []


def test_a_store_elsewhere_is_closed_as_well(tmp_path: Path) -> None:
    store = tmp_path / "store"
    LocalArtifacts(store).put(b"a prompt")
    make_loose(store)
    assert proctor("audit", "list", home=tmp_path / "home", PROCTOR_ARTIFACTS=str(store)).returncode == 0
    assert loose_paths(store) == []


def test_a_traceback_is_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(0o755)
    # A folder in the place of the database: an error that nobody foresaw.
    crashed = subprocess.run(
        [sys.executable, "-c", "import proctor.cli.main as m; m.cli.main = lambda **_: 1 / 0; m.main(['x'])"],
        env={**os.environ, "PROCTOR_HOME": str(home)},
        capture_output=True,
        text=True,
        umask=0,
    )
    assert "the traceback is in" in crashed.stderr
    (log,) = (home / "logs").iterdir()
    assert "ZeroDivisionError" in log.read_text()
    assert loose_paths(home) == []


#: Makes files as a server does that thinks of nobody else: a database, a region of shared memory.
CARELESS = """
import os, pathlib, sqlite3, sys, time
from multiprocessing import shared_memory
os.makedirs("careless/folder")
pathlib.Path("careless/folder/file").write_text("x")
sqlite3.connect("careless/database").execute("CREATE TABLE t (x)")
region = pathlib.Path("/dev/shm") / sys.argv[1]
os.close(os.open(region, os.O_CREAT | os.O_RDWR, 0o644))
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")
def test_what_services_write_is_private_whatever_they_ask_for(tmp_path: Path, umask: int) -> None:
    region = Path("/dev/shm") / f"proctor-test-{os.getpid()}"
    argv = (sys.executable, "-c", CARELESS, region.name)
    plan = plan_of(tmp_path / "home", Service("careless", argv, Readiness("line", text="ready")))
    plan.home.mkdir(mode=0o700)
    try:
        with supervised(plan):
            assert json.loads(plan.state_path.read_text())["state"] == "ready"
            assert loose_paths(plan.home) == []
            assert loose_paths(region) == []
    finally:
        region.unlink(missing_ok=True)


def test_a_file_whose_name_a_person_gave_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    written = proctor("suite", "init", tmp_path / "shared" / "suite.json", home=tmp_path / "home", umask=0o022)
    assert written.returncode == 0, written.stderr
    assert (mode(tmp_path / "shared"), mode(tmp_path / "shared" / "suite.json")) == (0o755, 0o644)


def test_a_database_that_is_open_keeps_its_locks_when_it_is_opened_once_more(tmp_path: Path) -> None:
    """The kernel gives up a process' locks on a file with the first descriptor of it that is closed, whoever's."""
    path = tmp_path / "records.sqlite"
    prepare_database(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE rows (id)")
        for mode in ("DELETE", "WAL"):
            connection.execute(f"PRAGMA journal_mode={mode}")
            connection.execute("BEGIN IMMEDIATE")
            path.chmod(0o644)
            prepare_database(path)
            tighten(tmp_path)
            assert path.stat().st_mode & 0o777 == 0o600
            other = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
            said = subprocess.run([sys.executable, "-c", other, str(path)], capture_output=True, text=True)
            assert "database is locked" in said.stderr, f"another process wrote too ({mode})"
            connection.execute("COMMIT")
