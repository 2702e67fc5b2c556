"""What the gateway tells Prometheus and probes: requests by route, webhooks by what became of them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import httpx
import pytest
from prometheus_client import CollectorRegistry

from proctor.formats.triggers import load_triggers
from proctor.gateway.probes import GatewayProbes
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.runtime.metrics import recording as metrics
from proctor.runtime.metrics.recording import Instruments
from tests.integration.audit_support import AuditBench, audit_bench, gateway_process, refused, stub
from tests.integration.http_gateway import client, serving_both
from tests.registry_webhooks import created, signed, trigger_file
from tests.support import free_port, wait_until


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        found.suite_file()
        yield found


@pytest.fixture
def registry() -> Iterator[CollectorRegistry]:
    fresh = CollectorRegistry()
    metrics.record_in(Instruments(fresh))
    yield fresh
    metrics.record_in(None)


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def call(self, do: Callable[[], None]) -> None:
        async def done() -> None:
            do()

        asyncio.run_coroutine_threadsafe(done(), self.loop).result(20)

    def later(self, do: Callable[[], object]) -> None:
        self.loop.call_soon_threadsafe(do)

    def end(self) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(20)
            self.loop.close()


@pytest.fixture
def event_loop_thread() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.end()


def counted(registry: CollectorRegistry, name: str) -> dict[tuple[str, ...], float]:
    """A counter's values by its labels' values."""
    return {
        tuple(sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    }


def test_requests_over_http_are_counted_by_their_route_and_never_by_the_callers_path(
    bench: AuditBench, registry: CollectorRegistry
) -> None:
    with serving_both(bench.desk) as (_, url), client(url) as http:
        assert http.get("/v1/audits").status_code == 200
        assert http.get("/v1/audits/a-secret-that-somebody-pasted").status_code == 404
        assert http.get("/no/such/place").status_code == 404
    found = counted(registry, "proctor_http_requests_total")
    assert found == {
        ("/v1/audits", "GET", "2xx"): 1,
        ("/v1/audits/{audit_id}", "GET", "4xx"): 1,
        ("none", "GET", "4xx"): 1,
    }
    name = "proctor_http_request_duration_seconds_count"
    assert registry.get_sample_value(name, {"route": "/v1/audits/{audit_id}", "method": "GET"}) == 1


def test_calls_over_grpc_are_counted_by_their_method_and_status(bench: AuditBench, registry: CollectorRegistry) -> None:
    tokens = {"ci": "Zm9vYmFyMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODk"}
    with serving_both(bench.desk, tokens=tokens) as (address, _):
        with stub(address, tokens["ci"]) as audits:
            audits.List(pb.ListRequest())
            with refused(grpc.StatusCode.NOT_FOUND, "no-such"):
                audits.Get(pb.GetRequest(audit="no-such"))
            with refused(grpc.StatusCode.NOT_FOUND, "no-such"):
                list(audits.Watch(pb.WatchRequest(audit="no-such")))
        with stub(address) as nobody, refused(grpc.StatusCode.UNAUTHENTICATED, "token"):
            nobody.List(pb.ListRequest())
        with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError):
            channel.unary_unary("/made.up.Service/Secret")(b"")
    own = "/proctor.v1.AuditService"
    wait_until(lambda: len(counted(registry, "proctor_grpc_requests_total")) == 5, what="each call that ended")
    assert counted(registry, "proctor_grpc_requests_total") == {
        (f"{own}/List", "OK"): 1,
        (f"{own}/Get", "NOT_FOUND"): 1,
        (f"{own}/Watch", "NOT_FOUND"): 1,
        (f"{own}/List", "UNAUTHENTICATED"): 1,
        ("other", "UNAUTHENTICATED"): 1,
    }


def test_a_watch_that_its_caller_leaves_is_counted_as_cancelled(bench: AuditBench, registry: CollectorRegistry) -> None:
    with serving_both(bench.desk) as (address, _), stub(address) as audits:
        audit = bench.submitted()
        watching = audits.Watch(pb.WatchRequest(audit=audit))
        next(watching)
        watching.cancel()
        wait_until(lambda: bool(counted(registry, "proctor_grpc_requests_total")), what="the watch's end")
    assert counted(registry, "proctor_grpc_requests_total") == {("/proctor.v1.AuditService/Watch", "CANCELLED"): 1}


def test_deliveries_are_counted_by_what_became_of_them(
    bench: AuditBench, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    triggers = load_triggers(trigger_file(bench.home), bench.settings.bundle)
    body = json.dumps(created()).encode()
    headers = signed(body)
    with serving_both(bench.desk, triggers=triggers) as (_, url), client(url) as http:

        def send(content: bytes, said: dict[str, str]) -> int:
            return http.post("/v1/webhooks/mlflow", content=content, headers=said).status_code

        assert (send(body, headers), send(body, headers)) == (202, 200)
        assert send(body, {}) == 401
        assert send(b"no event", signed(b"no event")) == 400
        assert http.post("/v1/webhooks/huggingface", content=b"{}").status_code == 401
        monkeypatch.setattr("proctor.gateway.http.webhooks.MAX_BODY_BYTES", 10)
        assert send(body, headers) == 413
    assert counted(registry, "proctor_webhook_deliveries_total") == {
        ("mlflow", "accepted"): 1,
        ("mlflow", "duplicate"): 1,
        ("mlflow", "forged"): 1,
        ("mlflow", "invalid"): 2,
        ("huggingface", "forged"): 1,
    }


def test_a_gateway_serves_its_metrics_behind_the_token_and_probes_without(bench: AuditBench) -> None:
    port, http_port, token = free_port(), free_port(), "a-token-of-the-metrics"
    settings = bench.settings.to_environment() | {
        "PROCTOR_GATEWAY_METRICS_PORT": str(port),
        "PROCTOR_METRICS_TOKEN": token,
    }
    with gateway_process(bench.home, "--http", str(http_port), **settings):
        page = f"http://127.0.0.1:{port}"
        assert httpx.get(f"http://127.0.0.1:{http_port}/healthz").status_code == 200
        assert httpx.get(f"{page}/metrics").status_code == 401
        text = httpx.get(f"{page}/metrics", headers={"Authorization": f"Bearer {token}"}).text
        assert 'proctor_http_requests_total{code="2xx",method="GET",route="/healthz"} 1.0' in text
        assert 'proctor_build_info{version="' in text
        assert 'worker="gateway"' in text
        for path in ("/livez", "/readyz"):
            answer = httpx.get(page + path)
            assert (answer.status_code, answer.text) == (200, "ok\n")


def test_probes_say_that_a_store_is_away_or_that_nobody_is_answered_any_more(
    event_loop_thread: LoopThread,
) -> None:
    away: list[str] = []
    probes = GatewayProbes(lambda: away, stalled_s=0.2)
    assert probes.not_ready() == "the gateway does not listen yet"
    assert probes.stalled() is None
    event_loop_thread.call(probes.listens)
    assert (probes.stalled(), probes.not_ready()) == (None, None)
    away.append("ledger")
    assert probes.not_ready() == "no answer from: ledger"
    held = threading.Event()
    event_loop_thread.later(held.wait)
    assert probes.stalled() == "the gateway has answered nobody for 0.2 s"
    held.set()
    assert probes.stalled() is None
    event_loop_thread.end()
    assert probes.stalled() == "the gateway has ended"
