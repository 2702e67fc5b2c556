"""Trends, benchmark health and costs over HTTP: as JSON and as pages, of the audits that a caller may see."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import httpx
import pytest

from proctor.domain.item import Item
from proctor.domain.rotation import Every
from proctor.domain.usage import Usage
from proctor.runtime.grpc.tokens import new_token
from proctor.runtime.records.baselines import Baseline
from proctor.studies.datasets.rotating import begun
from tests.integration.audit_support import AuditBench, audit_bench
from tests.integration.http_gateway import client, serving_both
from tests.measure_samples import a_measure, counts, decide, digest_of

HOSTILE = "<img src=x onerror=window.ran=1>\x1b\u202e"
PAGES = ("/trends", "/trends?model=org/model", "/benchmarks", f"/benchmarks/{digest_of('facts')}", "/costs")
USED = Usage(trials=9, input_tokens=900, output_tokens=100, cost=2.5, unpriced_trials=3, unpriced_input_tokens=300)


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        yield found


@pytest.fixture
def http(bench: AuditBench) -> Iterator[httpx.Client]:
    with serving_both(bench.desk) as (_, url), client(url) as found:
        yield found


def filled(bench: AuditBench, *, submitter: str | None = None) -> None:
    """Six models, six versions of one of them whose level changes, a floor, and costs."""
    for number in range(6):
        measure = a_measure(f"w{number}", model_id=f"org/model-{number}")
        decide(bench.records, measure, counts((1, 1, 0), (0, 3, 1)), submitter=submitter)
        audit_id = decide(bench.records, a_measure(f"v{number}", 6.0 * (number > 2)), submitter=submitter)
        bench.records.register(audit_id, HOSTILE if number == 5 else str(number))
    bench.records.baselines.add(
        Baseline(audit_id, "org/model", "suite", HOSTILE, "6", "champion", submitter or "local")
    )
    who = {"submitter": submitter or "local", "suite_id": "suite", "model_id": "org/model"}
    bench.records.costs.note(audit_id, "2026-11", USED, **who)


def test_the_routes_answer_with_what_the_commands_print(bench: AuditBench, http: httpx.Client) -> None:
    filled(bench)
    trends = http.get("/v1/trends", params={"model": "org/model", "suite": "suite"}).json()
    (line,) = trends["series"]
    assert len(line["points"]) == 6
    assert line["change"]["noted"] is True
    assert line["floor"]["alias"] == "champion"
    listed = http.get("/v1/benchmarks").json()["benchmarks"]
    assert [one["name"] for one in listed] == ["facts"]
    health = http.get("/v1/benchmarks/facts/health", params={"limit": 1}).json()
    assert (health["models"], health["items_known"], health["listed"][0]["item_id"]) == (7, 1, "i000")
    costs = http.get("/v1/costs", params={"month": "2026-11"}).json()
    assert costs["used"] == USED.model_dump()
    assert costs["by_model"][0]["name"] == "org/model"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/trends", 422),
        ("/v1/trends?model=", 400),
        ("/v1/trends?model=a%00b", 400),
        ("/v1/trends?model=" + "m" * 201, 400),
        ("/v1/trends?model=%ED%A0%80", 200),
        ("/v1/benchmarks/none/health", 404),
        ("/v1/benchmarks/%00/health", 400),
        ("/v1/benchmarks/facts/health?limit=0", 422),
        ("/v1/costs?month=2026-13", 400),
        ("/v1/costs?month=0000-01", 200),
        ("/v1/costs?month=9999-12", 200),
        ("/trends?model=a%00b", 400),
        ("/benchmarks/none", 404),
        ("/costs?month=%3Cscript%3E", 400),
    ],
)
def test_what_is_asked_for_in_another_form_has_a_clear_status(http: httpx.Client, path: str, status: int) -> None:
    assert http.get(path).status_code == status


def test_pages_show_the_same_in_charts_with_words_and_in_tables(bench: AuditBench, http: httpx.Client) -> None:
    filled(bench)
    trend = http.get("/trends", params={"model": "org/model"}).text
    assert "the score inflation rose by" in trend
    assert 'class="limit review"' in trend
    assert 'class="shift"' in trend
    assert trend.count('scope="row"') == 6
    item = http.get(f"/benchmarks/{digest_of('facts')}").text
    assert "1 item of 4 seems to be known by 7 models" in item
    assert "seems known" in item
    costs = http.get("/costs?month=2026-11").text
    assert "No price is known of 3 trials with 300 tokens" in costs
    assert "2.50" in costs
    assert "and more" in costs
    for page in (trend, item, costs):
        assert '<svg class="plot"' in page
        assert '<title id="' in page
        assert '<desc id="' in page
        assert "<caption>" in page
    assert "org/model" in http.get("/trends").text
    assert "facts" in http.get("/benchmarks").text


def test_datasets_of_one_s_own_are_shown_with_the_day_on_which_they_are_due(
    bench: AuditBench, http: httpx.Client
) -> None:
    items = [Item(item_id=str(n), question=f"What is {n} and one?", target="1") for n in range(5)]
    bench.desk.settings.benchmarks.mkdir(parents=True, exist_ok=True)
    for name, day in (("later", date(2999, 1, 1)), ("past", date(2020, 1, 1))):
        state = begun(items[:2], items[2:], every=Every.QUARTERLY, seed=1, today=day)
        (bench.desk.settings.benchmarks / f"{name}.rotation.json").write_text(state.model_dump_json())
    page = http.get("/benchmarks").text
    assert "2999-04-01" in page
    assert page.count("overdue") == 1
    assert page.index("later") < page.index("past") < page.index("overdue")


def test_empty_pages_say_what_fills_them(http: httpx.Client) -> None:
    for path in ("/trends", "/benchmarks"):
        assert "No decided audit has figures on record yet" in http.get(path).text
    assert "0 audits" in http.get("/costs").text
    assert "has figures on record" in http.get("/trends?model=org/none").text


def test_names_from_elsewhere_are_text_and_nothing_else(bench: AuditBench, http: httpx.Client) -> None:
    filled(bench)
    decide(bench.records, a_measure("x", model_id="org/evil", suite_id="evil"), None)
    for path in PAGES:
        page = http.get(path)
        assert page.status_code == 200, path
        assert "<img" not in page.text
        assert "\x1b" not in page.text
        assert "\u202e" not in page.text


def test_a_caller_sees_what_their_own_audits_say(bench: AuditBench) -> None:
    tokens = {name: new_token() for name in ("ann", "bob")}
    filled(bench, submitter="ann")
    with serving_both(bench.desk, tokens=tokens) as (_, url):
        with client(url, token=tokens["ann"]) as ann:
            assert ann.get("/v1/trends?model=org/model").json()["series"]
            assert ann.get("/v1/costs?month=2026-11").json()["audits"] == 1
        with client(url, token=tokens["bob"]) as bob:
            assert bob.get("/v1/trends?model=org/model").json()["series"] == []
            assert bob.get("/v1/benchmarks").json() == {"benchmarks": []}
            assert bob.get("/v1/benchmarks/facts/health").status_code == 404
            assert bob.get("/v1/costs?month=2026-11").json()["audits"] == 0
            assert "org/model" not in bob.get("/trends").text
        with client(url) as nobody:
            assert nobody.get("/v1/costs").status_code == 401
            assert nobody.get("/trends", follow_redirects=False).status_code == 303
