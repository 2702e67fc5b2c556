"""The metrics of real worker processes on a real broker, scraped over HTTP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent

import httpx
import pytest
from kombu import Connection
from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from proctor.domain.messages import SERVICES, Reconcile, ScoreAudit
from proctor.localstack.services import StackSpec, local_services, metrics_token_file
from proctor.localstack.stack import LocalStack
from proctor.runtime.metrics.catalogue import METRICS
from proctor.runtime.metrics.collectors import ProcessesCollector
from proctor.runtime.processes import descendants
from proctor.runtime.records.store import Records
from tests.support import REPOSITORY, free_port, wait_until
from tests.worker_processes import HoldingModel, Home, flushed, holding_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts on Linux' /proc")

BROKER_DATABASE = 11


@pytest.fixture
def model() -> Iterator[HoldingModel]:
    with holding_model() as model:
        yield model


class MeasuredHome(Home):
    """A home whose worker serves metrics."""

    def __init__(self, folder: Path, broker_url: str) -> None:
        super().__init__(folder, broker_url)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/metrics"
        self.headers: dict[str, str] = {}

    def command(self, service: str, *options: str) -> list[str]:
        return super().command(service, "--metrics-port", str(self.port), *options)

    def scrape(self) -> list[Family]:
        response = httpx.get(self.url, headers=self.headers)
        assert response.status_code == 200
        return list(text_string_to_metric_families(response.text))

    def value(self, sample: str, **labels: str) -> float:
        """The sum of the samples of this name that have these labels."""
        return sum(
            found.value
            for family in self.scrape()
            for found in family.samples
            if found.name == sample and labels.items() <= found.labels.items()
        )

    def counts(self, expected: float, sample: str, **labels: str) -> None:
        wait_until(lambda: self.value(sample, **labels) == expected, what=f"{sample} {labels} of {expected}")


@pytest.fixture
def home(tmp_path: Path, valkey_url: str) -> Iterator[MeasuredHome]:
    with flushed(f"{valkey_url}/{BROKER_DATABASE}") as broker_url:
        yield MeasuredHome(tmp_path, broker_url)


def all_replaced(worker: int, former: set[int]) -> Callable[[], bool]:
    return lambda: len(descendants(worker) - former) >= len(former) and not descendants(worker) & former


def test_what_the_threads_of_a_worker_count_adds_up_in_one_scrape(home: MeasuredHome, model: HoldingModel) -> None:
    left = home.folder / "run" / "metrics" / f"inference-{home.port}" / "counter_1.db"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"of a worker that was killed")
    with home.worker("inference", "--concurrency", "2"):
        home.send_shards(model.url, "s1", "s2")
        home.send_shards(model.url, "s3")
        wait_until(lambda: model.held == 3, what="two messages at a time")
        home.counts(3, "proctor_shards_in_flight", backend="openai")
        home.counts(2, "proctor_packs_in_flight", backend="openai")
        model.release()
        home.counts(2, "proctor_messages_total", task="inference.run_shards", outcome="done")
        assert home.value("proctor_shard_duration_seconds_count", backend="openai", outcome="answered") == 3
        assert home.value("proctor_shard_duration_seconds_bucket", le="+Inf") == 3
        assert home.value("proctor_shards_in_flight") == 0
        assert home.value("proctor_packs_in_flight") == 0
    assert not left.parent.exists()


def test_a_killed_child_leaves_its_counts_and_what_the_next_one_counts_is_added(home: MeasuredHome) -> None:
    unknown = ScoreAudit(audit_id="a1", manifest="sha256:" + "0" * 64)
    home.send(unknown)
    with home.worker("scorer", "--concurrency", "2") as worker:
        home.counts(1, "proctor_messages_total", task="scorer.score")
        former = descendants(worker.pid)
        for child in former:
            os.kill(child, signal.SIGKILL)
        wait_until(all_replaced(worker.pid, former), what="new children")
        assert home.value("proctor_messages_total", task="scorer.score") == 1
        home.send(unknown)
        home.counts(2, "proctor_messages_total", task="scorer.score")


def test_what_a_killed_process_had_in_flight_is_not_in_flight_any_more(tmp_path: Path) -> None:
    program = """
        import os
        from prometheus_client import CollectorRegistry
        from proctor.runtime.metrics import recording as metrics
        metrics.record_in(metrics.Instruments(CollectorRegistry()))
        metrics.pack("triton").__enter__()
        metrics.trials_graded_ahead(2)
        os._exit(9)
    """
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": str(REPOSITORY / "services")}
    subprocess.run([sys.executable, "-c", dedent(program)], env=environment, timeout=30)
    families = {family.name: family.samples for family in ProcessesCollector(tmp_path).collect()}
    assert families["proctor_trials_graded_ahead"][0].value == 2
    assert not families.get("proctor_packs_in_flight")


def test_a_router_serves_the_audits_on_record_and_counts_what_the_broker_redelivers(home: MeasuredHome) -> None:
    records = Records(home.settings.records_url)
    records.create_audit("a-subject", "a-suite", {})
    records.close()
    home.send(Reconcile())
    with Connection(home.broker_url) as connection, connection.SimpleQueue("router") as queue:
        queue.get(timeout=5).requeue()
    with home.worker("router"):
        home.counts(1, "proctor_messages_redelivered_total", task="router.reconcile")
        assert home.value("proctor_audits", state="created") == 1
        assert home.value("proctor_audits") == 1
        assert home.value("proctor_build_info", worker="router") == 1
        assert home.value("proctor_dead_lettered_trials_total") == 0
        known = {metric.name.removesuffix("_total") for metric in METRICS}
        assert {family.name for family in home.scrape()} <= known


def test_a_port_that_is_taken_is_refused_in_one_line_before_the_worker_starts(home: MeasuredHome) -> None:
    with ThreadingHTTPServer(("127.0.0.1", home.port), BaseHTTPRequestHandler):
        done = subprocess.run(home.command("scorer"), env=home.environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"proctor: error: metrics cannot be served on 127.0.0.1:{home.port}: ")
    assert done.stderr.count("\n") == 1
    assert not (home.folder / "run" / "metrics").exists()


def test_a_worker_without_a_port_serves_nothing_and_loads_no_prometheus(home: MeasuredHome) -> None:
    code = "import sys, proctor.cli.worker, proctor.scorer.tasks; sys.exit('prometheus_client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=home.environment, timeout=30)
    assert done.returncode == 0


def test_a_stack_shows_the_port_on_which_a_worker_serves_its_metrics(home: MeasuredHome) -> None:
    spec = StackSpec(mlflow=False, triton=False, workers=("scorer",), metrics=True)
    left = home.folder / "run" / "stack-metrics" / "scorer-1" / "counter_1.db"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"of a stack that was killed")
    with LocalStack(home.folder, spec, home.settings) as stack:
        stack.start()
        port = next(row.ports["metrics"] for row in stack.status() if row.name == "worker-scorer")
        home.url = f"http://127.0.0.1:{port}/metrics"
        assert httpx.get(home.url).status_code == 401
        home.headers = {"Authorization": f"Bearer {metrics_token_file(home.folder).read_text()}"}
        assert home.value("proctor_build_info", worker="scorer") == 1
        assert not left.parent.exists()


def test_each_worker_of_a_stack_gets_a_port_of_its_own(home: MeasuredHome) -> None:
    services = local_services(home.settings, StackSpec(mlflow=False, triton=False, metrics=True)).services
    ports = [port for service in services for port in service.ports.values()]
    assert len(ports) == len(set(ports)) == 1 + len(SERVICES)


def test_a_stack_that_serves_no_metrics_keeps_a_port_in_the_environment_from_its_workers(home: MeasuredHome) -> None:
    services = local_services(home.settings, StackSpec(mlflow=False, triton=False)).services
    workers = [service for service in services if service.name.startswith("worker-")]
    assert {service.env["PROCTOR_METRICS_PORT"] for service in workers} == {""}
    assert [dict(service.ports) for service in workers] == [{}] * len(workers)
