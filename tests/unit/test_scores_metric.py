"""The one metric that names models: how many, how their names are written, and which version is the one before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from proctor.domain.channel_results import Verdict
from proctor.domain.measure import Bounded
from proctor.runtime.metrics.scores import MAX_NAME, ScoresCollector, label_of
from proctor.runtime.records.store import Records
from tests.measure_samples import a_measure, decide, digest_of

UNDEFINED = Bounded(value=None, low=None, high=None)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/records.sqlite"


@pytest.fixture
def records(url: str) -> Iterator[Records]:
    records = Records(url)
    yield records
    records.close()


def told(url: str, most: int = 50) -> dict[tuple[str, ...], float]:
    """What is scraped: (model, suite, audited, bound) → value."""
    registry = CollectorRegistry()
    registry.register(ScoresCollector(url, most))
    page = generate_latest(registry).decode()
    return {
        tuple(sample.labels[name] for name in ("model", "suite", "audited", "bound")): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def test_the_newest_version_is_told_with_its_interval_and_the_one_before(url: str, records: Records) -> None:
    decide(records, a_measure("v1", 1.0))
    decide(records, a_measure("v2", 5.0, half=2.0))
    assert told(url) == pytest.approx(
        {
            ("org/model", "suite", "newest", "estimate"): 0.05,
            ("org/model", "suite", "newest", "low"): 0.03,
            ("org/model", "suite", "newest", "high"): 0.07,
            ("org/model", "suite", "previous", "estimate"): 0.01,
            ("org/model", "suite", "previous", "low"): 0.0,
            ("org/model", "suite", "previous", "high"): 0.02,
        }
    )


def test_the_same_weights_audited_again_are_no_version_before(url: str, records: Records) -> None:
    decide(records, a_measure("v1", 1.0))
    decide(records, a_measure("v2", 3.0))
    decide(records, a_measure("v2", 4.0))
    found = told(url)
    assert found["org/model", "suite", "newest", "estimate"] == pytest.approx(0.04)
    assert found["org/model", "suite", "previous", "estimate"] == pytest.approx(0.01)


def test_a_version_that_was_measured_otherwise_is_not_compared_with(url: str, records: Records) -> None:
    decide(records, a_measure("v1", 1.0))
    decide(records, a_measure("v2", 5.0, protocol_digest=digest_of("another")))
    assert {audited for _, _, audited, _ in told(url)} == {"newest"}


@pytest.mark.parametrize("measure", [{"verdict": Verdict.INVALID}, {"score": UNDEFINED}], ids=["invalid", "undefined"])
def test_what_has_no_figure_is_left_out(url: str, records: Records, measure: dict[str, Any]) -> None:
    decide(records, a_measure("v1", 1.0))
    decide(records, a_measure("v2", 5.0, **measure))
    assert told(url)["org/model", "suite", "newest", "estimate"] == pytest.approx(0.01)


def test_there_are_as_many_models_as_the_setting_says_the_newest_first(url: str, records: Records) -> None:
    for number in range(5):
        decide(records, a_measure("v1", model_id=f"m{number}"))
    assert {model for model, *_ in told(url, most=2)} == {"m4", "m3"}


def test_with_none_no_model_is_named_and_the_store_not_asked(tmp_path: Path) -> None:
    assert told(f"sqlite:///{tmp_path}/no/folder/records.sqlite", most=0) == {}


def test_a_record_store_that_does_not_answer_costs_the_scores_and_not_the_scrape(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert told(f"sqlite:///{tmp_path}/no/folder/records.sqlite") == {}
    assert "scores cannot be read" in caplog.text


@pytest.mark.parametrize("name", ['a"} 1\nproctor_evil{x="', "a\\", "\u202egnp.exe", "\x1b[2J", "\ud800"], ids=range(5))
def test_a_hostile_name_stays_one_label_of_one_line(url: str, records: Records, name: str) -> None:
    if name != "\ud800":
        decide(records, a_measure(model_id=name))
        found = told(url)
        assert {model for model, *_ in found} == {label_of(name)}
        assert len(found) == 3
    assert label_of(name).isprintable()
    label_of(name).encode("utf-8")


def test_long_names_are_cut_and_stay_apart() -> None:
    first, second = label_of("m" * 200 + "1"), label_of("m" * 200 + "2")
    assert len(first) == len(second) == MAX_NAME
    assert first != second
