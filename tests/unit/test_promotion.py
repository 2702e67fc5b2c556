"""The promotion guard's judgement: what the registry says against what is on record."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from proctor.domain.canonical import bytes_digest
from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.domain.scope import Scope
from proctor.domain.standing import Standing
from proctor.domain.version_decision import version_decision
from proctor.registry.promotion import HeldVersion, OnRecord, check

DOCUMENT = b'{"schema_version": "report"}'
EVENT = DecisionEvent(
    audit_id="a-1",
    audit_suite_id="suite",
    model_id="org/model",
    model_digest="sha256:" + "1" * 64,
    outcome=DecisionOutcome.APPROVE,
    reasons=(Reason(code="within_limits", text="All is within its limits."),),
    fingerprint="sha256:" + "2" * 64,
    protocol_digest="sha256:" + "3" * 64,
    report_digest=bytes_digest(DOCUMENT),
    report_path="reports/a-1/report.html",
    n_items=600,
    scope=Scope.WORDING,
)
HELD = HeldVersion(
    name="org~model",
    version="3",
    model_digest=EVENT.model_digest,
    audit_id="a-1",
    outcome="approve",
    report_digest=EVENT.report_digest,
    fingerprint=EVENT.fingerprint,
)


def standing(event: DecisionEvent, **changes: object) -> Standing:
    values = {
        "audit_id": event.audit_id, "outcome": event.outcome, "decided": event.outcome, "kind": "decision",
        "at": "2026-11-01T00:00:00+00:00", "sequence": 1, "audit_suite_id": event.audit_suite_id,
        "protocol_digest": event.protocol_digest,
    }  # fmt: skip
    return Standing.model_validate(values | changes)


def recorded(event: DecisionEvent, *others: Standing, **changes: object) -> OnRecord:
    stands = version_decision([], [standing(event, **changes), *others], datetime(2026, 11, 23, tzinfo=UTC))
    return OnRecord(event, stands, {event.audit_id: event}, frozenset({"3"}), DOCUMENT)


NOTHING = OnRecord(None, None, {}, frozenset(), None)
RECORD = recorded(EVENT)


@pytest.mark.parametrize("outcome", list(DecisionOutcome))
def test_what_the_record_bears_out_is_the_decision_on_record(outcome: DecisionOutcome) -> None:
    event = EVENT.model_copy(update={"outcome": outcome})
    found = check(HELD._replace(outcome=outcome.value), recorded(event))
    assert (found.outcome, found.approved) == (outcome, outcome is DecisionOutcome.APPROVE)
    assert found.reasons == EVENT.reasons


def test_an_approval_by_wordings_says_so() -> None:
    assert check(HELD, RECORD).caveat is not None
    wider = EVENT.model_copy(update={"scope": Scope.WORDING_EXPOSURE})
    assert check(HELD, recorded(wider)).caveat is None


@pytest.mark.parametrize(
    ("held", "record", "code"),
    [
        (HELD._replace(outcome="review"), RECORD, "outcome_differs"),
        (HELD._replace(outcome=None), RECORD, "outcome_differs"),
        (HELD._replace(model_digest="sha256:" + "9" * 64), RECORD, "model_differs"),
        (HELD._replace(report_digest=None), RECORD, "report_differs"),
        (HELD._replace(fingerprint="sha256:" + "9" * 64), RECORD, "fingerprint_differs"),
        (HELD._replace(version="4"), RECORD, "version_differs"),
        (HELD, RECORD._replace(registered=frozenset()), "version_differs"),
        (HELD, RECORD._replace(document=None), "report_missing"),
        (HELD, RECORD._replace(document=DOCUMENT + b" "), "report_changed"),
        (HELD, NOTHING, "not_on_record"),
        (HELD._replace(audit_id=None), NOTHING, "not_on_record"),
    ],
)
def test_whatever_does_not_agree_proves_nothing(held: HeldVersion, record: OnRecord, code: str) -> None:
    found = check(held, record)
    assert found.outcome is None
    assert not found.approved
    assert [reason.code for reason in found.reasons][:1] == [code]
    assert {reason.code for reason in found.reasons} <= {code, "within_limits"}


def test_a_block_that_was_edited_into_an_approval_is_not_one() -> None:
    blocked = recorded(EVENT.model_copy(update={"outcome": DecisionOutcome.BLOCK}))
    assert check(HELD, blocked).outcome is None


def test_a_version_that_nobody_audited_waits() -> None:
    bare = HeldVersion("m", "1", None, None, None, None, None)
    found = check(bare, NOTHING)
    assert (found.outcome, found.reasons[0].code) == (DecisionOutcome.REVIEW, "not_decided")


def test_a_sign_off_counts_and_the_tag_of_before_it_does_not() -> None:
    signed = recorded(
        EVENT.model_copy(update={"outcome": DecisionOutcome.BLOCK}),
        outcome=DecisionOutcome.APPROVE,
        kind="sign_off",
        by={"name": "Ada", "via": "terminal"},
        reason="Known.",
        reference="T-1",
    )
    found = check(HELD, signed)
    assert (found.outcome, found.reasons[0].code) == (DecisionOutcome.APPROVE, "signed_off")
    stale = check(HELD._replace(outcome="block"), signed)
    assert (stale.outcome, [one.code for one in stale.reasons][:2]) == (None, ["outcome_differs", "signed_off"])


def test_an_approval_that_has_ended_does_not_pass_whatever_the_tag_says() -> None:
    ended = recorded(EVENT, expires_at="2026-11-02T00:00:00+00:00")
    found = check(HELD, ended)
    assert (found.outcome, [one.code for one in found.reasons][:2]) == (None, ["outcome_differs", "approval_ended"])
    assert check(HELD._replace(outcome="review"), ended).outcome is DecisionOutcome.REVIEW


def test_an_approval_by_one_suite_does_not_pass_where_another_blocks() -> None:
    other = standing(EVENT, audit_id="b-1", audit_suite_id="other", outcome="block")
    assert check(HELD, recorded(EVENT, other)).outcome is None
    assert check(HELD._replace(outcome="block"), recorded(EVENT, other)).outcome is DecisionOutcome.BLOCK


def test_why_the_registry_could_not_be_written_is_said_where_it_is_behind() -> None:
    behind = RECORD._replace(last_write="MLflow cannot be reached")
    assert check(HELD._replace(outcome="review"), behind).reasons[-1].code == "not_written"
    assert check(HELD, behind).approved
