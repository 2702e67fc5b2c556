"""A collector of traces: an OTLP receiver over HTTP that keeps the spans that it is sent."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage


class CollectedSpan(NamedTuple):
    """A span as it came."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: str
    attributes: dict[str, Any]
    links: tuple[tuple[str, str], ...]
    begin_ns: int
    end_ns: int
    failed: bool


class Collector:
    """What came."""

    def __init__(self) -> None:
        self.url = ""
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()

    def take(self, body: bytes, headers: dict[str, str]) -> None:
        with self._lock:
            self.raw.append(body)
            self.headers.append(headers)

    @property
    def spans(self) -> list[CollectedSpan]:
        """Those of Proctor; MLflow's server looks at the same variables."""
        with self._lock:
            bodies = list(self.raw)
        found = [one for body in bodies for one in _spans(body)]
        return [one for one in found if one.service.startswith("proctor")]

    def named(self, name: str) -> list[CollectedSpan]:
        return [one for one in self.spans if one.name == name]


def _spans(body: bytes) -> Iterator[CollectedSpan]:
    request = ExportTraceServiceRequest.FromString(body)
    for of_resource in request.resource_spans:
        resource = {one.key: _value(one.value) for one in of_resource.resource.attributes}
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield CollectedSpan(
                    service=str(resource.get("service.name", "")),
                    name=span.name,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    kind=SpanMessage.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
                    attributes={one.key: _value(one.value) for one in span.attributes},
                    links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                    begin_ns=span.start_time_unix_nano,
                    end_ns=span.end_time_unix_nano,
                    failed=span.status.code == 2,
                )


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))


@contextmanager
def collecting(answer: Callable[[], int] = lambda: 200) -> Iterator[Collector]:
    """A collector on a port of its own, that answers every request with this status."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            status = answer()
            if status == 200 and self.path == "/v1/traces":
                collector.take(body, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def tree(spans: list[CollectedSpan]) -> str:
    """Spans as an indented text, for whoever reads why a test failed."""
    lines = list[str]()

    def write(parent: str, depth: int) -> None:
        for span in sorted((one for one in spans if one.parent_id == parent), key=lambda one: one.begin_ns):
            milliseconds = (span.end_ns - span.begin_ns) / 1e6
            lines.append(f"{'  ' * depth}{span.name} [{span.service}] {milliseconds:.1f} ms")
            write(span.span_id, depth + 1)

    write("", 0)
    return "\n".join(lines)
