"""An audit watched over HTTP: what is told when, and to whom."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from proctor.domain.decision import DecisionOutcome
from proctor.gateway.http import events
from proctor.gateway.limits import Limits
from proctor.runtime.grpc.tokens import new_token
from proctor.runtime.records.audit_state import AuditState
from tests.integration.audit_support import AuditBench, audit_bench
from tests.integration.http_gateway import client, serving_both
from tests.support import wait_until

CI, OPS = new_token(), new_token()
TOKENS = {"ci": CI, "ops": {"token": OPS, "operator": True}}


@pytest.fixture
def bench(tmp_path: Path, valkey_url: str) -> Iterator[AuditBench]:
    with audit_bench(tmp_path, valkey_url) as found:
        yield found


def told(answer: httpx.Response) -> Iterator[tuple[str, Any]]:
    """The events of a stream as a browser reads them."""
    name = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_every_change_is_told_until_the_audit_has_ended(bench: AuditBench) -> None:
    audit = bench.answering(shards=4)
    with (
        serving_both(bench.desk) as (_, url),
        client(url) as http,
        http.stream("GET", f"/v1/audits/{audit[:8]}/events") as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        seen = told(answer)
        name, first = next(seen)
        assert (name, first["audit_id"], first["state"]) == ("audit", audit, "answering")
        bench.answer(audit, "s0")
        changed = next(seen)[1]
        while changed["trials"]["done"] != 32:
            changed = next(seen)[1]
        bench.decide(audit, DecisionOutcome.BLOCK)
        rest = list(seen)
    assert rest[-1] == ("end", {})
    name, last = rest[-2]
    assert (name, last["state"], last["decision"]["outcome"]) == ("audit", "decided", "block")
    assert last.keys() == first.keys()


def test_who_cannot_watch_is_told_by_a_status(bench: AuditBench) -> None:
    audit = bench.submitted()
    with serving_both(bench.desk, tokens=TOKENS) as (_, url), client(url) as http:
        path = f"/v1/audits/{audit}/events"
        assert http.get(path).status_code == 401
        # Another's.
        ci, ops = ({"Authorization": f"Bearer {token}"} for token in (CI, OPS))
        assert http.get(path, headers=ci).status_code == 404
        assert http.get("/v1/audits/none-such/events", headers=ops).status_code == 404
        assert http.get(f"/v1/audits/{'a' * 65}/events", headers=ops).status_code == 400
        bench.set(audit, AuditState.CANCELLED)
        ended = http.get(path, headers=ops)
    assert [name for name, _ in told(ended)] == ["audit", "end"]


def test_places_are_counted_and_given_back_when_a_watcher_goes(
    bench: AuditBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "QUIET_S", 0.05)
    monkeypatch.setattr(events, "INTERVAL_S", 0.05)
    path = f"/v1/audits/{bench.submitted()}/events"
    with serving_both(bench.desk, limits=Limits(max_watches=1)) as (_, url), client(url) as http:
        with http.stream("GET", path) as answer:
            # Kept: a reader that is let go closes the stream.
            seen = told(answer)
            next(seen)
            refused = http.get(path)
            assert refused.status_code == 429
            assert "watched" in refused.json()["detail"]
            # Watches take no place of other calls.
            assert http.get("/v1/audits").status_code == 200

        def free() -> bool:
            with http.stream("GET", path) as again:
                return again.status_code == 200

        wait_until(free, what="the place of who has gone")


def test_a_stream_ends_when_its_hour_is_over_and_when_the_server_ends(
    bench: AuditBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/v1/audits/{bench.submitted()}/events"
    with serving_both(bench.desk) as (_, url), client(url) as http:
        with monkeypatch.context() as patch:
            patch.setattr(events, "MAX_WATCH_S", -1.0)
            assert [name for name, _ in told(http.get(path))] == ["audit"]
        seen: list[str] = []
        began = threading.Event()

        def watch() -> None:
            with client(url) as other, other.stream("GET", path) as answer:
                for name, _ in told(answer):
                    seen.append(name)
                    began.set()

        watcher = threading.Thread(target=watch)
        watcher.start()
        assert began.wait(20)
    watcher.join(20)
    assert not watcher.is_alive()
    assert seen == ["audit"]
