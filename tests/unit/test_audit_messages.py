"""Audits as messages and back: nothing is lost, and what is unknown is refused."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from proctor.domain.decision import DecisionOutcome, Reason
from proctor.domain.errors import BadInputError
from proctor.domain.messages import Priority
from proctor.domain.record.sign_off import SignedBy
from proctor.domain.scope import Scope
from proctor.domain.standing import StandingKind
from proctor.gateway.client import ServerAddress
from proctor.gateway.convert import audit_message, priority_of, status_of, submitted_message, submitted_of
from proctor.gateway.desk import Submitted
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.gateway.status import AuditStatus, Failure, Stands, TokensSpent, Trials, Verdict
from proctor.runtime.records.audit_state import AuditState

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAME = TEXT.filter(bool)
COUNT = st.integers(0, 2**40)
SECONDS = st.floats(0, 1e9)
STATUSES = st.builds(
    AuditStatus,
    audit_id=TEXT,
    suite=TEXT,
    model_id=TEXT,
    state=st.sampled_from(AuditState),
    paused=st.booleans(),
    priority=st.sampled_from(Priority),
    detail=TEXT,
    created_at=TEXT,
    stage=st.none() | TEXT,
    trials=st.none() | st.builds(Trials, planned=COUNT, done=COUNT, under_way=COUNT, dead=COUNT),
    failures=st.lists(st.builds(Failure, cause=TEXT, shards=COUNT), max_size=3).map(tuple),
    spent=st.none() | st.builds(TokensSpent, trials=COUNT, input_tokens=COUNT, output_tokens=COUNT),
    rate=st.none() | SECONDS,
    eta_s=st.none() | SECONDS,
    away_s=st.none() | SECONDS,
    decision=st.none()
    | st.builds(
        Verdict,
        outcome=st.sampled_from(DecisionOutcome),
        reasons=st.lists(st.builds(Reason, code=TEXT, text=TEXT), max_size=2).map(tuple),
        report_path=TEXT,
        report_digest=TEXT,
        registry_version=st.none() | TEXT,
        scope=st.none() | st.sampled_from(Scope),
        stands=st.none()
        | st.builds(
            Stands,
            outcome=st.sampled_from(DecisionOutcome),
            kind=st.sampled_from(StandingKind),
            by=st.none() | st.builds(SignedBy, name=NAME, via=NAME),
            reason=TEXT,
            reference=TEXT,
            at=TEXT,
            expires_at=st.none() | TEXT,
            sequence=COUNT,
        ),
    ),
)


@given(STATUSES)
def test_a_status_comes_back_from_the_wire_as_it_was(status: AuditStatus) -> None:
    assert status_of(pb.Audit.FromString(audit_message(status).SerializeToString())) == status


@given(STATUSES, st.none() | st.sampled_from(AuditState))
def test_a_submission_comes_back_from_the_wire_as_it_was(status: AuditStatus, stopped_at: AuditState | None) -> None:
    submitted = Submitted(status, stopped_at, ("a note",))
    assert submitted_of(pb.SubmitReply.FromString(submitted_message(submitted).SerializeToString())) == submitted


def test_a_message_has_every_field_of_its_type() -> None:
    pairs: list[tuple[type[Message], type[BaseModel]]] = [
        (pb.Audit, AuditStatus),
        (pb.Trials, Trials),
        (pb.Spent, TokensSpent),
        (pb.Decision, Verdict),
    ]
    for message, model in pairs:
        assert {field.name for field in message.DESCRIPTOR.fields} == set(model.model_fields)


def test_a_priority_that_is_left_out_is_the_normal_one() -> None:
    assert priority_of(pb.SubmitRequest().priority) is Priority.NORMAL


@pytest.mark.parametrize(
    "audit",
    [
        pb.Audit(),
        pb.Audit(state=99),  # type: ignore[arg-type]  # a state of a later version
        pb.Audit(state="AUDIT_STATE_DECIDED", decision={}),
    ],
)
def test_a_state_or_an_outcome_that_is_not_known_is_refused(audit: pb.Audit) -> None:
    with pytest.raises(BadInputError, match="does not know"):
        status_of(audit)


@pytest.mark.parametrize(
    ("text", "host", "port", "tls"),
    [
        ("grpc://127.0.0.1:5", "127.0.0.1", 5, False),
        ("grpcs://audits.example", "audits.example", 50061, True),
        ("grpc://[::1]:7", "::1", 7, False),
    ],
)
def test_a_server_s_address_is_read(text: str, host: str, port: int, tls: bool) -> None:
    found = ServerAddress.parse(text)
    assert (found.address.host, found.address.port, found.tls) == (host, port, tls)


@pytest.mark.parametrize(
    "text", ["", "127.0.0.1:5", "http://a:5", "grpc://", "grpc://a:x", "grpc://a:5/b", "grpc://u:p@a:5", "grpc://[::1"]
)
def test_an_address_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="--server"):
        ServerAddress.parse(text)
