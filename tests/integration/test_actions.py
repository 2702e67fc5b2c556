"""Every change that a caller makes stands on record with who and when, whichever way it came."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
import sqlalchemy as sa

from proctor.cli.main import main
from proctor.domain.action import Action, Verb
from proctor.domain.decision import DecisionOutcome
from proctor.domain.errors import BadInputError
from proctor.domain.record.sign_off import Verb as Sign
from proctor.domain.submitter import ForbiddenError, Role, Submitter
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.router import control
from proctor.runtime.grpc.tokens import metadata_of, new_token
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.engine import open_engine
from proctor.runtime.records.store import Records
from proctor.studies.review import reviews_of
from tests.integration.audit_support import AuditBench, audit_bench, refused, stub
from tests.integration.http_gateway import client, serving_both

CI, VERA = new_token(), new_token()
TOKENS: dict[str, Any] = {"ci": CI, "vera": {"token": VERA, "role": "viewer", "sees_all": True}}
ME = {"user": pwd.getpwuid(os.getuid()).pw_name}


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        yield found


def test_what_is_done_over_grpc_http_and_at_the_terminal_is_on_record(
    bench: AuditBench, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_both(bench.desk, tokens=TOKENS) as (address, url), stub(address) as service, client(url, CI) as http:
        files = [pb.SuiteFile(name="items.jsonl", content=(bench.home / "items.jsonl").read_bytes())]
        request = pb.SubmitRequest(suite=bench.suite_text(), files=files, priority=pb.PRIORITY_LOW)
        mine = metadata_of(CI)
        audit = service.Submit(request, metadata=mine, timeout=20).audit.audit_id
        service.Pause(pb.PauseRequest(audit=audit), metadata=mine, timeout=20)
        service.Submit(request, metadata=mine, timeout=20)
        bench.desk.pause(audit)
        bench.desk.pause(audit)
        bench.desk.resume(audit)
        bench.desk.cancel(audit)
        told = http.get(f"/v1/audits/{audit}/actions").json()["actions"]
    expected = [
        ("submit", "ci", "token", {"priority": "low"}),
        ("pause", "ci", "token", {}),
        ("submit", "ci", "token", {"priority": "low", "goes_on_from": "created"}),
        # Of what changed nothing there is no row.
        ("pause", "local", "terminal", ME),
        ("resume", "local", "terminal", ME),
        ("cancel", "local", "terminal", ME),
    ]
    assert [(one["action"], one["name"], one["via"], one["detail"]) for one in told] == expected
    assert main(["record", "actions", audit[:8], "--home", str(bench.home), "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [{name: value for name, value in one.items() if name != "audit_id"} for one in printed] == told
    assert main(["record", "actions", "--limit", "2", "--home", str(bench.home)]) == 0
    newest = capsys.readouterr().out
    assert ("cancel" in newest, "resume" in newest, "pause" in newest) == (True, True, False)
    assert "local (terminal)" in newest


def test_what_is_refused_leaves_no_row_and_no_change(bench: AuditBench) -> None:
    audit = bench.submitted()
    with serving_both(bench.desk, tokens=TOKENS) as (address, _), stub(address) as service:
        for method in ("Pause", "Resume", "Cancel"):
            with refused(grpc.StatusCode.PERMISSION_DENIED, "'vera' is a viewer, and this takes an operator"):
                getattr(service, method)(
                    getattr(pb, f"{method}Request")(audit=audit), metadata=metadata_of(VERA), timeout=20
                )
        with refused(grpc.StatusCode.PERMISSION_DENIED, "takes an operator"):
            service.Submit(pb.SubmitRequest(suite="{}"), metadata=metadata_of(VERA), timeout=20)
        assert service.Get(pb.GetRequest(audit=audit), metadata=metadata_of(VERA), timeout=20).audit_id == audit
    assert [one.action for one in bench.records.actions.of(audit)] == ["submit"]
    bench.set(audit, AuditState.DECIDED)
    with pytest.raises(BadInputError, match="has ended"):
        control.cancel(bench.records, audit)
    assert [one.action for one in bench.records.actions.of(audit)] == ["submit"]


def test_a_change_and_its_row_are_written_together_or_not_at_all(
    records_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise RuntimeError("the row cannot be written")

    by = Action(Verb.SUBMIT, Submitter("ci"))
    with closing(Records(records_url)) as records:
        monkeypatch.setattr("proctor.runtime.records.store.note", broken)
        with suppress(RuntimeError):
            records.create_audit("s", "{}", {}, action=by)
        assert records.audits() == []
        audit = records.create_audit("s", "{}", {}).audit_id
        with suppress(RuntimeError):
            records.advance(audit, AuditState.CANCELLED, expected=[AuditState.CREATED], action=by)
        assert records.audit(audit).state is AuditState.CREATED


def test_rows_are_never_changed_and_hold_any_words(records_url: str) -> None:
    odd = Submitter("oidc:a\0\ud800<b>", role=Role.REVIEWER, via="oidc:https://issuer.example")
    with closing(Records(records_url)) as records:
        audit = records.create_audit("s", "{}", {}, action=Action(Verb.SUBMIT, odd, {"why": "\0\ud800"})).audit_id
        (row,) = records.actions.of(audit)
        assert (row.name, row.via) == ("oidc:a\N{REPLACEMENT CHARACTER}?<b>", odd.via)
        assert records.actions.newest(5, before=row.id) == []
    engine = open_engine(records_url)
    for statement in ("UPDATE actions SET name = 'eve'", "DELETE FROM actions"):
        with pytest.raises(sa.exc.DBAPIError, match="only ever added to"), engine.begin() as connection:
            connection.exec_driver_sql(statement)
    engine.dispose()


def test_a_sign_off_stands_among_the_actions_with_its_entry_and_a_refused_one_does_not(bench: AuditBench) -> None:
    audit = bench.submitted()
    bench.decide(audit, DecisionOutcome.REVIEW)
    reviews = reviews_of(bench.settings, bench.records, lambda message: None)
    anna = Submitter("anna", role=Role.REVIEWER)
    with pytest.raises(ForbiddenError):
        reviews.sign(audit, Sign.APPROVE, DecisionOutcome.APPROVE, Submitter("ci"), "why", "QA-1")
    signed = reviews.sign(audit, Sign.APPROVE, DecisionOutcome.APPROVE, anna, "why", "QA-1")
    with pytest.raises(BadInputError):
        reviews.sign(audit, Sign.APPROVE, DecisionOutcome.APPROVE, anna, "why", "QA-1")
    _, row = bench.records.actions.of(audit)
    assert (row.action, row.name, row.via) == ("sign-off", "anna", "token")
    assert row.detail == {"verb": "approve", "outcome": "approve", "entry": signed.standing.sequence}
    assert row.at == signed.standing.at
