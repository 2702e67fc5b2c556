"""What an audit is said to have used: what the ledger or the record knows, and never a nought that nobody knows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.cli import main as root
from proctor.domain.decision import DecisionOutcome
from proctor.domain.usage import Usage
from proctor.gateway.reading import Counts
from proctor.gateway.status import AuditStatus, TokensSpent
from proctor.router.ledger.store import Ledger
from proctor.router.pools.store import Pools
from proctor.runtime.records.audit_state import AuditState
from tests.integration.audit_support import AuditBench, audit_bench, serving
from tests.integration.http_gateway import client, serving_both

NOBODY = "redis://127.0.0.1:1/0"
ON_RECORD = {"trials": 64, "input_tokens": 200, "output_tokens": 20}


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as bench:
        yield bench


def shown(bench: AuditBench, audit: str, capsys: pytest.CaptureFixture[str], *server: str) -> Any:
    assert root.main(["audit", "show", audit, "--home", str(bench.home), "--format", "json", *server]) == 0
    return json.loads(capsys.readouterr().out)["spent"]


def decided(bench: AuditBench, *, noted: bool = True) -> str:
    """An audit that asked something, and was decided."""
    audit = bench.answering()
    bench.answer(audit, "s0", "s1")
    if noted:
        note(bench, audit, "2026-10", Usage(trials=40, input_tokens=150, output_tokens=15))
        note(bench, audit, "2026-11", Usage(**ON_RECORD))
    bench.decide(audit, DecisionOutcome.REVIEW)
    return audit


def note(bench: AuditBench, audit: str, month: str, used: Usage) -> None:
    """As the router does when an audit stops: in all by then."""
    bench.records.costs.note(audit, month, used, submitter="local", suite_id="first", model_id="m")


@pytest.fixture
def stack_is_down(monkeypatch: pytest.MonkeyPatch, bench: AuditBench) -> None:
    for variable in ("PROCTOR_LEDGER_URL", "PROCTOR_BROKER_URL"):
        monkeypatch.setenv(variable, NOBODY)


@pytest.mark.usefixtures("stack_is_down")
def test_a_decided_audit_says_what_is_on_record_when_the_stack_is_down(
    bench: AuditBench, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = decided(bench)
    assert shown(bench, audit, capsys) == ON_RECORD
    assert root.main(["audit", "list", "--home", str(bench.home), "--format", "json"]) == 0
    assert [one["spent"] for one in json.loads(capsys.readouterr().out)] == [ON_RECORD]
    assert root.main(["audit", "show", audit, "--home", str(bench.home)]) == 0
    assert "64 trials, 200 prompt tokens and 20 answer tokens" in capsys.readouterr().out


@pytest.mark.usefixtures("stack_is_down")
def test_what_is_nowhere_on_record_is_unknown_and_not_nothing(
    bench: AuditBench, capsys: pytest.CaptureFixture[str]
) -> None:
    audit, runs = decided(bench, noted=False), bench.submitted("runs")
    bench.set(runs, AuditState.ANSWERING, variants="sha256:variants", planned_stage="answer")
    assert shown(bench, audit, capsys) is None
    assert root.main(["audit", "show", audit, "--home", str(bench.home)]) == 0
    assert "not known" in capsys.readouterr().out
    assert root.main(["audit", "list", "--home", str(bench.home), "--format", "json"]) == 0
    spent = {one["audit_id"]: one["spent"] for one in json.loads(capsys.readouterr().out)}
    assert spent == {audit: None, runs: None}


def test_a_ledger_that_has_forgotten_an_audit_is_not_taken_at_its_word(bench: AuditBench) -> None:
    noted, unnoted = decided(bench), bench.answering("second")
    bench.answer(unnoted, "s0")
    bench.decide(unnoted, DecisionOutcome.REVIEW)
    assert bench.desk.look(unnoted).spent == TokensSpent(trials=32, input_tokens=100, output_tokens=10)
    for audit in (noted, unnoted):
        bench.ledger.forget(audit)
    assert bench.desk.look(noted).spent == TokensSpent(**ON_RECORD)
    assert bench.desk.look(unnoted).spent is None


def test_the_ledger_of_another_stack_says_nothing_of_an_audit_that_runs(bench: AuditBench) -> None:
    audit = bench.answering()
    bench.answer(audit, "s0")
    bench.set(audit, AuditState.ANSWERING, planned_stage="answer")
    assert bench.desk.look(audit).spent == TokensSpent(trials=32, input_tokens=100, output_tokens=10)
    bench.ledger.forget(audit)
    assert bench.desk.look(audit).spent is None


@pytest.mark.parametrize("state", [AuditState.CREATED, AuditState.PROBING, AuditState.FAILED, AuditState.CANCELLED])
def test_an_audit_that_never_asked_anything_used_nothing(bench: AuditBench, state: AuditState) -> None:
    audit = bench.submitted()
    if state is not AuditState.CREATED:
        bench.set(audit, state)
    assert bench.desk.look(audit).spent == TokensSpent()


def test_a_stage_that_was_planned_and_not_answered_used_nothing(bench: AuditBench) -> None:
    audit = bench.answering()
    bench.set(audit, AuditState.ANSWERING, planned_stage="answer")
    assert bench.desk.look(audit).spent == TokensSpent()


def test_the_ledger_is_asked_first_because_answers_may_come_after_an_audit_stopped(bench: AuditBench) -> None:
    audit = bench.answering()
    bench.answer(audit, "s0")
    note(bench, audit, "2026-11", Usage(trials=32, input_tokens=100, output_tokens=10))
    bench.answer(audit, "s1")
    bench.set(audit, AuditState.FAILED, "away for too long")
    assert bench.desk.look(audit).spent == TokensSpent(**ON_RECORD)


def test_a_service_says_the_same(bench: AuditBench, capsys: pytest.CaptureFixture[str]) -> None:
    noted, unnoted = decided(bench), bench.submitted("second")
    bench.decide(unnoted, DecisionOutcome.REVIEW)
    away = Counts(Ledger(NOBODY), Pools(NOBODY))
    desk = dataclasses.replace(bench.desk, counts=away)
    with serving(desk) as address:
        server = ("--server", f"grpc://{address}")
        assert shown(bench, noted, capsys, *server) == ON_RECORD
        assert shown(bench, unnoted, capsys, *server) is None
    with serving_both(desk) as (_, address), client(address) as http:
        assert http.get(f"/v1/audits/{noted}").json()["spent"] == ON_RECORD
        assert http.get(f"/v1/audits/{unnoted}").json()["spent"] is None
    for store in away:
        store.close()


def test_the_page_of_an_audit_that_runs_says_that_it_is_not_known(bench: AuditBench) -> None:
    audit = bench.answering()
    bench.answer(audit, "s0")
    bench.set(audit, AuditState.ANSWERING, planned_stage="answer")
    with serving_both(bench.desk) as (_, address), client(address) as http:
        assert "Asked so far: 32 trials" in http.get(f"/audits/{audit}").text
        bench.ledger.forget(audit)
        page = http.get(f"/audits/{audit}").text
        assert "Asked so far" not in page
        assert "What it asked so far is not known" in page


def test_a_status_that_says_nothing_of_it_does_not_say_nothing_was_used() -> None:
    assert AuditStatus(audit_id="a", suite="s", model_id="m", state=AuditState.DECIDED).plain()["spent"] is None
