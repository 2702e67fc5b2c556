"""What is recorded for Prometheus: the metrics' names and labels, and what moves them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from proctor.domain.decision import DecisionOutcome
from proctor.domain.messages import Reconcile, ShardAnswer
from proctor.domain.trial import Arm
from proctor.router.collectors import collectors
from proctor.runtime.messaging.tasks import app, handles
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.metrics.catalogue import METRICS
from proctor.runtime.metrics.collectors import AuditsCollector, BuildInfoCollector
from proctor.runtime.metrics.recording import Instruments, Redelivery, RegistryWrite, ShardOutcome, TrialState
from proctor.runtime.records.store import AuditState, Records
from proctor.runtime.settings import Settings
from tests.support import REPOSITORY


@pytest.fixture
def registry() -> Iterator[CollectorRegistry]:
    """A registry in which everything is recorded while the test runs."""
    fresh = CollectorRegistry()
    metrics.record_in(Instruments(fresh))
    yield fresh
    metrics.record_in(None)


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    """A sample's value; 0 where there is none."""
    return registry.get_sample_value(name, labels) or 0.0


def test_names_end_in_their_unit_or_in_total() -> None:
    for metric in METRICS:
        assert re.fullmatch("proctor_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.name.endswith("_seconds") or metric.kind != "histogram"


def test_every_metric_is_recorded_or_collected_by_the_name_it_is_listed_under(
    registry: CollectorRegistry, tmp_path: Path, valkey_url: str
) -> None:
    registry.register(BuildInfoCollector("1.0", "router"))
    Records(f"sqlite:///{tmp_path}/records.sqlite").close()
    settings = Settings(home=tmp_path, records_url=f"sqlite:///{tmp_path}/records.sqlite", ledger_url=valkey_url)
    for collector in collectors(settings):
        registry.register(collector)
    families = {(family.name, family.type, family.documentation) for family in registry.collect()}
    assert families == {(metric.name.removesuffix("_total"), metric.kind, metric.help) for metric in METRICS}


def test_the_table_in_the_documentation_lists_every_metric_with_its_kind_and_labels() -> None:
    text = (REPOSITORY / "docs" / "metrics.md").read_text("utf-8")
    rows = re.findall(r"^\| `(proctor_\w+)` \| (\w+) \| (.*?) \|", text, flags=re.MULTILINE)
    listed = [(name, kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows]
    assert listed == [(metric.name, metric.kind, metric.labels) for metric in METRICS]


def test_no_label_names_what_grows_with_use() -> None:
    labels = {label for metric in METRICS for label in metric.labels}
    assert labels == {
        "state", "stage", "arm", "backend", "outcome", "cause", "task", "version", "worker", "promise", "verdict",
        "service", "kind", "registry", "route", "method", "code", "decision", "reason", "model", "suite", "audited",
        "bound", "dataset",
    }  # fmt: skip


def test_trials_are_counted_by_state_stage_and_arm(registry: CollectorRegistry) -> None:
    metrics.trials(TrialState.PLANNED, "answer", Arm.CANONICAL, 64)
    metrics.trials(TrialState.ANSWERED, "answer", Arm.CANONICAL, 60)
    metrics.trials(TrialState.ANSWERED, "answer", Arm.PERTURBED, 5)
    labels = {"stage": "answer", "arm": "canonical"}
    assert value(registry, "proctor_trials_total", state="planned", **labels) == 64
    assert value(registry, "proctor_trials_total", state="answered", **labels) == 60
    assert value(registry, "proctor_dead_lettered_trials_total") == 0


def test_the_rounds_of_a_stage_are_one_label_value_and_an_unknown_stage_is_other(registry: CollectorRegistry) -> None:
    for stage in ("paraphrase-1", "paraphrase-2", "a/stage\nof-nobody"):
        metrics.trials(TrialState.PLANNED, stage, Arm.CANONICAL, 1)
    counted = {
        sample.labels["stage"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "proctor_trials_total"
    }
    assert counted == {"paraphrase": 2, "other": 1}


def test_dead_lettered_trials_move_the_counter_for_alerts_too(registry: CollectorRegistry) -> None:
    metrics.trials(TrialState.DEAD_LETTERED, "answer", Arm.PERTURBED, 7)
    assert value(registry, "proctor_dead_lettered_trials_total") == 7
    assert value(registry, "proctor_trials_total", state="dead_lettered", stage="answer", arm="perturbed") == 7


def test_an_alert_finds_its_counters_at_zero_before_the_first_case(registry: CollectorRegistry) -> None:
    assert registry.get_sample_value("proctor_dead_lettered_trials_total") == 0
    assert registry.get_sample_value("proctor_duplicates_suppressed_total") == 0


@pytest.mark.parametrize(
    ("service", "sample", "labels"),
    [
        ("router", "proctor_shard_redeliveries_total", {"cause": "overdue"}),
        ("scorer", "proctor_decisions_total", {"outcome": "block"}),
        ("registry", "proctor_registry_writes_total", {"outcome": "unreachable"}),
        ("registry", "proctor_messages_total", {"task": "registry.write", "outcome": "failed"}),
        ("inference", "proctor_messages_total", {"task": "inference.run_shards", "outcome": "done"}),
        ("inference", "proctor_dead_letters_total", {"cause": "invalid"}),
        ("gateway", "proctor_webhook_deliveries_total", {"registry": "mlflow", "outcome": "forged"}),
    ],
)
def test_a_service_begins_at_zero_with_what_alerts_look_at_and_says_nothing_of_the_others(
    service: str, sample: str, labels: dict[str, str]
) -> None:
    own, other = CollectorRegistry(), CollectorRegistry()
    Instruments(own).begin_at_zero(service, ["invalid"])
    Instruments(other).begin_at_zero("notifier")
    assert own.get_sample_value(sample, labels) == 0
    assert other.get_sample_value(sample, labels) is None


def test_redeliveries_and_duplicates_are_counted(registry: CollectorRegistry) -> None:
    metrics.shard_redelivered(Redelivery.OVERDUE)
    metrics.shard_redelivered(Redelivery.HANDED_BACK)
    metrics.duplicate_suppressed()
    metrics.duplicate_suppressed()
    assert value(registry, "proctor_shard_redeliveries_total", cause="overdue") == 1
    assert value(registry, "proctor_shard_redeliveries_total", cause="handed_back") == 1
    assert value(registry, "proctor_duplicates_suppressed_total") == 2


def test_what_an_answered_shard_read_and_wrote_is_counted_by_stage(registry: CollectorRegistry) -> None:
    metrics.tokens("paraphrase-2", read=70, written=30)
    metrics.tokens("paraphrase-1", read=7, written=3)
    assert value(registry, "proctor_tokens_total", stage="paraphrase", kind="input") == 77
    assert value(registry, "proctor_tokens_total", stage="paraphrase", kind="output") == 33


def test_decisions_and_writes_to_the_registry_are_counted_by_outcome(registry: CollectorRegistry) -> None:
    metrics.decided(DecisionOutcome.BLOCK)
    metrics.registry_write(RegistryWrite.REFUSED)
    assert value(registry, "proctor_decisions_total", outcome="block") == 1
    assert value(registry, "proctor_registry_writes_total", outcome="refused") == 1


def test_a_request_is_counted_by_the_class_of_its_answer_and_a_made_up_method_is_other(
    registry: CollectorRegistry,
) -> None:
    metrics.http_request("/v1/audits", "GET", 204, 0.1)
    metrics.http_request("/v1/audits", 'GET"}evil', 405, 0.1)
    assert value(registry, "proctor_http_requests_total", route="/v1/audits", method="GET", code="2xx") == 1
    assert value(registry, "proctor_http_requests_total", route="/v1/audits", method="other", code="4xx") == 1


def test_an_admission_review_is_counted_by_words_of_its_own(registry: CollectorRegistry) -> None:
    metrics.admission_review(Redelivery.LOST, RegistryWrite.REFUSED)
    assert value(registry, "proctor_admission_reviews_total", decision="lost", reason="refused") == 1


def test_shards_that_were_split_and_trials_that_were_graded_ahead_are_counted(registry: CollectorRegistry) -> None:
    metrics.shard_split()
    metrics.trials_graded_ahead(64)
    metrics.trials_graded_ahead(7)
    assert value(registry, "proctor_shards_split_total") == 1
    assert value(registry, "proctor_trials_graded_ahead_total") == 71


def test_the_last_count_of_endpoints_that_are_away_stands(registry: CollectorRegistry) -> None:
    metrics.pools_away(3)
    metrics.pools_away(1)
    assert value(registry, "proctor_pools_away") == 1


def test_a_pack_is_in_flight_while_it_lasts_whatever_comes_of_it(registry: CollectorRegistry) -> None:
    def fail() -> None:
        with metrics.pack("triton"):
            assert value(registry, "proctor_packs_in_flight", backend="triton") == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert registry.get_sample_value("proctor_packs_in_flight", {"backend": "triton"}) == 0


def test_threads_that_record_at_the_same_time_lose_no_count(registry: CollectorRegistry) -> None:
    def record(_: int) -> None:
        with metrics.pack("triton"), metrics.shard_attempt("triton", "answer"):
            metrics.trials_graded_ahead(1)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(record, range(400)))
    assert value(registry, "proctor_trials_graded_ahead_total") == 400
    assert registry.get_sample_value("proctor_packs_in_flight", {"backend": "triton"}) == 0
    assert (
        value(registry, "proctor_shard_duration_seconds_count", backend="triton", stage="answer", outcome="failed")
        == 400
    )


def test_an_attempt_at_a_shard_is_in_flight_while_it_lasts_and_is_timed_by_its_outcome(
    registry: CollectorRegistry,
) -> None:
    with metrics.shard_attempt("triton", "answer") as attempt:
        assert value(registry, "proctor_shards_in_flight", backend="triton") == 1
        attempt.outcome = ShardOutcome.ANSWERED
    assert value(registry, "proctor_shards_in_flight", backend="triton") == 0
    name = "proctor_shard_duration_seconds_count"
    assert value(registry, name, backend="triton", stage="answer", outcome="answered") == 1


def test_an_attempt_that_raises_has_failed_and_is_not_in_flight_any_more(registry: CollectorRegistry) -> None:
    with pytest.raises(ZeroDivisionError), metrics.shard_attempt("openai", "answer"):
        raise ZeroDivisionError
    assert value(registry, "proctor_shards_in_flight", backend="openai") == 0
    assert (
        value(registry, "proctor_shard_duration_seconds_count", backend="openai", stage="answer", outcome="failed") == 1
    )


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({}, "answered"),
        ({"error": "unreachable"}, "failed"),
        ({"error": "another model", "retryable": False}, "refused"),
        ({"error": "the worker left", "handed_back": True}, "handed_back"),
    ],
)
def test_a_shards_outcome_is_what_the_router_is_told(answer: dict[str, Any], outcome: str) -> None:
    assert ShardOutcome.of(ShardAnswer(shard_id="s", attempt=1, **answer)) == outcome


class Ping(Reconcile):
    """A message of these tests."""

    task = "tests.ping"


@pytest.fixture
def pings() -> Iterator[list[Exception]]:
    """A task of Ping, which raises what stands in this list."""
    raises: list[Exception] = []

    @handles(Ping)
    def ping(message: Ping) -> None:
        if raises:
            raise raises.pop()

    yield raises
    app.tasks.unregister(Ping.task)


def test_a_task_that_ends_is_counted_as_done_and_one_that_raises_as_failed(
    registry: CollectorRegistry, pings: list[Exception]
) -> None:
    app.tasks[Ping.task](message={})
    pings.append(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        app.tasks[Ping.task](message={})
    assert value(registry, "proctor_messages_total", task="tests.ping", outcome="done") == 1
    assert value(registry, "proctor_messages_total", task="tests.ping", outcome="failed") == 1
    assert value(registry, "proctor_message_duration_seconds_count", task="tests.ping") == 2
    assert value(registry, "proctor_messages_redelivered_total", task="tests.ping") == 0


@pytest.mark.usefixtures("pings")
def test_a_message_that_is_not_valid_is_counted_as_failed(registry: CollectorRegistry) -> None:
    with pytest.raises(ValueError, match="dictionary"):
        app.tasks[Ping.task](message=["audit"])
    assert value(registry, "proctor_messages_total", task="tests.ping", outcome="failed") == 1


def test_nothing_is_recorded_where_metrics_are_off(registry: CollectorRegistry) -> None:
    before = generate_latest(registry)
    metrics.record_in(None)
    assert not metrics.recording()
    metrics.trials(TrialState.PLANNED, "answer", Arm.CANONICAL, 1)
    metrics.shard_redelivered(Redelivery.FAILED)
    metrics.duplicate_suppressed()
    metrics.shard_split()
    metrics.trials_graded_ahead(1)
    metrics.pools_away(1)
    metrics.tokens("answer", read=1, written=1)
    metrics.decided(DecisionOutcome.BLOCK)
    metrics.registry_write(RegistryWrite.WRITTEN)
    metrics.http_request("/", "GET", 200, 0.1)
    metrics.grpc_request("other", "OK", 0.1)
    with (
        metrics.pack("triton"),
        metrics.shard_attempt("triton", "answer"),
        metrics.message_handling("inference.run_shards", redelivered=True),
    ):
        pass
    assert generate_latest(registry) == before


def test_the_exposition_can_be_parsed_back(registry: CollectorRegistry) -> None:
    metrics.trials(TrialState.PLANNED, "answer", Arm.CANONICAL, 3)
    with metrics.message_handling("router.start", redelivered=True):
        pass
    families = {family.name: family for family in text_string_to_metric_families(generate_latest(registry).decode())}
    assert families["proctor_trials"].samples[0].value == 3
    assert families["proctor_message_duration_seconds"].type == "histogram"


def test_audits_are_counted_by_state_with_a_zero_where_there_is_none(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/records.sqlite"
    records, registry = Records(url), CollectorRegistry()
    registry.register(AuditsCollector(url))
    assert value(registry, "proctor_audits", state="created") == 0
    first = records.create_audit("a", "suite", {}).audit_id
    records.create_audit("a", "suite", {})
    records.advance(first, AuditState.FAILED, expected=[AuditState.CREATED])
    records.close()
    counted = {sample.labels["state"]: sample.value for family in registry.collect() for sample in family.samples}
    assert counted == {state.value: float(state in ("created", "failed")) for state in AuditState}


def test_a_record_store_that_does_not_answer_costs_the_audits_and_not_the_scrape(
    tmp_path: Path, registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "records.sqlite").write_bytes(b"no database" * 100)
    registry.register(AuditsCollector(f"sqlite:///{tmp_path}/records.sqlite"))
    names = {family.name for family in registry.collect()}
    assert "proctor_messages" in names
    assert "proctor_audits" not in names
    assert "audits cannot be counted" in caplog.text
