"""The record store's tables have a version, and one of many processes brings an earlier store to this one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from proctor.domain.errors import StoreError, StoreNotReadyError
from proctor.runtime.records.audit_list import Wanted
from proctor.runtime.records.engine import open_engine
from proctor.runtime.records.migrations.versions.v0001_baseline import _BASELINE
from proctor.runtime.records.opening import open_records
from proctor.runtime.records.schema import AHEAD, MIGRATIONS, SCHEMA_VERSION, version_of
from proctor.runtime.records.store import Records
from proctor.runtime.records.tables import METADATA
from proctor.runtime.settings import RecordsMigrate, Settings
from tests.support import run_proctor
from tests.together import said_together

PROCESSES = 8


@contextmanager
def connected(url: str) -> Iterator[sa.Connection]:
    engine = open_engine(url)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def tables(url: str) -> set[str]:
    with connected(url) as connection:
        return set(sa.inspect(connection).get_table_names())


def make_as_before_versions(url: str) -> None:
    """What a Proctor did that knew no versions, and an audit that it put on record."""
    with connected(url) as connection:
        _BASELINE.create_all(connection)
        connection.exec_driver_sql("INSERT INTO audits VALUES ('old-1', 'old', 1, '{}', '{}', 'decided', '', '2026')")


def set_version(url: str, version: str) -> None:
    with connected(url) as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :version"), {"version": version})


def test_a_new_store_has_this_version_and_the_tables_that_the_program_knows(records_url: str) -> None:
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == f"{SCHEMA_VERSION:04d}"
    assert version_of(records_url) == 0
    Records(records_url).close()
    assert version_of(records_url) == SCHEMA_VERSION
    with connected(records_url) as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


def test_a_store_of_before_there_were_versions_is_adopted_with_what_is_in_it(records_url: str) -> None:
    make_as_before_versions(records_url)
    with closing(Records(records_url)) as records:
        assert [audit.audit_id for audit in records.audits()] == ["old-1"]
        assert records.create_audit("old", "{}", {}).audit_id == "old-2"
    assert version_of(records_url) == SCHEMA_VERSION


def test_what_lists_are_looked_through_by_is_filled_in_for_audits_of_before(records_url: str) -> None:
    make_as_before_versions(records_url)
    suite = '{"audit_suite_id": "gsm8k", "model_config": {"model_id": "org/m"}}'
    with connected(records_url) as connection:
        for audit, inputs in (("a-1", '{"submitter": "ci"}'), ("b-1", "{}"), ("c-1", "no JSON")):
            connection.execute(
                sa.text("INSERT INTO audits VALUES (:id, :id, 1, :suite, :inputs, 'decided', '', '2026')"),
                {"id": audit, "suite": suite, "inputs": inputs},
            )
        connection.exec_driver_sql("INSERT INTO decisions VALUES ('a-1', '{\"outcome\": \"block\"}', '2026')")
    with closing(Records(records_url)) as records:
        found = {one.audit_id: one for one in records.list.page(Wanted(model_id="org/m"), limit=9)}
        assert sorted(found) == ["a-1", "b-1", "c-1"]
        assert (found["a-1"].suite_id, found["a-1"].submitter, found["a-1"].outcome) == ("gsm8k", "ci", "block")
        assert (found["b-1"].submitter, found["b-1"].outcome) == ("local", None)
        assert [one.audit_id for one in records.list.page(Wanted(outcome="block"), limit=9)] == ["a-1"]
        assert [one.audit_id for one in records.list.page(Wanted(submitter="ci"), limit=9)] == ["a-1"]


def test_what_an_earlier_proctor_writes_beside_this_one_is_filled_in_later(records_url: str) -> None:
    suite = '{"audit_suite_id": "gsm8k", "model_config": {"model_id": "org/m"}}'
    with closing(Records(records_url)) as records:
        with connected(records_url) as connection:
            connection.execute(
                sa.text(
                    "INSERT INTO audits (audit_id, subject, ordinal, suite, inputs, state, detail, created_at) "
                    "VALUES ('a-1', 'a', 1, :suite, '{\"submitter\": \"ci\"}', 'decided', '', '2026')"
                ),
                {"suite": suite},
            )
        (row,) = records.list.page(Wanted(), limit=9)
        assert (row.model_id, row.suite_id) == ("org/m", "gsm8k")
        assert [one.audit_id for one in records.audits(submitter="ci")] == ["a-1"]
        assert records.list.page(Wanted(submitter="ci"), limit=9) == []
        assert records.list.fill_in() == 1
        assert [one.audit_id for one in records.list.page(Wanted(submitter="ci", model_id="org/m"), limit=9)] == ["a-1"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "ALTER TABLE audits DROP COLUMN created_at",
            "its table audits is not as Proctor .*: it lacks created_at",
        ),
        ("ALTER TABLE decisions ADD COLUMN mood TEXT", "its table decisions is not .*: it has mood besides"),
    ],
)
def test_a_store_whose_columns_are_others_is_not_adopted_and_stays_as_it_is(
    records_url: str, change: str, words: str
) -> None:
    make_as_before_versions(records_url)
    with connected(records_url) as connection:
        connection.exec_driver_sql("DROP TABLE registrations")
        connection.exec_driver_sql(change)
    before = tables(records_url)
    with pytest.raises(StoreError, match=words):
        Records(records_url)
    assert tables(records_url) == before
    assert version_of(records_url) == 0


_OPEN = """
import logging, sys
from proctor.runtime.records.store import Records
import alembic.config, alembic.script, alembic.runtime.environment
logging.basicConfig(level="INFO", format="%(message)s")
print("ready", flush=True)
sys.stdin.readline()
with_store = Records(sys.argv[1])
print(with_store.create_audit(f"by-{sys.argv[2]}", "{}", {}).audit_id)
"""


@pytest.mark.parametrize("made_before", [False, True], ids=["empty", "of before versions"])
def test_of_many_processes_that_start_at_the_same_time_one_migrates(records_url: str, made_before: bool) -> None:
    if made_before:
        make_as_before_versions(records_url)
    said = said_together(_OPEN, [(records_url, str(number)) for number in range(PROCESSES)])
    assert [out for out, _ in said] == [f"by-{number}-1\n" for number in range(PROCESSES)], said
    assert sum(f"is migrated from schema version 0 to {SCHEMA_VERSION}" in errors for _, errors in said) == 1
    with closing(Records(records_url)) as records:
        assert len(records.audits()) == PROCESSES + made_before


def test_a_migration_whose_process_is_killed_has_not_happened_and_the_next_one_does_it(records_url: str) -> None:
    make_as_before_versions(records_url)
    killed = (
        "import os, signal, sys\n"
        "import sqlalchemy as sa\n"
        "from proctor.runtime.records.store import Records\n"
        "def kill(table, *_, **__):\n"
        "    if table.name == 'registrations': os.kill(os.getpid(), signal.SIGKILL)\n"
        "sa.event.listen(sa.Table, 'after_create', kill)\n"
        "Records(sys.argv[1])\n"
    )
    with connected(records_url) as connection:
        connection.exec_driver_sql("DROP TABLE registrations")
        connection.exec_driver_sql("DROP TABLE decisions")
    before = tables(records_url)
    ended = subprocess.run([sys.executable, "-c", killed, records_url], capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert (tables(records_url), version_of(records_url)) == (before, 0)
    Records(records_url).close()
    assert version_of(records_url) == SCHEMA_VERSION


def test_a_store_one_version_ahead_is_worked_with_and_one_further_ahead_is_refused(records_url: str) -> None:
    Records(records_url).close()
    with connected(records_url) as connection:
        connection.exec_driver_sql("ALTER TABLE audits ADD COLUMN mood TEXT")
    set_version(records_url, f"{SCHEMA_VERSION + AHEAD:04d}")
    with closing(Records(records_url)) as records:
        records.create_audit("a", "{}", {})
        assert [audit.audit_id for audit in records.audits()] == ["a-1"]
    set_version(records_url, f"{SCHEMA_VERSION + AHEAD + 1:04d}")
    with pytest.raises(
        StoreError, match=rf"is at schema version {SCHEMA_VERSION + AHEAD + 1}, .*: use a newer Proctor"
    ):
        Records(records_url)
    assert version_of(records_url) == SCHEMA_VERSION + AHEAD + 1


@pytest.mark.parametrize("version", ["f3ab91c0", "²", "-1"])
def test_another_program_s_database_is_left_alone(records_url: str, version: str) -> None:
    Records(records_url).close()
    set_version(records_url, version)
    with pytest.raises(StoreError, match="none of Proctor's"):
        Records(records_url)


def test_a_store_is_not_migrated_where_that_is_not_allowed(records_url: str) -> None:
    with pytest.raises(StoreError, match="`proctor records migrate`"):
        Records(records_url, migrate=False)
    assert tables(records_url) == set()
    Records(records_url).close()
    Records(records_url, migrate=False).close()


def waiting_settings(tmp_path: Path, url: str, wait_s: float) -> Settings:
    return Settings(home=tmp_path, records_url=url, records_migrate=RecordsMigrate.NEVER, records_wait_s=wait_s)


def test_a_service_waits_for_a_store_that_another_process_is_still_to_migrate(
    records_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In place of the time that passes until the other process gets there.
    monkeypatch.setattr("proctor.runtime.records.opening.time.sleep", lambda _: Records(records_url).close())
    with closing(open_records(waiting_settings(tmp_path, records_url, 60.0))) as records:
        assert records.audits() == []


def test_a_service_waits_no_longer_than_it_is_to(records_url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreNotReadyError, match="`proctor records migrate`"):
        open_records(waiting_settings(tmp_path, records_url, 0.0))
    assert tables(records_url) == set()


def test_a_service_does_not_wait_for_a_store_that_needs_a_newer_program(records_url: str, tmp_path: Path) -> None:
    Records(records_url).close()
    set_version(records_url, f"{SCHEMA_VERSION + AHEAD + 1:04d}")
    with pytest.raises(StoreError, match="use a newer Proctor"):
        open_records(waiting_settings(tmp_path, records_url, 3600.0))


def test_commands_migrate_a_home_s_own_store_and_no_server_s() -> None:
    assert RecordsMigrate.AUTO.commands("sqlite:////home/records.sqlite")
    assert not RecordsMigrate.AUTO.commands("postgresql://db/records")
    assert RecordsMigrate.AUTO.services
    assert not RecordsMigrate.NEVER.services
    assert not RecordsMigrate.NEVER.commands("sqlite:////home/records.sqlite")


@pytest.fixture
def home(tmp_path: Path, records_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROCTOR_RECORDS_URL", records_url)
    monkeypatch.setenv("PROCTOR_RECORDS_MIGRATE", "never")
    return tmp_path / "home"


def test_an_operator_migrates_and_asks_for_the_version(home: Path) -> None:
    asked = run_proctor("records", "version", home=home)
    assert (asked.returncode, asked.stderr) == (1, "")
    assert "schema version 0" in asked.stdout
    first, second = (run_proctor("records", "migrate", "--format", "json", home=home) for _ in range(2))
    assert json.loads(first.stdout) == {"before": 0, "after": SCHEMA_VERSION}
    assert json.loads(second.stdout) == {"before": SCHEMA_VERSION, "after": SCHEMA_VERSION}
    asked = run_proctor("records", "version", "--format", "json", home=home)
    assert json.loads(asked.stdout) == {"store": SCHEMA_VERSION, "program": SCHEMA_VERSION, "usable": True}
    assert asked.returncode == 0


def test_a_command_that_meets_a_store_of_another_version_says_what_to_do_and_changes_nothing(
    home: Path, records_url: str
) -> None:
    listed = run_proctor("audit", "list", home=home)
    assert listed.returncode == 1
    assert listed.stderr.count("\n") == 1
    assert "`proctor records migrate`" in listed.stderr
    Records(records_url).close()
    set_version(records_url, "0007")
    listed = run_proctor("audit", "list", home=home)
    assert listed.returncode == 1
    assert listed.stderr.count("\n") == 1
    assert "use a newer Proctor" in listed.stderr
    assert run_proctor("records", "version", home=home).returncode == 1
    assert run_proctor("records", "migrate", home=home).returncode == 1
    assert version_of(records_url) == 7


def test_a_worker_that_may_not_migrate_ends_with_what_to_do_before_it_takes_a_message(home: Path) -> None:
    settings = Settings(home=home)
    environment = {**os.environ, "PROCTOR_HOME": str(settings.home), "PROCTOR_BROKER_URL": "redis://127.0.0.1:9/0"}
    worker = subprocess.run(
        [sys.executable, "-m", "proctor", "worker", "router"],
        env=environment, capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert worker.returncode == 1
    assert "`proctor records migrate`" in worker.stderr
