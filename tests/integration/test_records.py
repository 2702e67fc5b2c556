"""The record store writes decisions and library rows once, whoever writes at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from proctor.domain.errors import StoreError
from proctor.runtime.records import AuditState, Records


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    store = Records(f"sqlite:///{tmp_path / 'records.sqlite'}")
    yield store
    store.close()


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
    assert records.library_get(["k", "m", "nothing"]) == {"k": {"v": 1}, "m": {"v": 3}}


def test_a_library_read_of_many_keys_finds_them_all(records: Records) -> None:
    rows = {f"key-{i}": {"i": i} for i in range(2500)}
    records.library_put(rows)
    assert records.library_get(list(rows)) == rows


def test_writers_at_the_same_time_leave_one_row_a_key(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shared.sqlite'}"
    stores = [Records(url) for _ in range(4)]
    won: list[int] = []
    barrier = threading.Barrier(len(stores))

    def write(store: Records, value: int) -> None:
        barrier.wait()
        won.append(store.library_put({f"k{i}": {"by": value} for i in range(50)}))

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


def test_a_store_that_cannot_be_opened_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "records.sqlite").write_bytes(b"this is not a database, whatever its name says" * 30)
    with pytest.raises(StoreError, match="cannot be opened"):
        Records(f"sqlite:///{tmp_path / 'records.sqlite'}")
