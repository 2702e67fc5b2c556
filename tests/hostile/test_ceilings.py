"""What the operator lets each submitter use, whatever their suites say."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from proctor.domain.ceilings import MAX_SUBMISSIONS_PER_HOUR, Ceilings, LimitError, parse_ceilings
from proctor.domain.errors import BadInputError, StoreError
from proctor.domain.operator_endpoint import OperatorEndpoint
from proctor.domain.submitter import LOCAL, Submitter
from proctor.domain.suite_budget import BudgetSection
from proctor.formats.suites import load_suite
from proctor.gateway.audits import LocalDesk
from proctor.gateway.rates import MAX_CHANGES_PER_MINUTE, Changes, Rates
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.router.budget import exceeded
from proctor.router.ledger.types import Spent
from proctor.router.submit.terms import terms_of
from proctor.router.terms import Terms
from proctor.runtime.grpc.tokens import metadata_of, new_token
from proctor.runtime.records.audit_state import AuditState
from proctor.runtime.records.exclusive import exclusive
from proctor.runtime.records.store import Records
from proctor.runtime.settings import Settings
from tests.integration.audit_support import AuditBench, audit_bench, refused, serving, stub

CI = Submitter("ci")


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as bench:
        yield bench


def desk(bench: AuditBench, caller: Submitter = CI, **ceilings: Any) -> LocalDesk:
    said = parse_ceilings(json.dumps({caller.name: ceilings}), source="the test")
    return replace(bench.desk, settings=bench.settings.model_copy(update={"ceilings": said}), caller=caller)


def test_a_submitter_s_own_word_comes_before_that_of_everyone() -> None:
    said = '{"*": {"max_audits": 2, "max_items": 100}, "ci": {"max_audits": 9, "max_items": null}}'
    ceilings = parse_ceilings(said, source="the test")
    assert ceilings.of("alice") == ceilings.of("local") == Ceilings(max_audits=2, max_items=100)
    assert ceilings.of("ci") == Ceilings(max_audits=9)
    settings = Settings.from_environment({"PROCTOR_CEILINGS": said})
    assert Settings.from_environment(settings.to_environment()).ceilings == settings.ceilings == ceilings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "is not a JSON object"),
        ('{"CI": {}}', '"CI" is no submitter\'s name'),
        ('{"ci": 5}', '"ci" is no object of ceilings'),
        ('{"ci": {"max_audit": 1}}', "max_audit is no ceiling; known: max_trials"),
        ('{"ci": {"max_audits": -1}}', "max_audits is -1"),
        ('{"ci": {"max_audits": "2"}}', 'max_audits is "2"'),
        ('{"ci": {"max_cost": NaN}}', "max_cost is"),
        (f'{{"ci": {{"max_submissions_per_hour": {MAX_SUBMISSIONS_PER_HOUR + 1}}}}}', "max_submissions_per_hour is"),
        ('{"ci": {}, "ci": {}}', "stands there twice"),
    ],
)
def test_ceilings_that_cannot_be_read_are_refused_with_the_name_and_the_key(text: str, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        parse_ceilings(text, source="PROCTOR_CEILINGS")


def is_empty(bench: AuditBench) -> bool:
    return bench.records.audits() == [] and not Path(bench.settings.artifacts).exists() and bench.sent == []


def test_a_suite_of_more_items_than_its_submitter_may_ask_leaves_nothing(bench: AuditBench) -> None:
    suite = bench.suite_file()
    with pytest.raises(
        BadInputError, match=r"8 items, and submitter 'ci' may ask of 7 \(PROCTOR_CEILINGS: max_items\)"
    ):
        desk(bench, max_items=7).submit(suite)
    assert is_empty(bench)
    assert desk(bench, max_items=8).submit(suite).audit.submitter == "ci"


def test_a_submitter_has_so_many_audits_at_a_time_and_no_more(bench: AuditBench) -> None:
    mine = desk(bench, max_audits=2)
    first = mine.submit(bench.suite_file("a")).audit.audit_id
    mine.submit(bench.suite_file("b"))
    # Those of others do not count, nor does the terminal's.
    desk(bench, Submitter("alice"), max_audits=1).submit(bench.suite_file("c"))
    bench.submitted("d")
    stored = sorted(Path(bench.settings.artifacts).rglob("*.z"))
    (bench.home / "items.jsonl").write_text('{"question": "another", "answer": "one"}\n')
    with pytest.raises(
        LimitError, match=r"submitter 'ci' may have 2 audits at a time \(PROCTOR_CEILINGS: max_audits\), and 2"
    ):
        mine.submit(bench.suite_file("e"))
    # What was refused takes no disk.
    assert sorted(Path(bench.settings.artifacts).rglob("*.z")) == stored
    bench.set(first, AuditState.FAILED, "gone")
    last = mine.submit(bench.suite_file("e")).audit.audit_id
    # One that failed needs a place to go on, and one that runs has its own.
    with pytest.raises(LimitError, match="max_audits"):
        mine.resume(first)
    mine.pause(last)
    assert not mine.resume(last).paused
    assert mine.submit(bench.suite_file("e")).audit.audit_id == last


def race(count: int, submit: Callable[[int], object]) -> list[BaseException | None]:
    """Submissions that begin at one moment; what became of each."""
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        barrier.wait()
        submit(number)

    with ThreadPoolExecutor(count) as threads:
        return [future.exception() for future in [threads.submit(run, number) for number in range(count)]]


@pytest.fixture(params=["sqlite", "postgresql"])
def records_url(request: pytest.FixtureRequest, bench: AuditBench) -> Iterator[str]:
    if request.param == "sqlite":
        yield bench.settings.records_url
        return
    server = pytest.importorskip("tests.postgres_server")
    with server.postgres_server() as running:
        yield running.new_database()


def test_of_submissions_at_once_through_several_gateways_so_many_get_in_as_there_are_places(
    bench: AuditBench, records_url: str
) -> None:
    suites = [bench.suite_file(f"s{number}") for number in range(6)]
    # Each with a record store of its own, as in gateways on several machines.
    stores = [Records(records_url) for _ in suites]
    said = desk(bench, max_audits=2)
    settings = said.settings.model_copy(update={"records_url": records_url})
    desks = [replace(said, settings=settings, records=store) for store in stores]
    failures = [error for error in race(len(desks), lambda n: desks[n].submit(suites[n])) if error is not None]
    assert [type(error) for error in failures] == [LimitError] * 4
    assert len(stores[0].running_audits()) == 2
    for store in stores:
        store.close()


def test_a_lock_whose_holder_hangs_is_given_up_with_the_cause(bench: AuditBench) -> None:
    with (
        exclusive(bench.settings.records_url),
        pytest.raises(StoreError, match=r"holds .*records\.sqlite\.lock for more than 0\.05 s"),
        exclusive(bench.settings.records_url, patience_s=0.05),
    ):
        pass
    with exclusive(bench.settings.records_url, patience_s=0.05):
        pass
    with pytest.raises(StoreError, match="use a file of SQLite, or PostgreSQL"), exclusive("mysql://host/db"):
        pass


def test_a_submitter_submits_so_often_in_any_hour_and_refusals_do_not_count() -> None:
    now = [0.0]
    rates = Rates(lambda: now[0])
    for at_s in (0.0, 1_000.0, 2_000.0):
        now[0] = at_s
        rates.take("ci", 3)
    rates.take("alice", 3)
    for at_s in (2_001.0, 3_599.0):
        now[0] = at_s
        with pytest.raises(
            LimitError, match=rf"submitter 'ci' may submit 3 times an hour.*again in {3_600 - at_s:,.0f} s"
        ):
            rates.take("ci", 3)
    now[0] = 3_600.0
    rates.take("ci", 3)
    with pytest.raises(LimitError):
        rates.take("ci", 3)
    with pytest.raises(LimitError, match="when the operator raises the ceiling"):
        rates.take("nobody", 0)


def test_submissions_past_the_rate_are_refused_before_their_messages_are_read(bench: AuditBench) -> None:
    token = new_token()
    limited = desk(bench, max_submissions_per_hour=2)
    with serving(limited, tokens={"ci": token}) as address, stub(address) as service:
        for _ in range(2):
            with refused(grpc.StatusCode.INVALID_ARGUMENT, "suite"):
                service.Submit(pb.SubmitRequest(suite="{"), metadata=metadata_of(token))
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "max_submissions_per_hour"):
            service.Submit(pb.SubmitRequest(suite="{"), metadata=metadata_of(token))


def test_a_ceiling_that_is_reached_through_the_service_is_told_in_one_clear_error(bench: AuditBench) -> None:
    token = new_token()
    limited = desk(bench, max_audits=0)
    file = pb.SuiteFile(name="items.jsonl", content=(bench.home / "items.jsonl").read_bytes())
    with (
        serving(limited, tokens={"ci": token}) as address,
        stub(address) as service,
        refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "PROCTOR_CEILINGS: max_audits"),
    ):
        service.Submit(pb.SubmitRequest(suite=bench.suite_text(), files=[file]), metadata=metadata_of(token))
    assert is_empty(bench)


SPENT = {"answer": Spent(10, 1_000, 600)}


@pytest.mark.parametrize(
    ("ceiling", "use"),
    [({"max_tokens": 1_500}, "1,600 tokens were used"), ({"max_trials": 10}, "10 trials were asked")],
)
def test_an_operator_s_ceiling_stops_an_audit_whose_own_budget_is_higher_or_none(
    ceiling: dict[str, int], use: str
) -> None:
    for budget in (BudgetSection(), BudgetSection(max_trials=10**6, max_tokens=10**9)):
        cause = exceeded(Terms(budget=budget, ceilings=BudgetSection(**ceiling)), SPENT)
        assert cause is not None
        assert cause.startswith("a ceiling of the operator stops the audit")
        assert use in cause
        assert "PROCTOR_CEILINGS" in cause
    own = exceeded(Terms(budget=BudgetSection(max_tokens=10), ceilings=BudgetSection(max_tokens=10**6)), SPENT)
    assert own is not None
    assert own.startswith("the budget stops the audit: budget_config.max_tokens is 10")


def test_changes_of_a_caller_are_bounded_in_a_minute_whatever_the_ceilings() -> None:
    now = [0.0]
    changes = Changes(lambda: now[0])
    for _ in range(MAX_CHANGES_PER_MINUTE):
        changes.take("ci")
    now[0] = 20.0
    with pytest.raises(LimitError, match="'ci' may change something 600 times a minute, and has: try again in 40 s"):
        changes.take("ci")
    changes.take("anna")
    now[0] = 60.0
    changes.take("ci")


def test_an_audit_s_terms_hold_the_ceilings_of_its_submitter(bench: AuditBench) -> None:
    audit = desk(bench, max_trials=5).submit(bench.suite_file()).audit.audit_id
    assert bench.records.audit(audit).inputs["terms"]["ceilings"]["max_trials"] == 5
    # Without ceilings, rows are what they were.
    assert "ceilings" not in bench.records.audit(bench.submitted("other")).inputs["terms"]


def test_what_has_no_price_is_not_asked_under_a_ceiling_of_cost(bench: AuditBench) -> None:
    with pytest.raises(
        BadInputError, match=r"lets submitter 'ci' spend 5 an audit \(PROCTOR_CEILINGS: max_cost\), but"
    ):
        desk(bench, max_cost=5).submit(bench.suite_file())
    assert is_empty(bench)
    priced = OperatorEndpoint(url="http://127.0.0.1:9/v1", input_price_per_million=1, output_price_per_million=1)
    settings = desk(bench, LOCAL, max_cost=5).settings.model_copy(update={"endpoints": {"p": priced}})
    assert terms_of(load_suite(bench.suite_file()), settings).ceilings.max_cost == 5
