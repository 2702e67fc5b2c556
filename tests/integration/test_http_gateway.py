"""Audits over HTTP: the same audits, callers and limits as over gRPC."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from proctor.gateway.limits import Limits
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.runtime.grpc.tokens import new_token
from proctor.runtime.records.audit_state import AuditState
from tests.integration.audit_support import AuditBench, audit_bench, gateway_process, stub, suite_without_files
from tests.integration.http_gateway import client, serving_both

CI, OPS = new_token(), new_token()
TOKENS = {"ci": CI, "ops": {"token": OPS, "operator": True}}


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        yield found


@pytest.fixture
def suite(bench: AuditBench) -> bytes:
    return suite_without_files(bench)


def is_problem(answer: httpx.Response, status: int, words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert words in answer.json()["detail"], answer.text


def test_a_suite_is_begun_once_and_seen_over_either_protocol(bench: AuditBench, suite: bytes) -> None:
    with serving_both(bench.desk) as (address, url), client(url) as http, stub(address) as grpc:
        first, again = (http.post("/v1/audits", content=suite) for _ in range(2))
        assert (first.status_code, again.status_code) == (202, 202), first.text
        audit = first.json()["audit_id"]
        assert first.headers["location"] == f"/v1/audits/{audit}"
        assert (first.json()["stopped_at"], again.json()["stopped_at"]) == (None, "created")
        assert again.json()["audit_id"] == audit
        assert http.get(first.headers["location"]).json()["audit_id"] == audit
        assert http.get(f"/v1/audits/{audit[:8]}").json()["suite"] == "first"
        assert [one["audit_id"] for one in http.get("/v1/audits").json()["audits"]] == [audit]
        assert grpc.Get(pb.GetRequest(audit=audit)).audit_id == audit


def test_a_key_of_the_caller_s_gives_the_same_audit_even_after_its_end(bench: AuditBench, suite: bytes) -> None:
    key = {"Idempotency-Key": "build-17"}
    with serving_both(bench.desk) as (_, url), client(url) as http:
        audit = http.post("/v1/audits", content=suite, headers=key).json()["audit_id"]
        bench.set(audit, AuditState.CANCELLED)
        again = http.post("/v1/audits", content=suite, headers=key)
        assert (again.status_code, again.json()["audit_id"]) == (202, audit)
        assert again.json()["stopped_at"] == "cancelled"
        assert http.post("/v1/audits", content=suite).json()["audit_id"] != audit
        is_problem(http.post("/v1/audits", content=suite + b" ", headers=key), 422, "used for another submission")
        is_problem(http.post("/v1/audits", content=suite, headers={"Idempotency-Key": "k" * 201}), 400, "1 to 200")
        twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
        is_problem(http.post("/v1/audits", content=suite, headers=twice), 400, "twice")


def test_a_key_that_is_given_many_times_at_once_begins_one_audit(bench: AuditBench, suite: bytes) -> None:
    found: list[str] = []
    with serving_both(bench.desk) as (_, url):

        def submit() -> None:
            with client(url) as http:
                answer = http.post("/v1/audits", content=suite, headers={"Idempotency-Key": "k"})
                found.append(answer.json()["audit_id"])

        threads = [threading.Thread(target=submit) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len(bench.records.audits()) == 1


def test_every_problem_of_a_suite_is_told(bench: AuditBench) -> None:
    with serving_both(bench.desk) as (_, url), client(url) as http:
        answer = http.post("/v1/audits", content=b'{"audit_suite_id": "", "x": 1}')
        is_problem(answer, 400, "audit_suite_id")
        assert "x: 1 is an unknown key" in answer.json()["detail"]
        is_problem(http.post("/v1/audits", content=b"\xff"), 400, "is not UTF-8")
        is_problem(http.post("/v1/audits", content=b"{}" + b" " * (256 << 10)), 413, "larger than 256 KiB")
        files = bench.suite_text().encode()
        is_problem(http.post("/v1/audits", content=files), 400, "which was not sent along")
        is_problem(http.post("/v1/audits?priority=urgent", content=files), 422, "priority")
        is_problem(http.get("/v1/audits?limit=0"), 422, "limit")
        is_problem(http.get("/v1/audits/none-1"), 404, "there is no audit")
        is_problem(http.get(f"/v1/audits/{'x' * 65}"), 400, "at most 64")
        is_problem(http.get("/v1/audits/%00"), 404, "there is no audit")
        is_problem(http.get("/v2"), 404, "")
        is_problem(http.delete("/v1/audits"), 405, "")
    assert bench.records.audits() == []


def test_callers_are_those_of_grpc_and_see_their_own_audits(bench: AuditBench, suite: bytes) -> None:
    with serving_both(bench.desk, tokens=TOKENS) as (_, url):
        for token in (None, "x" * 40, CI + "x"):
            with client(url, token) as http:
                for path in ("/v1/audits", "/v1/audits/a", "/openapi.json"):
                    is_problem(http.get(path), 401, "token is missing or wrong")
                assert http.post("/v1/audits", content=suite).headers["www-authenticate"] == "Bearer"
                assert http.get("/healthz").json() == {"status": "ok"}
        with client(url, OPS) as ops, client(url, CI) as ci:
            audit = ops.post("/v1/audits", content=suite).json()["audit_id"]
            assert ci.get("/v1/audits").json() == {"audits": []}
            is_problem(ci.get(f"/v1/audits/{audit}"), 404, "there is no audit")
            own = ci.post("/v1/audits", content=suite).json()["audit_id"]
            assert own != audit
            assert len(ops.get("/v1/audits").json()["audits"]) == 2


def test_both_protocols_share_the_places_of_calls(bench: AuditBench) -> None:
    with serving_both(bench.desk, limits=Limits(max_other_calls=0)) as (_, url), client(url) as http:
        answer = http.get("/v1/audits")
        is_problem(answer, 429, "calls are open")
        assert answer.headers["retry-after"] == "5"


def test_a_store_that_is_away_is_named_by_the_probe_and_answered_with_503(bench: AuditBench, suite: bytes) -> None:
    with serving_both(bench.desk) as (_, url), client(url) as http:
        assert http.get("/readyz").json() == {"status": "ok"}
    away = bench.desk.__class__(
        bench.settings, bench.records, bench.desk.counts._replace(ledger=type(bench.ledger)("redis://127.0.0.1:9/0")),
        bench.desk.artifacts, bench.desk.send,
    )  # fmt: skip
    with serving_both(away) as (_, url), client(url) as http:
        is_problem(http.get("/readyz"), 503, "no answer from: ledger")
        is_problem(http.post("/v1/audits", content=suite), 503, "ledger")
    away.counts.ledger.close()


def test_every_answer_has_the_headers_that_keep_browsers_from_more(bench: AuditBench) -> None:
    with serving_both(bench.desk) as (_, url), client(url) as http:
        for answer in (http.get("/healthz"), http.get("/none"), http.post("/v1/audits", content=b"")):
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
            assert answer.headers["cross-origin-opener-policy"] == "same-origin"
            assert "server" not in answer.headers


def test_a_log_has_the_route_and_not_what_somebody_put_where_an_id_belongs(
    bench: AuditBench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "proctor")
    with serving_both(bench.desk, tokens=TOKENS) as (_, url), client(url, CI) as http:
        for path in (f"/v1/audits/{OPS[:40]}", f"/{OPS}", f"/audits/{OPS[:40]}", f"/v1/audits?token={OPS}"):
            http.get(path)
    assert "GET /v1/audits/{audit_id} ended with 404" in caplog.text
    assert OPS[:20] not in caplog.text


def test_the_description_is_openapi_and_names_what_is_answered(bench: AuditBench, suite: bytes) -> None:
    with serving_both(bench.desk) as (_, url), client(url) as http:
        description: dict[str, Any] = http.get("/openapi.json").json()
    assert description["openapi"].startswith("3.1")
    assert set(description["paths"]) == {
        "/healthz",
        "/readyz",
        "/v1/audits",
        "/v1/audits/{audit_id}",
        "/v1/audits/{audit_id}/actions",
        "/v1/audits/{audit_id}/events",
        "/v1/audits/{audit_id}/sign-offs",
        "/v1/benchmarks",
        "/v1/benchmarks/{benchmark}/health",
        "/v1/costs",
        "/v1/reviews",
        "/v1/trends",
    }
    post = description["paths"]["/v1/audits"]["post"]
    assert {"202", "400", "401", "403", "413", "422", "429", "503"} == set(post["responses"])
    assert post["security"] == [{"token": []}]
    schema = post["requestBody"]["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator(schema).validate(json.loads(suite))


def test_the_command_serves_http_beside_grpc_and_leaves_in_order(bench: AuditBench) -> None:
    variables = {"PROCTOR_LEDGER_URL": bench.settings.ledger_url, "PROCTOR_BROKER_URL": bench.settings.broker_url}
    with gateway_process(bench.home, "--http", "0", PROCTOR_GATEWAY_TOKEN=CI, **variables) as (process, _):
        log = (bench.home / "gateway.log").read_text()
        url = log.partition("serves ")[2].split()[0]
        with client(url, CI) as http:
            assert http.get("/readyz").json() == {"status": "ok"}
            assert http.get("/v1/audits").json() == {"audits": []}
        process.terminate()
        assert process.wait(timeout=20) == 0
    assert CI not in (bench.home / "gateway.log").read_text()


def test_http_beyond_loopback_needs_a_token(tmp_path: Path) -> None:
    with (
        pytest.raises(subprocess.CalledProcessError) as refused,
        gateway_process(tmp_path, "--http", "0", "--host", "0.0.0.0"),
    ):
        pass
    assert "PROCTOR_GATEWAY_TOKEN" in refused.value.stderr


def test_triggers_need_http(tmp_path: Path) -> None:
    with (
        pytest.raises(subprocess.CalledProcessError) as refused,
        gateway_process(tmp_path, "--triggers", str(tmp_path / "t.json")),
    ):
        pass
    assert "--triggers needs --http" in refused.value.stderr


def test_the_package_and_its_help_load_no_web_framework() -> None:
    program = (
        "import sys, proctor\n"
        "from proctor.cli.main import main\n"
        "main(['--help']); main(['gateway', '--help'])\n"
        "sys.exit(' '.join({'fastapi', 'starlette', 'uvicorn', 'grpc', 'torch'} & set(sys.modules)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
