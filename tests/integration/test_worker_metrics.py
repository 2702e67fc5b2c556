"""The metrics of real worker processes on a real broker, scraped over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from celery import Celery
from kombu import Connection
from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from proctor.domain.endpoint import EndpointSpec
from proctor.domain.messages import SERVICES, Message, Reconcile, RunShard
from proctor.domain.trial import Arm, Decoding, Shard, Trial
from proctor.runtime.artifacts import LocalArtifacts, put_model
from proctor.runtime.local_services import StackSpec, local_services
from proctor.runtime.metrics import METRICS
from proctor.runtime.processes import descendants
from proctor.runtime.records import Records
from proctor.runtime.settings import Settings
from proctor.runtime.stack import LocalStack
from tests.support import REPOSITORY, free_port, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts on Linux' /proc")

BROKER_DATABASE = 11


class HoldingModel:
    """An OpenAI-compatible server that answers nobody before `release`."""

    def __init__(self) -> None:
        self.held = 0
        self._released = threading.Event()
        self._lock = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                with model._lock:
                    model.held += 1
                model._released.wait()
                choice = {"index": 0, "text": "4", "finish_reason": "stop"}
                body = json.dumps({"model": "m", "choices": [choice]}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """Whoever asked may have been killed."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def release(self) -> None:
        self._released.set()


@pytest.fixture
def model() -> Iterator[HoldingModel]:
    holding = HoldingModel()
    thread = threading.Thread(target=holding.server.serve_forever)
    thread.start()
    yield holding
    holding.release()
    holding.server.shutdown()
    holding.server.server_close()
    thread.join()


class Home:
    """A home folder, its broker, and the workers that run on them."""

    def __init__(self, folder: Path, valkey_url: str) -> None:
        self.folder = folder
        self.broker_url = f"{valkey_url}/{BROKER_DATABASE}"
        self.settings = Settings.for_home(folder)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/metrics"

    def command(self, service: str, *options: str) -> list[str]:
        program = [sys.executable, "-P", "-m", "proctor", "worker", service]
        return [*program, "--metrics-port", str(self.port), *options]

    @property
    def environment(self) -> dict[str, str]:
        path = {"PYTHONPATH": str(REPOSITORY / "services")}
        stores = {"PROCTOR_BROKER_URL": self.broker_url, "PROCTOR_LEDGER_URL": self.broker_url}
        return {**os.environ, **path, **stores, "PROCTOR_HOME": str(self.folder)}

    @contextmanager
    def worker(self, service: str, *options: str) -> Iterator[int]:
        """A worker process that consumes its queue; yields its id."""
        ready = self.folder / "run" / f"worker-{service}.ready"
        log = self.folder / "worker.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self.command(service, *options), env=self.environment, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            wait_until(lambda: ready.exists() or process.poll() is not None, what="the worker")
            assert process.poll() is None, log.read_text()
            yield process.pid
        finally:
            process.terminate()
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def send(self, message: Message) -> None:
        with Celery(broker=self.broker_url) as app:
            app.send_task(message.task, kwargs={"message": message.plain()}, queue=message.queue(), ignore_result=True)

    def send_shard(self, model_url: str) -> None:
        trial = Trial(arm=Arm.CANONICAL, item_id="q1", prompt="What is two plus two?")
        shard = Shard(shard_id="s1", stage="answer", arm=Arm.CANONICAL, trials=(trial,))
        self.send(
            RunShard(
                audit_id="a1",
                shard_id="s1",
                attempt=1,
                shard=put_model(LocalArtifacts(Path(self.settings.artifacts)), shard),
                endpoint=EndpointSpec(backend="openai", url=model_url, served_name="m", model_version=None),
                decoding=Decoding(max_tokens=4),
                deadline_s=30.0,
            )
        )

    def scrape(self) -> list[Family]:
        response = httpx.get(self.url)
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
def home(tmp_path: Path, valkey_url: str) -> Iterator[Home]:
    yield Home(tmp_path, valkey_url)
    with Connection(f"{valkey_url}/{BROKER_DATABASE}") as connection:
        connection.default_channel.client.flushdb()


def all_replaced(worker: int, former: set[int]) -> Callable[[], bool]:
    return lambda: len(descendants(worker) - former) >= len(former) and not descendants(worker) & former


def test_what_two_child_processes_count_adds_up_in_one_scrape(home: Home, model: HoldingModel) -> None:
    left = home.folder / "run" / "metrics" / f"inference-{home.port}" / "counter_1.db"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"of a worker that was killed")
    with home.worker("inference", "--concurrency", "2"):
        home.send_shard(model.url)
        home.send_shard(model.url)
        wait_until(lambda: model.held == 2, what="two shards at a time")
        home.counts(2, "proctor_shards_in_flight", backend="openai")
        model.release()
        home.counts(2, "proctor_messages_total", task="inference.run_shard", outcome="done")
        assert home.value("proctor_shard_duration_seconds_count", backend="openai", outcome="answered") == 2
        assert home.value("proctor_shard_duration_seconds_bucket", le="+Inf") == 2
        assert home.value("proctor_shards_in_flight") == 0
    assert not left.parent.exists()


def test_a_killed_child_leaves_its_counts_and_nothing_in_flight(home: Home, model: HoldingModel) -> None:
    with home.worker("inference", "--concurrency", "2") as worker:
        home.send(RunShard.model_validate({**no_such_shard(model.url), "attempt": 2}))
        home.counts(1, "proctor_shard_duration_seconds_count", outcome="failed")
        home.send_shard(model.url)
        home.counts(1, "proctor_shards_in_flight")
        wait_until(lambda: model.held == 1, what="the shard at the model")
        former = descendants(worker)
        for child in former:
            os.kill(child, signal.SIGKILL)
        home.counts(0, "proctor_shards_in_flight")
        wait_until(all_replaced(worker, former), what="new children")
        assert home.value("proctor_shard_duration_seconds_count", outcome="failed") == 1
        model.release()
        home.send(RunShard.model_validate({**no_such_shard(model.url), "attempt": 3}))
        home.counts(2, "proctor_shard_duration_seconds_count", outcome="failed")


def no_such_shard(model_url: str) -> dict[str, object]:
    endpoint = EndpointSpec(backend="openai", url=model_url, served_name="m", model_version=None)
    shard = {"audit_id": "a1", "shard_id": "s2", "shard": "sha256:" + "0" * 64, "deadline_s": 30.0}
    return {**shard, "endpoint": endpoint, "decoding": Decoding(max_tokens=4)}


def test_a_router_serves_the_audits_on_record_and_counts_what_the_broker_redelivers(home: Home) -> None:
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


def test_a_port_that_is_taken_is_refused_in_one_line_before_the_worker_starts(home: Home) -> None:
    with ThreadingHTTPServer(("127.0.0.1", home.port), BaseHTTPRequestHandler):
        done = subprocess.run(home.command("scorer"), env=home.environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"proctor: error: metrics cannot be served on 127.0.0.1:{home.port}: ")
    assert done.stderr.count("\n") == 1
    assert not (home.folder / "run" / "metrics").exists()


def test_a_worker_without_a_port_serves_nothing_and_loads_no_prometheus(home: Home) -> None:
    code = "import sys, proctor.cli.worker, proctor.scorer.tasks; sys.exit('prometheus_client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=home.environment, timeout=30)
    assert done.returncode == 0


def test_a_stack_shows_the_port_on_which_a_worker_serves_its_metrics(home: Home) -> None:
    spec = StackSpec(mlflow=False, triton=False, workers=("scorer",), metrics=True)
    left = home.folder / "run" / "stack-metrics" / "scorer-1" / "counter_1.db"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"of a stack that was killed")
    with LocalStack(home.folder, spec, home.settings) as stack:
        stack.start()
        port = next(row.ports["metrics"] for row in stack.status() if row.name == "worker-scorer")
        home.url = f"http://127.0.0.1:{port}/metrics"
        assert home.value("proctor_build_info", worker="scorer") == 1
        assert not left.parent.exists()


def test_each_worker_of_a_stack_gets_a_port_of_its_own(home: Home) -> None:
    services = local_services(home.settings, StackSpec(mlflow=False, triton=False, metrics=True)).services
    ports = [port for service in services for port in service.ports.values()]
    assert len(ports) == len(set(ports)) == 1 + len(SERVICES)


def test_a_stack_that_serves_no_metrics_keeps_a_port_in_the_environment_from_its_workers(home: Home) -> None:
    services = local_services(home.settings, StackSpec(mlflow=False, triton=False)).services
    workers = [service for service in services if service.name.startswith("worker-")]
    assert {service.env["PROCTOR_METRICS_PORT"] for service in workers} == {""}
    assert [dict(service.ports) for service in workers] == [{}] * len(workers)
