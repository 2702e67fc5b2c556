"""Spans are recorded where somebody asks for them, hold nothing but what they are to, and never stand in work's way."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from proctor.runtime.logs.json_lines import JsonLines
from proctor.runtime.traces import tracing
from proctor.runtime.traces.identity import HEADER, SpanIdentity, audit_trace, identity_in, request_trace
from proctor.runtime.traces.span import Kind
from tests.support import REPOSITORY
from tests.trace_collector import Collector, collecting

AUDIT, CREATED = "9c0d-1", "2026-11-23T12:00:00+00:00"
ROOT = audit_trace(AUDIT, CREATED)
_SECRET = "what the model said, and sk-1234567890"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    yield
    tracing.end()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        yield found
        # While somebody listens.
        tracing.end()


@pytest.fixture
def router(collector: Collector) -> Collector:
    """This process records as a router, which finds the times in audits' rows."""
    tracing.begin("router")
    tracing.look_up_by({AUDIT: CREATED}.__getitem__)
    return collector


def handled(header: object = ROOT.header, task: str = "router.start", audit: str | None = AUDIT) -> Any:
    return tracing.handling(task, audit, header, {"messaging.message.id": "m1"})


def sent(header: dict[str, str]) -> SpanIdentity:
    found = identity_in(header[HEADER])
    assert found is not None
    return found


_OFF = """
import sys
from proctor.runtime.messaging.tasks import configure, worker_settings
from proctor.runtime.traces import tracing
for service in ("router", "inference", "scorer", "registry", "notifier"):
    __import__(f"proctor.{service}.tasks")
import proctor.gateway.audits, proctor.cli.worker
tracing.begin("router")
tracing.look_up_by(lambda audit: 1 / 0)
with tracing.handling("router.start", "a", None, {}), tracing.span("shard") as span:
    span.set({"a": 1})
    assert tracing.headers_for("inference.run_shards", "a", "answer") == {}
tracing.step("state", "a", {})
assert tracing.current_ids() is None and not tracing.is_on()
tracing.end()
# redis-py loads the package's metrics by itself, where it is installed.
ours = "opentelemetry.sdk.trace", "opentelemetry.exporter", "opentelemetry.proto", "proctor.runtime.traces.recorder"
print([name for name in sys.modules if name.startswith(ours)])
"""


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
    ids=["unset", "empty", "disabled", "no exporter", "another protocol"],
)
def test_off_nothing_is_done_and_nothing_of_opentelemetry_is_loaded(environ: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _OFF],
        capture_output=True,
        text=True,
        env={**os.environ, **environ, "PYTHONPATH": str(REPOSITORY / "services")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
    assert ("http/protobuf" in done.stderr) == ("OTEL_EXPORTER_OTLP_PROTOCOL" in environ)


def test_without_the_package_work_goes_on_and_the_log_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "proctor.runtime.traces.recorder", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    tracing.begin("router")
    with handled():
        assert tracing.headers_for("inference.probe", AUDIT) == {}
    assert "pip install 'proctor[otel]'" in caplog.text
    assert len(caplog.records) == 1


def test_a_message_is_handled_in_a_span_of_its_audits_trace(router: Collector) -> None:
    with handled(header=None), tracing.span("inside", {"proctor.trials": 3, "proctor.stage": None}):
        pass
    tracing.end()
    inside, outer = router.spans
    assert (outer.name, outer.kind, outer.service) == ("process router.start", "consumer", "proctor-router")
    assert (outer.trace_id, outer.parent_id) == (f"{ROOT.trace_id:032x}", f"{ROOT.span_id:016x}")
    assert outer.attributes == {
        "messaging.system": "celery",
        "messaging.operation.type": "process",
        "messaging.destination.name": "router",
        "messaging.message.id": "m1",
        "proctor.task": "router.start",
        "proctor.audit.id": AUDIT,
    }
    assert (inside.parent_id, inside.attributes) == (outer.span_id, {"proctor.trials": 3})


def test_what_raises_is_noted_by_its_kind_and_never_by_its_words(router: Collector) -> None:
    with pytest.raises(ValueError, match="model said"), handled(), tracing.span("shard"):
        raise ValueError(_SECRET)
    tracing.end()
    assert [one.attributes["error.type"] for one in router.spans] == ["ValueError", "ValueError"]
    assert all(one.failed for one in router.spans)
    assert _SECRET.encode() not in b"".join(router.raw)


def test_a_text_in_a_span_is_short_and_shows_itself(router: Collector) -> None:
    with handled(), tracing.span("text_completion", {"gen_ai.request.model": "\x1b[2Jm\n" + "x" * 10_000}):
        pass
    tracing.end()
    said = router.named("text_completion")[0].attributes["gen_ai.request.model"]
    assert said.startswith("\\u001b[2Jm\\n")
    assert len(said) <= 128


def test_requests_stand_at_the_root_and_answers_go_on_where_their_sender_was(router: Collector) -> None:
    with handled(task="router.shards_answered"):
        here = tracing.current_ids()
        assert here is not None
        for task in ("inference.run_shards", "perturbation.build", "scorer.score"):
            assert sent(tracing.headers_for(task, AUDIT, "answer")) == ROOT
        for task in ("router.take_on", "scorer.grade"):
            assert f"{sent(tracing.headers_for(task, AUDIT)).span_id:016x}" == here[1]
        # Of an audit whose trace is not known the span says at least who asked.
        assert f"{sent(tracing.headers_for('router.take_on', 'unknown')).span_id:016x}" == here[1]


def test_below_a_pack_that_is_not_traced_nothing_is_but_the_audits_own_steps(
    router: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    unsampled = ROOT._replace(sampled=False)
    with handled(header=unsampled.header, task="router.shards_answered"), tracing.span("shard"):
        assert not sent(tracing.headers_for("scorer.grade", AUDIT)).sampled
        assert sent(tracing.headers_for("scorer.score", AUDIT)) == ROOT
        tracing.step("state scoring", AUDIT, {"proctor.audit.state": "scoring"})
    tracing.end()
    (step,) = router.spans
    assert (step.name, step.parent_id) == ("state scoring", f"{ROOT.span_id:016x}")


def test_a_large_stage_has_as_many_packs_traced_as_the_limit_says(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_TRACE_PACKS", "8")
    tracing.begin("router")
    tracing.look_up_by({AUDIT: CREATED}.__getitem__)
    packs = [sent(tracing.headers_for("inference.run_shards", AUDIT, "answer")) for _ in range(1_000)]
    assert sum(one.sampled for one in packs) == 8
    assert {one.trace_id for one in packs} == {ROOT.trace_id}


@pytest.mark.parametrize("said", ["", "-1", "many", "٣", "1e9"])
def test_a_limit_that_is_none_is_said_and_the_default_taken(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, said: str
) -> None:
    monkeypatch.setenv("PROCTOR_TRACE_PACKS", said)
    tracing.begin("router")
    tracing.look_up_by({AUDIT: CREATED}.__getitem__)
    packs = [sent(tracing.headers_for("inference.run_shards", AUDIT, "answer")) for _ in range(2_000)]
    assert sum(one.sampled for one in packs) == 64
    assert ("PROCTOR_TRACE_PACKS" in caplog.text) == bool(said)


def test_every_process_draws_the_same_audits(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.25")
    drawn = list[list[bool]]()
    for service in ("router", "gateway"):
        tracing.begin(service)
        tracing.look_up_by(lambda audit: CREATED)
        drawn.append([sent(tracing.headers_for("scorer.score", f"audit-{n}")).sampled for n in range(400)])
        tracing.end()
    assert drawn[0] == drawn[1]
    assert 60 < sum(drawn[0]) < 140


def test_a_submission_is_the_root_of_its_trace_and_names_what_asked_for_it(router: Collector) -> None:
    class Asked:
        key, origin, created_at = "k1", "webhook", "2026-11-23T11:59:58+00:00"

    tracing.asked_for("k1", "webhook mlflow", {}, since_ns=time.time_ns(), kind=Kind.SERVER)
    with tracing.submitting(Asked) as on_record:
        on_record(AUDIT, CREATED, False)
        header = sent(tracing.headers_for("router.start", AUDIT))
    tracing.end()
    spans = {one.name: one for one in router.spans}
    asked, root, waited, submit = (spans[name] for name in ("webhook mlflow", "audit", "wait on record", "submit"))
    assert root.span_id == f"{ROOT.span_id:016x}"
    assert root.parent_id == ""
    assert {waited.parent_id, submit.parent_id} == {root.span_id}
    assert f"{header.span_id:016x}" == submit.span_id
    named = request_trace("k1")
    assert root.links == ((asked.trace_id, asked.span_id),)
    assert (asked.trace_id, asked.span_id) == (f"{named.trace_id:032x}", f"{named.span_id:016x}")
    assert root.begin_ns <= waited.begin_ns <= waited.end_ns <= submit.end_ns


def test_a_submission_that_goes_on_with_an_audit_makes_no_second_root(router: Collector) -> None:
    with tracing.submitting(lambda: None) as on_record:
        on_record(AUDIT, CREATED, True)
    tracing.end()
    assert [(one.name, one.attributes["proctor.audit.resumed"]) for one in router.spans] == [("submit", True)]


def test_a_store_that_cannot_say_who_asked_costs_no_submission(router: Collector) -> None:
    def away() -> None:
        raise OSError("away")

    with tracing.submitting(away) as on_record:
        on_record(AUDIT, CREATED, False)
    tracing.end()
    assert {one.name for one in router.spans} == {"audit", "submit"}


def test_looks_that_are_of_no_audit_are_not_recorded(router: Collector) -> None:
    with handled(header=None, task="router.reconcile", audit=None), tracing.span("inside"):
        tracing.step("state probing", AUDIT, {})
    tracing.end()
    assert [one.name for one in router.spans] == ["state probing"]


def test_a_line_in_the_log_names_its_trace_and_span(router: Collector) -> None:
    record = logging.LogRecord("x", logging.INFO, "f.py", 1, "m", (), None)
    with handled():
        line = json.loads(JsonLines("router").format(record))
        assert (line["trace_id"], line["span_id"]) == tracing.current_ids()
    assert line["trace_id"] == f"{ROOT.trace_id:032x}"
    assert "trace_id" not in json.loads(JsonLines("router").format(record))


def test_threads_record_side_by_side(router: Collector) -> None:
    def work(number: int) -> None:
        with handled(), tracing.span("shard", {"proctor.trials": number}):
            tracing.step("state probing", AUDIT, {})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(100)))
    tracing.end()
    spans = router.spans
    assert len({one.span_id for one in spans}) == len(spans) == 300
    assert {one.attributes["proctor.trials"] for one in router.named("shard")} == set(range(100))


def test_a_child_of_a_worker_records_by_itself(router: Collector) -> None:
    with handled():
        pass
    child = os.fork()
    if child == 0:
        # Nothing of pytest's is to run here.
        try:
            with handled(task="router.take_on"):
                pass
            tracing.end()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    tracing.end()
    assert sorted(one.name for one in router.spans) == ["process router.start", "process router.take_on"]


@pytest.mark.parametrize("fault", ["refuses", "hangs", "fails"])
def test_a_collector_that_takes_nothing_neither_stops_nor_slows_work(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    if fault == "refuses":
        listener.close()
    with collecting(lambda: 500) as failing:
        url = failing.url if fault == "fails" else f"http://secret-user:secret-word@127.0.0.1:{port}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        tracing.begin("router")
        with handled():
            pass
        # Once the SDK is there: three times what its queue holds.
        since_s, since = time.thread_time(), time.monotonic()
        for _ in range(6_000):
            with handled():
                pass
        used_s, took_s = time.thread_time() - since_s, time.monotonic() - since
        since = time.monotonic()
        tracing.end()
        ended_s = time.monotonic() - since
    listener.close()
    # In the processor's time, since the machine may be busy; a span that waited for an attempt would take a second.
    assert used_s < 6_000 * 0.0005
    assert took_s < 60
    assert ended_s < tracing.END_S + 5
    assert "secret-word" not in caplog.text
    assert len([one for one in caplog.records if "collector" in one.getMessage()]) <= 1


#: The first two words of what spans say; loggers, modules and gRPC's services have names of the same form.
_ATTRIBUTE = re.compile(
    r'"((?:messaging|gen_ai|error)\.[a-z_.]+|'
    r'proctor\.(?:audit|task|message|stage|shard|backend|trials|decision|request|registry)(?:\.[a-z_]+)?)"'
)


def test_the_page_names_every_attribute_that_the_code_sets() -> None:
    page = (REPOSITORY / "docs" / "tracing.md").read_text("utf-8")
    sources = (REPOSITORY / "services" / "proctor").rglob("*.py")
    found = {name for source in sources for name in _ATTRIBUTE.findall(source.read_text("utf-8"))}
    assert {"proctor.audit.id", "gen_ai.usage.output_tokens", "error.type"} <= found
    assert {name for name in found if f"`{name}`" not in page} == set()
