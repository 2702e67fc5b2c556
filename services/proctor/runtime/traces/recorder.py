"""Spans by OpenTelemetry's SDK, sent by OTLP over HTTP. Nothing loads this module where nothing is traced."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator

from proctor import __version__
from proctor.domain.problems import visible
from proctor.runtime.logs.context import pod_name
from proctor.runtime.traces.identity import SpanIdentity
from proctor.runtime.traces.span import NOTHING, Attributes, Kind, Span

logger = logging.getLogger(__name__)

#: Of a text that a span says: ids, names and words of ours are shorter, a model's name may be anything.
MAX_TEXT: Final = 128
_LIMITS: Final = SpanLimits(
    max_span_attributes=24,
    max_attribute_length=MAX_TEXT,
    max_events=0,
    max_links=4,
    max_event_attributes=0,
    max_link_attributes=0,
)
_KINDS: Final = {kind: trace.SpanKind[kind.name] for kind in Kind}
#: Between two lines about a collector that takes nothing.
_SAID_EACH_S: Final = 60.0


class _Ids(IdGenerator):
    """Random ids, unless the span to be begun has its own."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()
        self._own = threading.local()

    def begins(self, itself: SpanIdentity | None) -> None:
        """The next span of this thread has this identity; any one's where None."""
        self._own.next = itself

    def generate_span_id(self) -> int:
        """Of the next span."""
        own: SpanIdentity | None = getattr(self._own, "next", None)
        return self._random.generate_span_id() if own is None else own.span_id

    def generate_trace_id(self) -> int:
        """Of the next span that is below no other."""
        own: SpanIdentity | None = getattr(self._own, "next", None)
        return self._random.generate_trace_id() if own is None else own.trace_id


class _Quietly(SpanExporter):
    """Says what a collector does not take in a line now and then; the exporter's own words hold its address."""

    def __init__(self, exporter: SpanExporter, clock: Callable[[], float] = time.monotonic) -> None:
        self._exporter = exporter
        self._clock = clock
        self._lost = 0
        self._said_s = -_SAID_EACH_S

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans, or count them as lost."""
        try:
            result = self._exporter.export(spans)
        except Exception:
            result = SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            self._lost += len(spans)
            if self._clock() - self._said_s >= _SAID_EACH_S:
                self._said_s = self._clock()
                logger.warning("the collector of traces did not take %d spans so far; they are lost", self._lost)
        return result

    def shutdown(self) -> None:
        """Send nothing more."""
        self._exporter.shutdown()


class _Recorded:
    """A span of the SDK's."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set(self, attributes: Attributes) -> None:
        """Say more of it."""
        for name, value in attributes.items():
            if value is not None:
                self._span.set_attribute(name, _plain(value))

    def failed(self, kind: str) -> None:
        """Say that it failed."""
        self._span.set_attribute("error.type", _plain(kind))
        self._span.set_status(trace.StatusCode.ERROR)


class Recorder:
    """The spans of this process.

    Args:
        service: as which of Proctor's services they are sent, unless OTEL_SERVICE_NAME says otherwise.
        exporter: where they go; by default where OpenTelemetry's variables say.
    """

    def __init__(self, service: str, exporter: SpanExporter | None = None) -> None:
        self.pid = os.getpid()
        for name in ("opentelemetry.exporter", "opentelemetry.sdk"):
            # It tells of every attempt, with the collector's address.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._ids = _Ids()
        own = {
            "service.name": os.environ.get("OTEL_SERVICE_NAME") or f"proctor-{service}",
            "service.namespace": "proctor",
            "service.version": __version__,
            "service.instance.id": pod_name(),
        }
        self._provider = TracerProvider(
            resource=Resource.create(own),
            id_generator=self._ids,
            span_limits=_LIMITS,
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(BatchSpanProcessor(_Quietly(exporter or OTLPSpanExporter())))
        self._tracer = self._provider.get_tracer("proctor", __version__)

    def current(self) -> SpanIdentity | None:
        """The span in which this is called; None where there is none."""
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return None
        return SpanIdentity(context.trace_id, context.span_id, context.trace_flags.sampled)

    def sampled(self, root: SpanIdentity) -> SpanIdentity:
        """The same, by whether this process' sampler (OTEL_TRACES_SAMPLER) would record it as a root."""
        result = self._provider.sampler.should_sample(contexts.Context(), root.trace_id, "audit")
        return root._replace(sampled=bool(result.decision.is_sampled()))  # type: ignore[no-untyped-call]

    @contextmanager
    def recording(
        self,
        name: str,
        attributes: Attributes,
        *,
        below: SpanIdentity | None,
        kind: Kind = Kind.INTERNAL,
        since_ns: int | None = None,
    ) -> Iterator[Span]:
        """A span around a block, below another one. Below one that is not recorded none is, whatever the sampler is."""
        if below is not None and not below.sampled:
            token = contexts.attach(_context(below))
            try:
                yield NOTHING
            finally:
                contexts.detach(token)
            return
        span = self._tracer.start_span(
            name,
            _context(below),
            _KINDS[kind],
            {key: _plain(value) for key, value in attributes.items() if value is not None},
            start_time=since_ns,
        )
        token, made = contexts.attach(trace.set_span_in_context(span, contexts.Context())), _Recorded(span)
        try:
            yield made
        except BaseException as error:
            made.failed(type(error).__name__)
            raise
        finally:
            contexts.detach(token)
            span.end()

    def record(
        self,
        name: str,
        attributes: Attributes,
        *,
        below: SpanIdentity | None = None,
        itself: SpanIdentity | None = None,
        kind: Kind = Kind.INTERNAL,
        since_ns: int | None = None,
        until_ns: int | None = None,
        links: Sequence[SpanIdentity] = (),
    ) -> None:
        """A span of what is over.

        Args:
            name: of the span.
            attributes: what it says.
            below: its parent; None for a root.
            itself: its identity; None for any.
            kind: of the span.
            since_ns: when it began; now by default.
            until_ns: when it ended; now by default.
            links: other spans that it names.
        """
        if below is not None and not below.sampled:
            return
        self._ids.begins(itself)
        try:
            span = self._tracer.start_span(
                name,
                _context(below),
                _KINDS[kind],
                {key: _plain(value) for key, value in attributes.items() if value is not None},
                [trace.Link(_named(link)) for link in links],
                start_time=since_ns,
            )
        finally:
            self._ids.begins(None)
        span.end(until_ns)

    def end(self, within_s: float) -> None:
        """Send what is left. The SDK would wait for half a minute, and more for a collector that hangs."""
        thread = threading.Thread(target=self._provider.shutdown, name="traces-end", daemon=True)
        thread.start()
        thread.join(within_s)


def _context(below: SpanIdentity | None) -> contexts.Context:
    bare = contexts.Context()
    return bare if below is None else trace.set_span_in_context(trace.NonRecordingSpan(_named(below)), bare)


def _named(one: SpanIdentity) -> trace.SpanContext:
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED if one.sampled else trace.TraceFlags.DEFAULT)
    return trace.SpanContext(one.trace_id, one.span_id, is_remote=True, trace_flags=flags)


def _plain(value: str | int | float | bool) -> str | int | float | bool:
    return visible(value[:MAX_TEXT]) if isinstance(value, str) else value
