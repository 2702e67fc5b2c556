"""The promotion guard's judgement: what the registry says against what is on record."""

from __future__ import annotations

import pytest

from proctor.domain.canonical import bytes_digest
from proctor.domain.decision import DecisionEvent, DecisionOutcome, Reason
from proctor.domain.scope import Scope
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
RECORD = OnRecord(EVENT, "3", DOCUMENT)


@pytest.mark.parametrize("outcome", list(DecisionOutcome))
def test_what_the_record_bears_out_is_the_decision_on_record(outcome: DecisionOutcome) -> None:
    event = EVENT.model_copy(update={"outcome": outcome})
    found = check(HELD._replace(outcome=outcome.value), RECORD._replace(event=event))
    assert (found.outcome, found.approved) == (outcome, outcome is DecisionOutcome.APPROVE)
    assert found.reasons == EVENT.reasons


def test_an_approval_by_wordings_says_so() -> None:
    assert check(HELD, RECORD).caveat is not None
    wider = EVENT.model_copy(update={"scope": Scope.WORDING_EXPOSURE})
    assert check(HELD, RECORD._replace(event=wider)).caveat is None


@pytest.mark.parametrize(
    ("held", "record", "code"),
    [
        (HELD._replace(outcome="review"), RECORD, "outcome_differs"),
        (HELD._replace(outcome=None), RECORD, "outcome_differs"),
        (HELD._replace(model_digest="sha256:" + "9" * 64), RECORD, "model_differs"),
        (HELD._replace(report_digest=None), RECORD, "report_differs"),
        (HELD._replace(fingerprint="sha256:" + "9" * 64), RECORD, "fingerprint_differs"),
        (HELD._replace(version="4"), RECORD, "version_differs"),
        (HELD, RECORD._replace(registered_version=None), "version_differs"),
        (HELD, RECORD._replace(document=None), "report_missing"),
        (HELD, RECORD._replace(document=DOCUMENT + b" "), "report_changed"),
        (HELD, OnRecord(None, None, None), "not_on_record"),
        (HELD._replace(audit_id=None), OnRecord(None, None, None), "not_on_record"),
    ],
)
def test_whatever_does_not_agree_proves_nothing(held: HeldVersion, record: OnRecord, code: str) -> None:
    found = check(held, record)
    assert found.outcome is None
    assert not found.approved
    assert [reason.code for reason in found.reasons] == [code]


def test_a_block_that_was_edited_into_an_approval_is_not_one() -> None:
    blocked = RECORD._replace(event=EVENT.model_copy(update={"outcome": DecisionOutcome.BLOCK}))
    assert check(HELD, blocked).outcome is None


def test_a_version_that_nobody_audited_waits() -> None:
    bare = HeldVersion("m", "1", None, None, None, None, None)
    found = check(bare, OnRecord(None, None, None))
    assert (found.outcome, found.reasons[0].code) == (DecisionOutcome.REVIEW, "not_decided")
