"""A version is admitted by what the record says of it, and by nothing that the signed log does not bear out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from proctor.domain.admission.reference import references_of
from proctor.domain.admission.verdict import Ground, Verdict
from proctor.domain.decision import DecisionOutcome
from proctor.domain.record.sign_off import SignedBy, Verb
from proctor.runtime.files import write_atomic
from proctor.runtime.records.standings import NewSignOff, Standings
from proctor.runtime.settings import Settings
from proctor.runtime.signing import open_signing_key, public_pem
from proctor.runtime.verdicts import Verdicts
from tests.record_samples import by_hand
from tests.standing_audits import DecidedAudits, decided_audits, sha

APPROVE, REVIEW, BLOCK = DecisionOutcome.APPROVE, DecisionOutcome.REVIEW, DecisionOutcome.BLOCK


@pytest.fixture
def audits(tmp_path: Path) -> Iterator[DecidedAudits]:
    with decided_audits(tmp_path / "home") as found:
        yield found


def _said(audits: DecidedAudits, text: str, settings: Settings | None = None) -> Verdict:
    (reference,) = references_of(text)
    return Verdicts(settings or audits.settings, audits.records.deployable).on(reference)


def _registered(audits: DecidedAudits, model: str, outcome: DecisionOutcome, version: str = "3", **more: str) -> str:
    audit_id = audits.decide(model, outcome, **more).audit_id  # type: ignore[arg-type]
    audits.records.register(audit_id, version)
    return audit_id


def test_a_version_is_known_by_the_registry_s_word_and_by_its_weights(audits: DecidedAudits) -> None:
    audit_id = _registered(audits, "org/m", APPROVE)
    for text in ("org/m@3", "org~m@3", f"org/m@{sha('1')}"):
        found = _said(audits, text)
        assert (found.ground, found.audit_id, found.reference) == (Ground.APPROVED, audit_id, text)
    for text in ("org/m@4", "org/n@3", f"org/m@{sha('2')}", f"org/m@{sha('1')[:19]}", "3@org/m"):
        assert _said(audits, text).ground is Ground.NEVER_AUDITED


def test_a_suite_that_was_asked_for_and_has_not_decided_keeps_a_version_out_under_each_of_its_names(
    audits: DecidedAudits,
) -> None:
    _registered(audits, "org/m", APPROVE)
    audits.ask("org~m", "3", "another")
    assert [_said(audits, text).ground for text in ("org/m@3", f"org/m@{sha('1')}")] == [Ground.PENDING] * 2


def test_a_decision_that_is_not_written_to_the_registry_yet_counts_where_a_trigger_asked_for_it(
    audits: DecidedAudits,
) -> None:
    key = audits.ask("org~m", "3", "facts")
    assert _said(audits, "org/m@3").ground is Ground.PENDING
    audit_id = audits.decide("org/m", BLOCK, request=key).audit_id
    found = _said(audits, "org/m@3")
    assert (found.ground, found.audit_id) == (Ground.BLOCKED, audit_id)


def test_several_weights_under_one_version_are_no_version(audits: DecidedAudits) -> None:
    _registered(audits, "m", APPROVE)
    _registered(audits, "m", APPROVE, weights="2")
    assert _said(audits, "m@3").ground is Ground.AMBIGUOUS


def test_sign_offs_count_both_ways_and_end_by_their_time(audits: DecidedAudits) -> None:
    audit_id = _registered(audits, "m", REVIEW)
    anna = SignedBy(name="anna", via="token")
    approve = NewSignOff(Verb.APPROVE, APPROVE, anna, "It is so.", "QA-1", 1)
    yesterday = Standings(audits.records._engine, lambda: datetime.now(UTC) - timedelta(hours=23))
    yesterday.sign(audit_id, approve, key=audits.key)
    found = _said(audits, "m@3")
    assert (found.ground, found.sequence) == (Ground.APPROVED, 2)
    assert found.until is not None
    audits.records.standings.sign(audit_id, NewSignOff(Verb.REJECT, BLOCK, anna, "No.", "QA-2"), key=audits.key)
    found = _said(audits, "m@3")
    assert found.ground is Ground.BLOCKED
    assert found.reason == "anna signed block after review: No. (QA-2)"


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ("UPDATE standings SET outcome = 'approve'", "by the log it stands at block since entry 2"),
        (
            "UPDATE decisions SET event = replace(event, 'facts', 'fakes')",
            "its decision is not the one of entry 2",
        ),
        (
            "UPDATE decision_log SET entry = replace(entry, 'block', 'approve') WHERE sequence = 2",
            "entry 2 is not the text that its digest was taken of",
        ),
        ("UPDATE decision_log SET signature = NULL WHERE sequence = 2", "entry 2 is not signed"),
        (
            "UPDATE decision_log SET signature = (SELECT signature FROM decision_log WHERE sequence = 1) "
            "WHERE sequence = 2",
            "entry 2 has a signature that is not its key's",
        ),
        ("DELETE FROM decision_log WHERE sequence = 2", "its decision is not in the log"),
        ("DELETE FROM decision_log WHERE sequence = 1", "entry 2 does not follow on the entry before it"),
        ("DELETE FROM decision_log WHERE sequence = 3", "entry 2 is not the one that the entry after it names"),
        ("DELETE FROM decisions WHERE audit_id = '{audit}'", "its decision is gone"),
    ],
)
def test_a_row_that_somebody_made_an_approval_of_admits_nobody(audits: DecidedAudits, edit: str, told: str) -> None:
    audits.decide("before", APPROVE, weights="8")
    audit_id = _registered(audits, "m", BLOCK)
    audits.decide("after", APPROVE, weights="9")
    assert _said(audits, "m@3").ground is Ground.BLOCKED
    with by_hand(audits.settings.records_url) as connection:
        connection.execute(sa.text("UPDATE standings SET outcome = 'approve' WHERE audit_id = :a"), {"a": audit_id})
        connection.exec_driver_sql(edit.replace("{audit}", audit_id))
    found = _said(audits, "m@3")
    assert found.ground is Ground.NOT_ATTESTED
    assert told in found.reason


def test_the_end_of_the_log_is_the_one_that_the_store_says(audits: DecidedAudits) -> None:
    _registered(audits, "m", APPROVE)
    audits.decide("after", APPROVE, weights="9")
    with by_hand(audits.settings.records_url) as connection:
        connection.exec_driver_sql("DELETE FROM decision_log WHERE sequence = 2")
    assert "is not the one that the entry after it names" in _said(audits, "m@3").reason
    with by_hand(audits.settings.records_url) as connection:
        connection.exec_driver_sql("UPDATE decision_log_head SET sequence = 1")
    assert "is not the end that the log is said to have" in _said(audits, "m@3").reason


def test_whose_signatures_count_is_the_operator_s_to_say(audits: DecidedAudits, tmp_path: Path) -> None:
    _registered(audits, "m", APPROVE)
    elsewhere = Settings(home=tmp_path / "elsewhere", records_url=audits.settings.records_url)
    assert "which is not trusted here" in _said(audits, "m@3", elsewhere).reason
    keys = tmp_path / "keys"
    write_atomic(keys / "other.pem", public_pem(open_signing_key(tmp_path / "other", None).signer.public_key))
    trusting = elsewhere.model_copy(update={"trusted_keys": keys})
    assert _said(audits, "m@3", trusting).ground is Ground.NOT_ATTESTED
    write_atomic(keys / "scorers.pem", public_pem(audits.key.signer.public_key))
    assert _said(audits, "m@3", trusting).ground is Ground.APPROVED


def test_all_versions_of_the_record_are_listed_under_the_names_that_it_has_for_them(audits: DecidedAudits) -> None:
    _registered(audits, "org/m", APPROVE)
    audits.ask("asked", "7", "facts")
    named = {one.text for one in audits.records.deployable.named(10)}
    assert named == {"org~m@3", f"org~m@{sha('1')}", "asked@7"}


def test_whatever_changes_of_a_version_changes_the_moment(audits: DecidedAudits) -> None:
    seen = [audits.records.deployable.moment()]
    key = audits.ask("org~m", "3", "facts")
    seen.append(audits.records.deployable.moment())
    audit_id = audits.decide("org/m", REVIEW, request=key).audit_id
    seen.append(audits.records.deployable.moment())
    audits.records.register(audit_id, "3")
    seen.append(audits.records.deployable.moment())
    sign_off = NewSignOff(Verb.REJECT, BLOCK, SignedBy(name="anna", via="token"), "No.", "QA-2")
    audits.records.standings.sign(audit_id, sign_off, key=audits.key)
    seen.append(audits.records.deployable.moment())
    assert len(set(seen)) == len(seen)
