"""What is on record of a version of a model, and the lock under which it is written, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import StoreError
from proctor.domain.record.sign_off import SignedBy, Verb
from proctor.domain.registered_version import RegistryKind
from proctor.domain.version_decision import version_decision
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.audited_versions import OnRecord, VersionName
from proctor.runtime.records.exclusive import exclusive
from proctor.runtime.records.requests import RequestState
from proctor.runtime.records.standings import NewSignOff
from proctor.runtime.records.store import Records
from tests.standing_audits import DecidedAudits, sha

APPROVE, REVIEW, BLOCK = DecisionOutcome.APPROVE, DecisionOutcome.REVIEW, DecisionOutcome.BLOCK
VERSION = VersionName(RegistryKind.MLFLOW, "org~m", "3")


@pytest.fixture
def audits(records_url: str, tmp_path: Path) -> Iterator[DecidedAudits]:
    with closing(Records(records_url)) as records:
        yield DecidedAudits(tmp_path, records)


def found(audits: DecidedAudits) -> OnRecord:
    return audits.records.versions.on_record(VERSION, "org/m", sha("1"))


def test_audits_are_in_the_order_in_which_they_were_decided_whoever_was_signed_last(audits: DecidedAudits) -> None:
    events = [audits.decide("org/m", one, subject=subject) for one, subject in ((BLOCK, "z"), (REVIEW, "a"))]
    audits.decide("org/m", APPROVE, weights="2")
    audits.decide("org/other", APPROVE)
    wanted = NewSignOff(Verb.OVERRIDE, APPROVE, SignedBy(name="Ada", via="terminal"), "Known.", "T-1")
    audits.records.standings.sign(events[0].audit_id, wanted, key=audits.key)
    on_record = found(audits)
    assert [one.audit_id for one in on_record.standings] == [one.audit_id for one in events]
    assert on_record.events == {one.audit_id: one for one in events}
    decision = version_decision(on_record.asked, on_record.standings, datetime.now(UTC))
    assert decision is not None
    assert decision.outcome is REVIEW


def test_what_was_asked_for_says_what_it_waits_for(audits: DecidedAudits) -> None:
    requests = audits.records.requests
    waits, refused, skipped, failed = (audits.ask("org~m", "3", suite) for suite in ("a", "b", "c", "d"))
    audits.ask("org~m", "4", "elsewhere")
    requests.settle(refused, RequestState.REFUSED, "it has no digest")
    requests.settle(skipped, RequestState.SKIPPED)
    begun = audits.records.create_audit("d", "{}", {}, request=failed).audit_id
    audits.records.advance(begun, AuditState.FAILED, expected=[AuditState.CREATED], detail="the endpoint is away")
    said = {one.audit_suite_id: one.waiting for one in found(audits).asked}
    assert waits
    assert said == {
        "a": "its audit is asked for and not begun",
        "b": "its audit cannot be begun: it has no digest",
        "d": f"audit {begun} failed: the endpoint is away",
    }


def test_an_audit_names_the_version_that_was_asked_about_and_where_it_was_written(audits: DecidedAudits) -> None:
    event = audits.decide("org/m", APPROVE, request=audits.ask("org~m", "3", "facts"))
    versions = audits.records.versions
    assert versions.asked_version(event.audit_id, RegistryKind.MLFLOW) == "3"
    assert versions.asked_version(event.audit_id, RegistryKind.HUGGINGFACE) is None
    audits.records.register(event.audit_id, "3")
    assert found(audits).registrations == {"3"}


def test_the_last_attempt_to_write_is_kept(audits: DecidedAudits) -> None:
    versions = audits.records.versions
    assert versions.last_write("a-1") is None
    versions.note_write("a-1", "block", None, "away\0\ud800")
    versions.note_write("a-1", "block", "3")
    last = versions.last_write("a-1")
    assert last is not None
    assert (last.registry_version, last.outcome, last.error) == ("3", "block", "")


def test_one_holds_a_name_at_a_time_and_another_name_is_not_waited_for(records_url: str) -> None:
    with exclusive(records_url, "registry c"):
        with exclusive(records_url, "registry d", patience_s=0.05), exclusive(records_url, patience_s=0.05):
            pass
        with pytest.raises(StoreError), exclusive(records_url, "registry c", patience_s=0.05):
            pass
    with exclusive(records_url, "registry c", patience_s=0.05):
        pass
