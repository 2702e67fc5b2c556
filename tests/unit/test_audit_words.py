"""What is said of audits that run, pause, end."""

from __future__ import annotations

from typing import Any

import pytest

from proctor.cli.audits.status_lines import STEPS, conclusion, duration, exit_code, progress, step
from proctor.domain.decision import DecisionOutcome, Reason
from proctor.domain.errors import ExitCode
from proctor.gateway.status import AuditStatus, Trials, Verdict
from proctor.runtime.records.audit_state import AuditState

DECISION = Verdict(
    outcome=DecisionOutcome.REVIEW,
    reasons=(Reason(code="c", text="too few items"),),
    report_path="r",
    report_digest="d",
)


def status(**changes: Any) -> AuditStatus:
    values = {"audit_id": "a-1", "suite": "s", "model_id": "m", "state": AuditState.ANSWERING, "stage": "answer"}
    return AuditStatus(**{**values, **changes})


def test_every_state_has_its_words() -> None:
    assert set(STEPS) == set(AuditState)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "1 s"),
        (59.4, "59 s"),
        (60, "1 min 0 s"),
        (3_599, "59 min 59 s"),
        (3_600, "1 h 0 min"),
        (9_000, "2 h 30 min"),
    ],
)
def test_a_duration_is_said_in_the_two_units_that_a_person_would_use(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_progress_names_what_is_asked_what_was_given_up_and_the_pace() -> None:
    trials = Trials(planned=2_000, done=512, under_way=64, dead=32)
    assert progress(status(trials=trials)) == "512 of 2,000 trials, 32 given up"
    paced = status(stage="transmit-1", trials=trials, rate=9.51, eta_s=153.0)
    assert progress(paced) == "512 of 2,000 messages, 32 given up, 9.5/s, about 2 min 33 s left"
    assert progress(status(trials=Trials(planned=0, done=0, under_way=0, dead=0))) == ""
    assert progress(status(stage=None)) == ""


def test_an_endpoint_that_is_probed_again_is_said_not_to_answer() -> None:
    assert step(status(state=AuditState.PROBING)) == "asking the endpoint"
    refused = status(state=AuditState.PROBING, detail="connection refused")
    assert step(refused) == "asking the endpoint (the endpoint does not answer)"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"stage": None, "state": AuditState.SCORING}, "Audit a-1 of m is under way: weighing the evidence."),
        ({"paused": True}, "Audit a-1 of m is paused, at: answering. `proctor audit resume a-1` goes on."),
        (
            {"state": AuditState.FAILED, "detail": "no answer."},
            "Audit a-1 of m failed: no answer. Once that is mended, `proctor audit resume a-1` goes on from here.",
        ),
        ({"state": AuditState.DECIDED, "decision": DECISION}, "Audit a-1 of m was decided: review (too few items)."),
    ],
)
def test_the_conclusion_is_one_sentence_with_what_to_do(changes: dict[str, Any], said: str) -> None:
    assert conclusion(status(**changes)) == said


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"state": AuditState.DECIDED, "decision": DECISION}, ExitCode.REVIEW),
        ({"state": AuditState.REGISTERING, "decision": DECISION}, ExitCode.FAILURE),
        ({"state": AuditState.FAILED}, ExitCode.FAILURE),
        ({"state": AuditState.CANCELLED}, ExitCode.FAILURE),
    ],
)
def test_only_a_decision_that_has_ended_its_audit_gives_its_code(changes: dict[str, Any], code: ExitCode) -> None:
    assert exit_code(status(**changes)) is code
