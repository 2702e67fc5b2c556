"""What holds for each audit: it follows the log, whoever changes it at once, and every edit of it is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from proctor.domain.canonical import canonical_json
from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import BadInputError, StoreError
from proctor.domain.record.entry import text_digest
from proctor.domain.record.finding import Code
from proctor.domain.record.sign_off import ApprovalTerms, SignedBy, Verb
from proctor.domain.standing import Standing, StandingKind
from proctor.runtime.records import standings
from proctor.runtime.records.audit_list import Wanted
from proctor.runtime.records.standings import NewSignOff, SignedMeanwhileError, Standings, place_of
from proctor.runtime.records.store import Records
from proctor.runtime.records.tables import DECISION_LOG, DECISION_LOG_HEAD
from proctor.studies.record.checks import Checked, check_store, trust_in
from tests.record_samples import a_key, an_event, by_hand, decide
from tests.together import said_together

APPROVE, REVIEW, BLOCK = DecisionOutcome.APPROVE, DecisionOutcome.REVIEW, DecisionOutcome.BLOCK


def check(records_url: str, home: Path) -> Checked:
    with closing(Records(records_url)) as records:
        return check_store(records, None, home, trust_in([a_key().signer]))


def codes(checked: Checked) -> set[Code]:
    return {finding.code for finding in checked.findings}


def a_sign_off(verb: Verb, outcome: DecisionOutcome, by: str = "ada", days: int | None = None) -> NewSignOff:
    return NewSignOff(verb, outcome, SignedBy(name=by, via="terminal"), "I looked at every item.", "QA-7", days)


def decided(records: Records, audit_id: str, outcome: DecisionOutcome) -> None:
    assert records.decide(audit_id, an_event(audit_id, outcome=outcome.value), key=a_key())


@contextmanager
def at(records_url: str, ahead: timedelta) -> Iterator[Standings]:
    """The standings as somebody sees them whose clock is so far ahead."""
    with closing(Records(records_url)) as records:
        yield Standings(records._engine, lambda: datetime.now(UTC) + ahead)


def stands(records_url: str, audit_id: str) -> Standing:
    with closing(Records(records_url)) as records:
        found = records.standings.standing_of(audit_id)
        assert found is not None
        return found


def test_what_is_decided_stands_until_a_person_signs_off_and_the_decision_stays(
    records_url: str, tmp_path: Path
) -> None:
    with closing(Records(records_url)) as records:
        decided(records, "a-1", REVIEW)
        before = records.standings.standing_of("a-1")
        assert before is not None
        assert (before.outcome, before.kind, before.by, before.model_id) == (
            REVIEW, StandingKind.DECISION, None, "org/modèle",
        )  # fmt: skip
        after = records.standings.sign("a-1", a_sign_off(Verb.APPROVE, APPROVE), key=a_key())
        assert records.standings.standing_of("a-1") == after
        assert (after.outcome, after.decided, after.kind) == (APPROVE, REVIEW, StandingKind.SIGN_OFF)
        assert after.by == SignedBy(name="ada", via="terminal")
        assert (after.reason, after.reference, after.sequence) == ("I looked at every item.", "QA-7", 2)
        decision, sign_off = records.logged("a-1")
        assert records.decision("a-1") == an_event("a-1", outcome="review")
    entry = json.loads(sign_off.text)
    assert (entry["kind"], entry["content"]["of"]) == ("override", decision.digest)
    checked = check(records_url, tmp_path)
    assert (checked.findings, checked.entries, checked.signed) == ((), 2, 2)


@pytest.mark.parametrize(
    ("stands_at", "verb", "outcome", "words"),
    [
        (BLOCK, Verb.APPROVE, APPROVE, "a block is not approved but overridden"),
        (APPROVE, Verb.APPROVE, APPROVE, "its outcome is approve already"),
        (BLOCK, Verb.REJECT, BLOCK, "its outcome is block already"),
        (REVIEW, Verb.OVERRIDE, REVIEW, "its outcome is review already"),
        (REVIEW, Verb.APPROVE, BLOCK, "use override"),
        (REVIEW, Verb.REJECT, APPROVE, "use override"),
    ],
)
def test_a_verb_that_is_not_for_what_stands_is_refused(
    records_url: str, stands_at: DecisionOutcome, verb: Verb, outcome: DecisionOutcome, words: str
) -> None:
    with closing(Records(records_url)) as records:
        decided(records, "a-1", stands_at)
        with pytest.raises(BadInputError, match=words):
            records.standings.sign("a-1", a_sign_off(verb, outcome), key=a_key())
        assert len(records.logged("a-1")) == 1


@pytest.mark.parametrize(
    ("stands_at", "verb", "outcome"),
    [
        (REVIEW, Verb.REJECT, BLOCK),
        (APPROVE, Verb.REJECT, BLOCK),
        (BLOCK, Verb.OVERRIDE, APPROVE),
        (BLOCK, Verb.OVERRIDE, REVIEW),
        (APPROVE, Verb.OVERRIDE, REVIEW),
    ],
)
def test_every_other_verb_makes_its_outcome_hold(
    records_url: str, tmp_path: Path, stands_at: DecisionOutcome, verb: Verb, outcome: DecisionOutcome
) -> None:
    with closing(Records(records_url)) as records:
        decided(records, "a-1", stands_at)
        assert records.standings.sign("a-1", a_sign_off(verb, outcome), key=a_key()).outcome is outcome
    assert check(records_url, tmp_path).findings == ()


def test_what_has_no_decision_is_not_signed_off(records_url: str) -> None:
    with closing(Records(records_url)) as records:
        audit_id = records.create_audit("a", "{}", {}).audit_id
        with pytest.raises(BadInputError, match="has no decision yet"):
            records.standings.sign(audit_id, a_sign_off(Verb.APPROVE, APPROVE), key=a_key())
        # One that nobody can read has no outcome.
        assert records.decide("odd-1", {"outcome": "maybe"}, key=a_key())
        assert records.standings.standing_of("odd-1") is None
        with pytest.raises(BadInputError, match="cannot be read"):
            records.standings.sign("odd-1", a_sign_off(Verb.OVERRIDE, APPROVE), key=a_key())


_SIGN = """
import sys
from proctor.domain.decision import DecisionOutcome
from proctor.domain.record.sign_off import SignedBy, Verb
from proctor.runtime.records import standings
from proctor.runtime.records.audit_list import Wanted
from proctor.runtime.records.standings import NewSignOff, SignedMeanwhileError
from proctor.runtime.records.store import Records
from tests.record_samples import a_key
records = Records(sys.argv[1])
seen = records.standings.standing_of("a-1").sequence
print("ready", flush=True)
sys.stdin.readline()
by = SignedBy(name=sys.argv[2], via="terminal")
try:
    wanted = NewSignOff(Verb.APPROVE, DecisionOutcome.APPROVE, by, "seen", "QA-1")
    records.standings.sign("a-1", wanted, key=a_key(), seen=seen)
    print("signed")
except SignedMeanwhileError as error:
    print(error)
"""


def test_of_reviewers_who_sign_at_once_one_does_and_the_others_are_told_what_was_done(
    records_url: str, tmp_path: Path
) -> None:
    with closing(Records(records_url)) as records:
        decided(records, "a-1", REVIEW)
    said = said_together(_SIGN, [(records_url, name) for name in ("ada", "grace", "mary")])
    assert [errors for _, errors in said] == [""] * 3
    first = stands(records_url, "a-1").by
    assert first is not None
    others = [out for out, _ in said if out != "signed\n"]
    assert len(others) == 2
    assert all(f"signed off by {first.name}" in out for out in others)
    assert (check(records_url, tmp_path).findings, check(records_url, tmp_path).entries) == ((), 2)


def test_the_queue_has_reviews_and_blocks_that_nobody_signed_off_newest_first_in_pages(
    records_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = [REVIEW, BLOCK, APPROVE, REVIEW, BLOCK, REVIEW, BLOCK]
    with closing(Records(records_url)) as records:
        for number, outcome in enumerate(outcomes):
            decided(records, f"a{number}-1", outcome)
        records.standings.sign("a0-1", a_sign_off(Verb.APPROVE, APPROVE), key=a_key())
        records.standings.sign("a3-1", a_sign_off(Verb.REJECT, BLOCK), key=a_key())
        records.standings.sign("a2-1", a_sign_off(Verb.OVERRIDE, REVIEW), key=a_key())
        whole = records.standings.waiting()
        assert {one.audit_id for one in whole} == {"a1-1", "a2-1", "a4-1", "a5-1", "a6-1"}
        assert [place_of(one) for one in whole] == sorted(map(place_of, whole), reverse=True)
        assert records.standings.n_waiting() == 5
        monkeypatch.setattr(standings, "MAX_COUNTED", 3)
        assert records.standings.n_waiting() == 3
        pages, before = list[Standing](), None
        while page := records.standings.waiting(limit=2, before=before):
            pages += page
            before = place_of(page[-1])
        assert pages == whole
        assert len(records.standings.standings()) == 7
        assert records.standings.standings(model_id="another") == []


# An approval ends.


def with_terms(records_url: str, **terms: object) -> None:
    with closing(Records(records_url)) as records:
        event = an_event("a-1", outcome="approve")
        assert records.decide("a-1", event, key=a_key(), approval=ApprovalTerms.model_validate(terms))


def test_an_approval_past_its_time_is_a_review_at_once_and_in_the_log_once(records_url: str, tmp_path: Path) -> None:
    with_terms(records_url, expires_after_days=30)
    assert stands(records_url, "a-1").outcome is APPROVE
    with at(records_url, timedelta(days=29)) as before:
        assert (before.waiting(), before.n_waiting(), before.expire(key=a_key())) == ([], 0, [])
    with at(records_url, timedelta(days=31)) as later:
        seen = later.standing_of("a-1")
        assert seen is not None
        assert (seen.outcome, seen.decided, seen.kind) == (REVIEW, APPROVE, StandingKind.EXPIRY)
        assert (later.waiting(), later.n_waiting()) == ([seen], 1)
        assert later.standings() == [seen]
        assert later.expire(key=a_key()) == ["a-1"]
        assert later.expire(key=a_key()) == []
        written = later.standing_of("a-1")
        assert written == seen.model_copy(update={"sequence": 2})
        assert later.waiting() == [written]
        # A person may approve it again, under the same terms.
        again = later.sign("a-1", a_sign_off(Verb.APPROVE, APPROVE), key=a_key())
        assert again.expires_at is not None
        assert datetime.fromisoformat(again.expires_at) - datetime.fromisoformat(again.at) == timedelta(days=30)
    checked = check(records_url, tmp_path)
    assert (checked.findings, checked.entries) == ((), 3)


def test_who_signs_off_what_has_ended_writes_its_end_first(records_url: str, tmp_path: Path) -> None:
    with_terms(records_url, expires_after_days=30)
    with at(records_url, timedelta(days=31)) as later:
        assert later.sign("a-1", a_sign_off(Verb.APPROVE, APPROVE), key=a_key()).sequence == 3
    checked = check(records_url, tmp_path)
    assert (checked.findings, checked.entries) == ((), 3)


def test_the_block_that_was_overridden_for_a_time_is_what_is_left_of_it(records_url: str, tmp_path: Path) -> None:
    with closing(Records(records_url)) as records:
        decided(records, "a-1", BLOCK)
        records.standings.sign("a-1", a_sign_off(Verb.OVERRIDE, APPROVE, days=3), key=a_key())
    with at(records_url, timedelta(days=4)) as later:
        seen = later.standing_of("a-1")
        assert seen is not None
        assert (seen.outcome, seen.kind, [one.audit_id for one in later.waiting()]) == (BLOCK, "expiry", ["a-1"])
        assert later.expire(key=a_key()) == ["a-1"]
    assert check(records_url, tmp_path).findings == ()


def test_nobody_lets_an_approval_last_longer_than_the_suite_does(records_url: str) -> None:
    with_terms(records_url, expires_after_days=30)
    with closing(Records(records_url)) as records:
        records.standings.sign("a-1", a_sign_off(Verb.OVERRIDE, REVIEW), key=a_key())
        with pytest.raises(BadInputError, match="ends after 30 days"):
            records.standings.sign("a-1", a_sign_off(Verb.APPROVE, APPROVE, days=31), key=a_key())
        with pytest.raises(BadInputError, match="only an approval ends"):
            records.standings.sign("a-1", a_sign_off(Verb.REJECT, BLOCK, days=3), key=a_key())
        shorter = records.standings.sign("a-1", a_sign_off(Verb.APPROVE, APPROVE, days=2), key=a_key())
        assert shorter.expires_at is not None


OTHER = "sha256:" + "e" * 64


@pytest.mark.parametrize(
    ("event", "ends"),
    [
        ({"protocolDigest": OTHER}, True),
        ({}, False),
        ({"protocolDigest": OTHER, "auditSuiteId": "another"}, False),
        ({"protocolDigest": OTHER, "modelId": "another"}, False),
        ({"protocolDigest": OTHER, "modelDigest": OTHER, "outcome": "block"}, True),
    ],
    ids=["changed suite", "same suite", "another suite", "another model", "another version"],
)
def test_an_approval_ends_when_the_suite_has_changed_and_decided_on_the_model_anew(
    records_url: str, tmp_path: Path, event: dict[str, str], ends: bool
) -> None:
    with_terms(records_url, ends_when_superseded=True)
    with closing(Records(records_url)) as records:
        records.decide("b-1", {**an_event("b-1"), **event}, key=a_key())
        seen = records.standings.standing_of("a-1")
        assert seen is not None
        assert (seen.outcome, seen.kind) == ((REVIEW, "expiry") if ends else (APPROVE, "decision"))
        assert ("audit b-1" in seen.reason) == ends
        assert [one.audit_id for one in records.standings.untold()] == (["a-1"] if ends else [])
        records.standings.note_told("a-1", seen.sequence)
        assert records.standings.untold() == []
    checked = check(records_url, tmp_path)
    assert (checked.findings, checked.entries) == ((), 3 if ends else 2)


def test_a_decision_that_is_taken_in_late_supersedes_nothing_that_was_decided_after_it(records_url: str) -> None:
    with_terms(records_url, ends_when_superseded=True)
    with by_hand(records_url) as connection:
        insert = sa.text("INSERT INTO decisions VALUES ('late-1', :event, '2026-01-01T05:00:00+00:00')")
        connection.execute(insert, {"event": json.dumps(an_event("late-1", protocolDigest=OTHER))})
    with closing(Records(records_url)) as records:
        assert records.take_in(a_key()) == ["late-1"]
    assert [stands(records_url, audit).outcome for audit in ("a-1", "late-1")] == [APPROVE, APPROVE]


def test_an_approval_without_such_terms_does_not_end(records_url: str) -> None:
    decide(records_url, 1)
    with closing(Records(records_url)) as records:
        (logged,) = records.logged("subject0-1")
        assert "approval" not in json.loads(logged.text)["content"]
        records.decide("b-1", an_event("b-1", protocolDigest=OTHER), key=a_key())
    with at(records_url, timedelta(days=40_000)) as later:
        assert later.expire(key=a_key()) == []
        assert later.waiting() == []


# What whoever can write to the database may do.


def _edit_override(connection: sa.Connection) -> None:
    row = connection.execute(sa.select(DECISION_LOG).where(DECISION_LOG.c.sequence == 4)).one()
    entry = json.loads(row.entry)
    entry["content"]["by"]["name"] = "somebody else"
    text = canonical_json(entry).decode()
    values = {"entry": text, "digest": text_digest(text)}
    connection.execute(DECISION_LOG.update().where(DECISION_LOG.c.sequence == 4).values(**values))
    connection.execute(DECISION_LOG_HEAD.update().values(digest=values["digest"]))
    connection.exec_driver_sql("UPDATE standings SET by_name = 'somebody else' WHERE audit_id = 'subject0-1'")


def _sql(*statements: str) -> Callable[[sa.Connection], None]:
    def change(connection: sa.Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_edit_override, {Code.SIGNATURE_WRONG}),
        (_sql("DELETE FROM decision_log WHERE sequence = 4"), {Code.HEAD_DIFFERS, Code.STANDING_DIFFERS}),
        (_sql("DELETE FROM standings WHERE audit_id = 'subject0-1'"), {Code.STANDING_DIFFERS}),
        (_sql("UPDATE standings SET outcome = 'approve' WHERE audit_id = 'subject1-1'"), {Code.STANDING_DIFFERS}),
        (_sql("UPDATE standings SET expires_at = '2999' WHERE audit_id = 'subject1-1'"), {Code.STANDING_DIFFERS}),
        (_sql("UPDATE standings SET waits = false"), {Code.STANDING_DIFFERS}),
        (_sql("UPDATE standings SET reason = 'looked at'"), {Code.STANDING_DIFFERS}),
        (
            _sql(
                "INSERT INTO standings SELECT 'evil-1', outcome, decided, kind, by_name, by_via, reason, reference, "
                "at, expires_at, sequence, audit_suite_id, model_id, model_digest, protocol_digest, "
                "ends_when_superseded, waits, told FROM standings WHERE audit_id = 'subject0-1'"
            ),
            {Code.STANDING_DIFFERS},
        ),
    ],
    ids=[
        "edited sign-off", "deleted at the end", "deleted standing", "edited outcome", "edited end", "emptied queue",
        "edited reason", "added standing",
    ],
)  # fmt: skip
def test_an_edit_is_found(
    records_url: str, tmp_path: Path, change: Callable[[sa.Connection], None], expected: set[Code]
) -> None:
    with closing(Records(records_url)) as records:
        for number in range(3):
            decided(records, f"subject{number}-1", REVIEW)
        records.standings.sign("subject0-1", a_sign_off(Verb.APPROVE, APPROVE), key=a_key())
    assert check(records_url, tmp_path).findings == ()
    with by_hand(records_url) as connection:
        change(connection)
    assert codes(check(records_url, tmp_path)) == expected


def test_a_standing_that_nobody_can_read_holds_for_nothing(records_url: str, tmp_path: Path) -> None:
    decide(records_url, 1)
    with by_hand(records_url) as connection:
        connection.exec_driver_sql("UPDATE standings SET outcome = 'perfect'")
    with closing(Records(records_url)) as records, pytest.raises(StoreError, match="cannot be read"):
        records.standings.standing_of("subject0-1")
    assert codes(check(records_url, tmp_path)) == {Code.STANDING_DIFFERS}


def test_a_sign_off_that_was_seen_otherwise_is_refused(records_url: str) -> None:
    with closing(Records(records_url)) as records:
        decided(records, "a-1", REVIEW)
        with pytest.raises(SignedMeanwhileError, match="review since"):
            records.standings.sign("a-1", a_sign_off(Verb.APPROVE, APPROVE), key=a_key(), seen=7)


def test_the_list_of_audits_has_what_stands_and_no_approval_that_has_ended(records_url: str) -> None:
    with closing(Records(records_url)) as records:
        for subject, terms in (("a", {}), ("b", {"expires_after_days": 1})):
            audit = records.create_audit(subject, "{}", {}).audit_id
            assert records.decide(audit, an_event(audit), key=a_key(), approval=ApprovalTerms.model_validate(terms))
        records.standings.sign("a-1", a_sign_off(Verb.REJECT, BLOCK), key=a_key())
        with by_hand(records_url) as connection:
            connection.exec_driver_sql("UPDATE standings SET expires_at = '2020' WHERE audit_id = 'b-1'")
        listed = {one.audit_id: one.outcome for one in records.list.page(Wanted(), limit=9)}
        assert listed == {"a-1": "block", "b-1": "review"}
        assert [one.audit_id for one in records.list.page(Wanted(outcome="block"), limit=9)] == ["a-1"]
