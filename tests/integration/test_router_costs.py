"""What an audit used is kept beyond its ledger, by the month in which it stops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proctor.domain.messages import AuditScored, DecisionWritten
from proctor.domain.operator_endpoint import Prices
from proctor.domain.usage import Usage
from proctor.router import tasks
from proctor.router.audit import view
from proctor.router.budget import usage_of
from proctor.router.ledger.store import Spent
from proctor.router.terms import Terms
from proctor.studies.costs import read_costs
from tests.integration.router_support import Bench, router_bench

PRICES = Prices(input_per_million=1e6, output_per_million=2e6)


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with router_bench(tmp_path, valkey_url, monkeypatch) as found:
        yield found


def in_month(monkeypatch: pytest.MonkeyPatch, month: int) -> None:
    dispatcher = replace(tasks._dispatcher(), now=lambda: datetime(2026, month, 1, tzinfo=UTC))
    monkeypatch.setattr(tasks, "_dispatcher", lambda: dispatcher)


def answer_all(bench: Bench) -> None:
    while shards := bench.shards():
        for shard in shards:
            bench.answer(shard, completions="sha256:1", input_tokens=10, output_tokens=5)


def test_a_stage_without_prices_is_counted_apart_and_one_that_is_free_is_not() -> None:
    spent = {"answer": Spent(3, 10, 4), "transmit": Spent(2, 6, 1)}
    free = Prices(input_per_million=0, output_per_million=0)
    used = usage_of(Terms(answer=PRICES, transmit=free), spent)
    assert used == Usage(trials=5, input_tokens=16, output_tokens=5, cost=18.0)
    assert used.priced
    used = usage_of(Terms(answer=PRICES), spent)
    assert used.model_dump() == {
        "trials": 5, "input_tokens": 16, "output_tokens": 5, "cost": 18.0,
        "unpriced_trials": 2, "unpriced_input_tokens": 6, "unpriced_output_tokens": 1,
    }  # fmt: skip


def test_a_decided_audit_s_costs_are_on_record_when_its_ledger_is_gone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_month(monkeypatch, 11)
    audit = bench.to_answering()
    answer_all(bench)
    for _ in range(2):
        tasks.scored(AuditScored(audit_id=audit))
    tasks.decision_written(DecisionWritten(audit_id=audit, registry_version="7"))
    found = read_costs(bench.records, "2026-11")
    # 100 canonical and 100 reworded trials in shards of 64, whose endpoint has no price.
    assert (found.audits, found.used.trials, found.used.unpriced_trials) == (1, 200, 200)
    assert (found.used.input_tokens, found.used.output_tokens, found.used.cost) == (40, 20, 0.0)
    assert [(one.name, one.audits) for one in found.by_suite] == [("router-test", 1)]
    assert [one.name for one in found.by_submitter] == ["local"]


def test_an_audit_that_failed_and_goes_on_a_month_later_costs_in_both(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_month(monkeypatch, 10)
    audit = bench.to_answering()
    (first, *_) = bench.shards()
    bench.answer(first, completions="sha256:1", input_tokens=10, output_tokens=5)
    dispatcher = tasks._dispatcher()
    dispatcher.fail(view(bench.records, audit), "the endpoint went away")
    assert read_costs(bench.records, "2026-10").used.input_tokens == 10
    in_month(monkeypatch, 11)
    bench.sent.clear()
    assert bench.start_again() == audit
    answer_all(bench)
    tasks.scored(AuditScored(audit_id=audit))
    assert read_costs(bench.records, "2026-10").used.input_tokens == 10
    later = read_costs(bench.records, "2026-11").used
    assert later.input_tokens > 0
    assert later.input_tokens % 10 == 0
