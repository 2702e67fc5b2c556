"""The record store writes decisions and library rows once, whoever writes at the same time."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from proctor.domain.errors import BadInputError, NewerVersionError, StoreError
from proctor.runtime.records.engine import open_engine
from proctor.runtime.records.store import MAX_DETAIL_CHARACTERS, AuditRecord, AuditState, Records
from tests.support import free_port


@pytest.fixture
def records(records_url: str) -> Iterator[Records]:
    store = Records(records_url)
    yield store
    store.close()


@contextmanager
def by_hand(records_url: str) -> Iterator[sa.Connection]:
    """What an operator, or an earlier Proctor, does to the database."""
    engine = open_engine(records_url)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def _rows(records: Records, keys: list[str]) -> dict[str, Any]:
    return {key: json.loads(row) for key, row in records.library_get(keys).items()}


def test_audits_of_a_subject_are_numbered(records: Records) -> None:
    first = records.create_audit("subject", "{}", {"items": "x"})
    second = records.create_audit("subject", "{}", {})
    assert (first.audit_id, second.audit_id) == ("subject-1", "subject-2")
    assert records.latest_audit("subject") == second
    assert records.latest_audit("other") is None
    assert records.audit("subject-1").inputs == {"items": "x"}


def test_only_one_of_two_movers_advances_an_audit(records: Records) -> None:
    audit = records.create_audit("s", "{}", {})
    assert records.advance(audit.audit_id, AuditState.PROBING, expected=[AuditState.CREATED])
    assert not records.advance(audit.audit_id, AuditState.PROBING, expected=[AuditState.CREATED])
    assert [record.state for record in records.running_audits()] == [AuditState.PROBING]
    records.advance(audit.audit_id, AuditState.FAILED, expected=[AuditState.PROBING], detail="endpoint down")
    assert records.running_audits() == []
    assert records.audit(audit.audit_id).detail == "endpoint down"


def test_inputs_are_replaced_only_where_they_are_still_those_that_were_read(records: Records) -> None:
    audit = records.create_audit("s", "{}", {"round": 1, "name": "café", "share": 0.1})
    first, second = ({**audit.inputs, "round": number} for number in (2, 3))
    read = audit.inputs

    def write(inputs: dict[str, Any]) -> bool:
        # The state comes back: it alone would let the second writer pass.
        expected = [AuditState.CREATED]
        return records.advance(
            audit.audit_id, AuditState.CREATED, expected=expected, expected_inputs=read, inputs=inputs
        )

    assert write(first)
    assert not write(second)
    assert records.audit(audit.audit_id).inputs == first


def test_a_decision_is_written_once(records: Records) -> None:
    assert records.decide("a", {"outcome": "block"})
    assert not records.decide("a", {"outcome": "approve"})
    assert records.decision("a") == {"outcome": "block"}
    assert records.decision("b") is None


def test_a_registration_is_written_once(records: Records) -> None:
    assert records.register("a", "3")
    assert not records.register("a", "4")
    assert records.registration("a") == "3"


def test_the_first_row_of_a_library_key_stays(records: Records) -> None:
    assert records.library_put({"k": {"v": 1}, "l": {"v": 2}}) == 2
    assert records.library_put({"k": {"v": 9}, "m": {"v": 3}}) == 1
    assert _rows(records, ["k", "m", "nothing"]) == {"k": {"v": 1}, "m": {"v": 3}}


def test_a_library_read_of_many_keys_finds_them_all(records: Records) -> None:
    rows = {f"key-{i}": {"i": i} for i in range(2500)}
    records.library_put(rows)
    assert _rows(records, list(rows)) == rows


def _origin(source: str) -> dict[str, str]:
    return {"source": source, "proctor": "1", "gate": "2", "file": ""}


def test_a_library_row_keeps_the_origin_of_its_first_writer(records: Records) -> None:
    records.library_put({"k": {"v": 1}}, _origin("build"))
    records.library_put({"k": {"v": 2}, "l": {"v": 3}}, _origin("import"))
    records.library_put({"old": {"v": 4}})
    found = records.library_origins(["k", "l", "old"])
    assert {key: origin["source"] for key, origin in found.items()} == {"k": "build", "l": "import"}
    assert all(origin["created_at"] for origin in found.values())


def test_a_library_row_that_was_deleted_by_hand_is_written_again(records: Records, records_url: str) -> None:
    records.library_put({"k": {"v": 1}}, _origin("build"))
    with by_hand(records_url) as connection:
        connection.exec_driver_sql("DELETE FROM variant_library")
    assert records.library_put({"k": {"v": 2}}, _origin("import")) == 1
    assert _rows(records, ["k"]) == {"k": {"v": 2}}
    assert records.library_origins(["k"])["k"]["source"] == "import"


def test_a_store_of_before_origins_were_kept_is_opened_and_read(records_url: str) -> None:
    with by_hand(records_url) as connection:
        connection.exec_driver_sql("CREATE TABLE variant_library (key VARCHAR(80) PRIMARY KEY, row TEXT NOT NULL)")
        connection.exec_driver_sql("INSERT INTO variant_library VALUES ('k', '{\"v\": 1}')")
    with closing(Records(records_url)) as records:
        assert _rows(records, ["k"]) == {"k": {"v": 1}}
        assert records.library_origins(["k"]) == {}
        assert records.library_put({"k": {"v": 2}, "l": {"v": 3}}, _origin("build")) == 1


def test_a_fidelity_is_written_once_and_found_by_strategy_and_benchmark(records: Records) -> None:
    assert records.fidelity_put("k", "wordings", "b", {"cost": 1})
    assert not records.fidelity_put("k", "wordings", "b", {"cost": 2})
    assert records.fidelity_put("j", "wordings", "b", {"cost": 3})
    assert records.fidelity_put("i", "wordings", "c", {"cost": 4})
    found = records.fidelity_rows("wordings", "b")
    assert [(key, json.loads(row)) for key, row in found.items()] == [("j", {"cost": 3}), ("k", {"cost": 1})]


def test_a_new_sqlite_file_that_another_process_writes_to_is_opened_once_that_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "records.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE being_made (n INTEGER)")
        waited_s: list[float] = []

        def ends_meanwhile(wait_s: float) -> None:
            waited_s.append(wait_s)
            other.execute("ROLLBACK")

        monkeypatch.setattr("time.sleep", ends_meanwhile)
        Records(f"sqlite:///{path}").close()
    assert len(waited_s) == 1
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_writers_at_the_same_time_leave_one_row_a_key(records_url: str) -> None:
    stores = [Records(records_url) for _ in range(4)]
    won: list[int] = []
    barrier = threading.Barrier(len(stores))

    def write(store: Records, value: int) -> None:
        barrier.wait()
        # In other orders: rows for which others wait that hold rows for which these wait would be a deadlock.
        keys = [f"k{i}" for i in range(50)]
        won.append(store.library_put({key: {"by": value} for key in (keys if value % 2 else keys[::-1])}))

    threads = [threading.Thread(target=write, args=(store, index)) for index, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(won) == 50
    for store in stores:
        store.close()


def test_an_unknown_audit_is_named(records: Records) -> None:
    with pytest.raises(StoreError, match="'nobody'"):
        records.audit("nobody")


def test_what_an_endpoint_said_of_its_failure_is_kept_whatever_it_was(records: Records) -> None:
    audit = records.create_audit("s", "{}", {}).audit_id
    records.advance(audit, AuditState.FAILED, expected=[AuditState.CREATED], detail="no\0 \ud800" + "x" * 100_000)
    kept = records.audit(audit).detail
    assert kept.startswith("no\N{REPLACEMENT CHARACTER} ?xxx")
    assert len(kept) == MAX_DETAIL_CHARACTERS


def test_audits_are_listed_by_the_beginning_of_their_ids_the_newest_first(records: Records) -> None:
    ids = [records.create_audit(subject, "{}", {}).audit_id for subject in ("a%", "ab", "b", "ab")]
    assert {audit.audit_id for audit in records.audits()} == set(ids)
    assert [audit.audit_id for audit in records.audits(prefix="ab")] == ["ab-2", "ab-1"]
    assert [audit.audit_id for audit in records.audits(prefix="a%")] == ["a%-1"]
    assert len(records.audits(limit=2)) == 2


def test_a_row_of_a_newer_version_is_named_and_the_others_are_read(records: Records, records_url: str) -> None:
    ids = [records.create_audit(subject, "{}", {}).audit_id for subject in ("a", "b", "c")]
    with by_hand(records_url) as connection:
        connection.exec_driver_sql("UPDATE audits SET state = 'deliberating' WHERE audit_id = 'b-1'")
    listed = records.audits()
    assert {audit.audit_id for audit in listed if isinstance(audit, AuditRecord)} == {"a-1", "c-1"}
    (unreadable,) = (audit for audit in listed if not isinstance(audit, AuditRecord))
    assert unreadable.why == "audit b-1 needs a newer Proctor: its state is deliberating, which this one does not know"
    assert [audit.audit_id for audit in records.running_audits()] == ["a-1", "c-1"]
    with pytest.raises(NewerVersionError, match="b-1 needs a newer Proctor"):
        records.audit(ids[1])


def test_two_that_put_the_same_subject_on_record_do_not_both_get_the_same_number(records_url: str) -> None:
    stores, made = [Records(records_url) for _ in range(4)], list[str]()
    barrier = threading.Barrier(len(stores))

    def create(store: Records) -> None:
        barrier.wait()
        for _ in range(5):
            try:
                made.append(store.create_audit("s", "{}", {}).audit_id)
            except IntegrityError:
                made.append("another was faster")

    threads = [threading.Thread(target=create, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbered = [audit for audit in made if audit.startswith("s-")]
    assert len(set(numbered)) == len(numbered) == len(stores[0].audits())
    for store in stores:
        store.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", "PROCTOR_RECORDS_URL is no database URL"),
        ("oracle://u:geheim@h/d", "needs"),
        ("cobol://u:geheim@h/d", "use sqlite or postgresql"),
    ],
)
def test_a_url_that_names_no_store_is_one_clear_error_without_its_password(url: str, words: str) -> None:
    with pytest.raises(BadInputError, match=words) as refused:
        Records(url)
    assert "geheim" not in str(refused.value)


def test_a_server_that_is_away_is_one_clear_error_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.runtime.records.engine.AWAY_WAITS_S", (0.0,))
    with pytest.raises(StoreError, match="does not answer") as refused:
        Records(f"postgresql://proctor:geheim@127.0.0.1:{free_port()}/records")
    assert "geheim" not in str(refused.value)


def test_a_store_that_cannot_be_opened_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "records.sqlite").write_bytes(b"this is not a database, whatever its name says" * 30)
    with pytest.raises(StoreError, match="cannot be opened"):
        Records(f"sqlite:///{tmp_path / 'records.sqlite'}")
