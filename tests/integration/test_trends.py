"""Trends, floors, benchmark health and costs, from what a real store has on record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from proctor.cli.main import main
from proctor.domain.channel_results import Verdict
from proctor.domain.errors import BadInputError, StoreError
from proctor.domain.measure import ItemCounts
from proctor.domain.usage import Usage
from proctor.runtime.records.baselines import Baseline
from proctor.runtime.records.engine import open_engine
from proctor.runtime.records.store import Records
from proctor.runtime.records.tables import AUDIT_MEASURES, ITEM_COUNTS
from proctor.studies.costs import read_costs
from proctor.studies.item_health import BenchmarkHealths
from proctor.studies.trends import MAX_VERSIONS, read_trends
from tests.measure_samples import a_measure, counts, decide, digest_of

HOSTILE = "<script>x</script>\x1b[31m\u202e"


@pytest.fixture
def records(records_url: str) -> Iterator[Records]:
    with closing(Records(records_url)) as store:
        yield store


def decided_at(records_url: str, audit_id: str, when: str) -> None:
    """Have an audit been decided at another time."""
    engine = open_engine(records_url)
    with engine.begin() as connection:
        of_it = AUDIT_MEASURES.update().where(AUDIT_MEASURES.c.audit_id == audit_id)
        connection.execute(of_it.values(decided_at=when))
    engine.dispose()


@pytest.fixture
def at(records_url: str) -> Callable[[str, int], None]:
    """Have an audit been decided on a day."""
    return lambda audit_id, day: decided_at(records_url, audit_id, f"2026-11-{day:02}T00:00:00+00:00")


def floor(audit_id: str, **other: Any) -> Baseline:
    values = {
        "audit_id": audit_id,
        "model_id": "org/model",
        "suite_id": "suite",
        "registered_name": "org~model",
        "registered_version": "1",
        "alias": "champion",
        "submitter": "local",
    }
    return Baseline(**{**values, **other})


def test_versions_stand_in_the_order_of_their_first_audits_with_the_figures_of_their_newest(
    records: Records, at: Callable[[str, int], None]
) -> None:
    first = decide(records, a_measure("v1", 1.0))
    at(first, 1)
    at(decide(records, a_measure("v2", 2.0)), 2)
    again = decide(records, a_measure("v1", 5.0))
    at(again, 3)
    records.register(again, "7")
    (line,) = read_trends(records, "org/model").series
    assert [point.inflation.value for point in line.points] == [5.0, 2.0]
    assert line.points[0].label == "7"
    assert line.points[1].label == digest_of("v2").removeprefix("sha256:")[:12]
    assert "from 5 versions on" in line.note


def test_audits_of_another_protocol_or_suite_are_lines_of_their_own(records: Records) -> None:
    decide(records, a_measure("v1"))
    decide(records, a_measure("v2"))
    decide(records, a_measure("v3", protocol_digest=digest_of("other")))
    decide(records, a_measure("v4", suite_id="other"))
    found = read_trends(records, "org/model")
    assert sorted(len(one.points) for one in found.series) == [1, 1, 2]
    (other,) = read_trends(records, "org/model", suite_id="other").series
    assert other.suite_id == "other"
    assert read_trends(records, "org/none").series == ()


def test_a_change_of_level_is_noted_from_five_versions_on_and_only_where_there_is_one(
    records: Records, at: Callable[[str, int], None]
) -> None:
    for day, points in enumerate((0.1, -0.2, 0.1, 5.0, 5.2, 4.9), start=1):
        at(decide(records, a_measure(f"v{day}", points)), day)
        at(decide(records, a_measure(f"w{day}", points / 50, suite_id="steady")), day)
    found = {one.suite_id: one for one in read_trends(records, "org/model").series}
    change = found["suite"].change
    assert change is not None
    assert change.noted
    assert (change.before, change.after) == tuple(point.label for point in found["suite"].points[2:4])
    assert change.shift.value == pytest.approx(5.03, abs=0.01)
    assert change.holm_p == pytest.approx(min(1.0, 2 * change.p_value))
    assert "rose by 5.0 points" in found["suite"].note
    steady = found["steady"].change
    assert steady is not None
    assert not steady.noted
    assert "No change of level" in found["steady"].note


def test_what_versions_err_in_together_is_taken_from_their_items(records: Records) -> None:
    # Every version has the same luck with the items, so that a small change of all of them is none of chance.
    rng = np.random.default_rng(5)
    canonical, right = rng.integers(0, 2, 300), rng.integers(0, 4, 300)
    for number in range(8):
        shifted = right.copy()
        if number >= 4:
            shifted[:6] = np.maximum(0, shifted[:6] - 1)
        items = counts(canonical.tolist(), shifted.tolist())
        points = 100 * float((canonical - shifted / 3).mean())
        decide(records, a_measure(f"v{number}", points, half=5.0), items)
    (line,) = read_trends(records, "org/model").series
    assert line.change is not None
    assert line.change.shared_items
    assert line.change.noted


def test_versions_with_invalid_evidence_are_shown_and_not_tested(records: Records) -> None:
    for number in range(5):
        decide(records, a_measure(f"v{number}", verdict=Verdict.INVALID if number == 2 else Verdict.CLEAN))
    (line,) = read_trends(records, "org/model").series
    assert len(line.points) == 5
    assert line.change is None
    assert "there are 4" in line.note


def test_the_floor_is_the_newest_decided_baseline_with_the_line_s_protocol(records: Records) -> None:
    old = decide(records, a_measure("v1", 3.0))
    records.baselines.add(floor(old))
    (line,) = read_trends(records, "org/model").series
    assert line.floor is not None
    assert line.floor.line == pytest.approx(0.04)
    decide(records, a_measure("v2", 3.5))
    decide(records, a_measure("v3", 4.5))
    undecided = records.create_audit("subject", "{}", {}).audit_id
    records.baselines.add(floor(undecided))
    records.baselines.add(floor(decide(records, a_measure("v4", protocol_digest=digest_of("other")))))
    (first, second) = sorted(read_trends(records, "org/model").series, key=lambda one: -len(one.points))
    assert first.floor is not None
    assert first.floor.audit_id == old
    assert [point.above_floor for point in first.points] == [False, False, True]
    assert second.floor is not None
    assert second.floor.audit_id != old


def test_a_submitter_sees_lines_of_their_own_audits_alone(records: Records) -> None:
    decide(records, a_measure("v1"), submitter="ann")
    records.baselines.add(floor(decide(records, a_measure("v2"), submitter="bob"), submitter="bob"))
    (line,) = read_trends(records, "org/model", submitter="ann").series
    assert [point.model_digest for point in line.points] == [digest_of("v1")]
    assert line.floor is None
    assert [one.name for one in records.measures.models(limit=5, submitter="ann")] == ["org/model"]
    assert records.measures.models(limit=5, submitter="eve") == []
    assert records.measures.benchmarks(limit=5, submitter="eve") == []


def test_no_more_versions_are_shown_than_a_page_holds(records: Records, at: Callable[[str, int], None]) -> None:
    for number in range(MAX_VERSIONS + 3):
        at(decide(records, a_measure(f"v{number}")), 1 + number // 2)
    (line,) = read_trends(records, "org/model").series
    assert (len(line.points), line.versions_not_shown) == (MAX_VERSIONS, 3)


# --- benchmark health


def known(records: Records, models: int, **other: Any) -> None:
    """Models of which each knows i000 in its published wording alone."""
    for number in range(models):
        measure = a_measure(f"w{number}", model_id=f"org/model-{number}", **other)
        decide(records, measure, counts((1, 1, 0, number % 2), (0, 3, 0, 1)))


def test_an_item_that_every_model_knows_in_one_wording_is_first(records: Records) -> None:
    known(records, 6)
    healths = BenchmarkHealths(records)
    found = healths.read(healths.named("facts"), limit=2)
    assert (found.models, found.items, found.items_tested, found.items_known, found.enough) == (6, 4, 2, 1, True)
    first = found.listed[0]
    assert (first.item_id, first.models, first.canonical_right, first.reworded_right) == ("i000", 6, 6, 0)
    assert first.p_value == pytest.approx(0.25**6)
    assert first.known
    assert len(found.listed) == 2


def test_versions_of_one_model_are_one_witness_and_invalid_evidence_is_none(records: Records) -> None:
    for number in range(6):
        decide(records, a_measure(f"v{number}"), counts((1,), (0,)))
    decide(records, a_measure("bad", model_id="org/bad", verdict=Verdict.INVALID), counts((1,), (0,)))
    healths = BenchmarkHealths(records)
    found = healths.read(healths.named(digest_of("facts")), limit=5)
    assert (found.models, found.weights, found.enough) == (1, 6, False)
    assert found.listed[0].p_value is None
    assert not found.listed[0].known


def test_models_that_were_asked_other_items_of_the_benchmark_are_joined_by_id(records: Records) -> None:
    known(records, 5)
    other = ItemCounts(("i000", "z"), (0, 1), (1, 0), (2, 2))
    decide(records, a_measure("w9", model_id="org/nine"), other)
    healths = BenchmarkHealths(records)
    found = healths.read(healths.named("facts"), limit=10)
    by_id = {item.item_id: item for item in found.listed}
    assert (by_id["i000"].models, by_id["i000"].canonical_right, by_id["i000"].reworded_total) == (6, 5, 17)
    assert by_id["z"].models == 1


def test_a_name_that_stands_for_several_benchmarks_is_refused_with_their_digests(records: Records) -> None:
    known(records, 1)
    known(records, 1, benchmark_digest=digest_of("changed"), content_digest=digest_of("changed.jsonl"))
    healths = BenchmarkHealths(records)
    with pytest.raises(BadInputError, match=digest_of("changed")):
        healths.named("facts")
    assert healths.named(digest_of("changed.jsonl")).digest == digest_of("changed")
    with pytest.raises(BadInputError, match="no audit on record asked"):
        healths.named("none")


def test_items_that_were_damaged_in_the_store_are_said_to_be_so(records: Records, records_url: str) -> None:
    known(records, 1)
    engine = open_engine(records_url)
    with engine.begin() as connection:
        connection.execute(ITEM_COUNTS.update().values(counts=b"nonsense"))
    engine.dispose()
    healths = BenchmarkHealths(records)
    with pytest.raises(StoreError, match="cannot be read"):
        healths.read(healths.named("facts"), limit=1)


def test_the_ids_of_the_same_items_are_stored_once(records: Records, records_url: str) -> None:
    known(records, 4)
    engine = open_engine(records_url)
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM item_lists")) == 1
        assert connection.scalar(sa.text("SELECT count(*) FROM item_counts")) == 4
    engine.dispose()


# --- costs

PRICED = Usage(trials=10, input_tokens=100, output_tokens=50, cost=1.5)
UNPRICED = Usage(
    trials=4, input_tokens=40, output_tokens=20, unpriced_trials=4, unpriced_input_tokens=40, unpriced_output_tokens=20
)


def note(records: Records, audit_id: str, month: str, used: Usage, **other: str) -> None:
    who = {"submitter": "ann", "suite_id": "suite", "model_id": "org/model", **other}
    records.costs.note(audit_id, month, used, **who)


def test_costs_are_added_up_by_suite_model_and_submitter_and_what_has_no_price_apart(records: Records) -> None:
    note(records, "a-1", "2026-11", PRICED)
    note(records, "b-1", "2026-11", UNPRICED, suite_id="other", submitter="bob")
    note(records, "c-1", "2026-10", PRICED)
    found = read_costs(records, "2026-11")
    assert (found.audits, found.used) == (2, Usage.total([PRICED, UNPRICED]))
    assert not found.used.priced
    assert [(one.name, one.used) for one in found.by_suite] == [("suite", PRICED), ("other", UNPRICED)]
    assert [one.name for one in found.by_submitter] == ["ann", "bob"]
    assert [(one.month, one.audits) for one in found.months] == [("2026-10", 1), ("2026-11", 2)]
    of_bob = read_costs(records, "2026-11", submitter="bob")
    assert (of_bob.audits, of_bob.used) == (1, UNPRICED)
    assert read_costs(records, "2025-01").audits == 0


def test_an_audit_that_goes_on_in_another_month_costs_there_what_it_used_since(records: Records) -> None:
    note(records, "a-1", "2026-10", PRICED)
    whole = Usage.total([PRICED, PRICED, UNPRICED])
    note(records, "a-1", "2026-11", whole)
    note(records, "a-1", "2026-11", whole)
    assert read_costs(records, "2026-10").used == PRICED
    assert read_costs(records, "2026-11").used == Usage.total([PRICED, UNPRICED])


def test_audits_whose_use_is_not_on_record_are_counted(records: Records) -> None:
    audit_id = decide(records, a_measure())
    month = datetime.now(UTC).strftime("%Y-%m")
    assert read_costs(records, month).audits_without_record == 1
    note(records, audit_id, month, PRICED)
    assert read_costs(records, month).audits_without_record == 0


@pytest.mark.parametrize("month", ["2026", "2026-13", "2026-1", "november", "2026-11\x00", "٢٠٢٦-11"])
def test_what_is_no_month_is_refused(records: Records, month: str) -> None:
    with pytest.raises(BadInputError, match="is no month"):
        read_costs(records, month)


# --- commands


@pytest.fixture
def given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Give a command in a home; what it prints."""

    def run(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        assert main([*arguments, "--home", str(tmp_path)]) == code
        said = capsys.readouterr()
        return said.out if code == 0 else said.err

    return run


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Records]:
    with closing(Records(f"sqlite:///{tmp_path / 'records.sqlite'}")) as store:
        yield store


def test_trends_are_printed_and_drawn_and_nothing_in_a_name_reaches_the_terminal(
    home: Records, given: Callable[..., str], tmp_path: Path
) -> None:
    for number in range(5):
        audit_id = decide(home, a_measure(f"v{number}", float(number)))
        home.register(audit_id, HOSTILE)
    home.baselines.add(floor(audit_id, registered_name=HOSTILE))
    said = given("trends", "org/model", "--plot", str(tmp_path / "trend.svg"))
    assert "floor: " in said
    assert "\x1b" not in said
    assert "\u202e" not in said
    drawn = (tmp_path / "trend.svg").read_text()
    assert "<script" not in drawn
    assert "<title>" in drawn
    found = json.loads(given("trends", "org/model", "--format", "json"))
    assert len(found["series"][0]["points"]) == 5
    assert "figures on record" in given("trends", "org/none")


def test_a_home_without_a_store_is_named(given: Callable[..., str]) -> None:
    for arguments in (["trends", "m"], ["costs"], ["benchmarks", "list"], ["baseline", "show"], ["records", "measure"]):
        assert "there is no record store in" in given(*arguments, code=2)


def test_benchmarks_and_costs_are_printed(home: Records, given: Callable[..., str]) -> None:
    known(home, 5)
    note(home, "a-1", "2026-11", Usage.total([PRICED, UNPRICED]))
    assert "facts" in given("benchmarks", "list")
    assert "1 items seem to be known" in given("benchmarks", "health", "facts")
    assert json.loads(given("benchmarks", "health", "facts", "--format", "json"))["items_known"] == 1
    said = given("costs", "--month", "2026-11")
    assert "1.50 and more" in said
    assert "No price is known of 4 trials with 60 tokens" in said
    assert json.loads(given("costs", "--month", "2026-11", "--format", "json"))["used"]["cost"] == 1.5


def test_floors_are_listed(home: Records, given: Callable[..., str]) -> None:
    assert "No floor is on record" in given("baseline", "show")
    home.baselines.add(floor(decide(home, a_measure())))
    home.baselines.add(floor(home.create_audit("s", "{}", {}).audit_id))
    said = given("baseline", "show", "org/model")
    assert "not decided" in said
    assert "0.010" in said
    listed = json.loads(given("baseline", "show", "--format", "json"))["baselines"]
    assert [one["score"] is None for one in listed] == [True, False]
    assert "names no version" in given("baseline", "nonsense", "--suite", "suite.json", code=2)
