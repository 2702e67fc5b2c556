"""Spans of what this process does. Off, nothing is done and nothing of OpenTelemetry is loaded.

On, whatever goes wrong with them is a line in the log: no work waits for a collector or fails with it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

from proctor.runtime.traces.identity import HEADER, SpanIdentity, audit_trace, identity_in, request_trace, root_of
from proctor.runtime.traces.packs import MOST_PACKS, TracedPacks
from proctor.runtime.traces.span import NOTHING, Attributes, Kind, Span, Value

if TYPE_CHECKING:
    from proctor.runtime.traces.recorder import Recorder

logger = logging.getLogger(__name__)

#: OpenTelemetry's own: set, they say where spans are sent to.
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_DISABLED: Final = "OTEL_SDK_DISABLED"
_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL: Final = "http/protobuf"
#: How many packs of a stage one router has traced.
PACKS: Final = "PROCTOR_TRACE_PACKS"
#: What goes on where its sender is: answers to the router, and what the router passes on of them. All else begins
#: something, and stands at the root of its audit's trace; otherwise each pack would hang from the answer to the one
#: before, thousands deep.
_GOES_ON: Final = ("router.", "scorer.grade")
_PACK: Final = "inference.run_shards"
#: Audits of which a process remembers the trace.
_REMEMBERED: Final = 1_024
#: What a process waits for its last spans to be taken as it ends.
END_S: Final = 3.0


class _Process:
    """What this process knows of traces."""

    def __init__(self, service: str, most_packs: int) -> None:
        self.service = service
        self.packs = TracedPacks(most_packs)
        self.look_up: Callable[[str], str] | None = None
        self.lock = threading.Lock()
        self.recorder: Recorder | None = None
        self.known: OrderedDict[str, int] = OrderedDict()


_process: _Process | None = None


def begin(service: str) -> None:
    """Record what this process does from now on, if the environment says where spans are sent to.

    What keeps them from being sent is said once, in the log, and nothing is recorded then.
    """
    global _process
    environ = os.environ
    if not any(environ.get(name) for name in ENDPOINTS) or environ.get(_DISABLED, "").lower() == "true":
        return
    if environ.get(_EXPORTER, "otlp").lower() not in ("otlp", ""):
        return
    protocol = next((said for name in _PROTOCOLS if (said := environ.get(name))), _PROTOCOL)
    if protocol != _PROTOCOL:
        logger.warning("nothing is traced: spans are sent by %s alone, and %s is asked for", _PROTOCOL, protocol)
        return
    said = environ.get(PACKS) or str(MOST_PACKS)
    if not said.isdecimal() or not said.isascii():
        logger.warning("%s is %r, and must be a number of packs: %d is taken", PACKS, said[:80], MOST_PACKS)
        said = str(MOST_PACKS)
    _process = _Process(service, int(said[:9]))


def look_up_by(created_at: Callable[[str], str]) -> None:
    """Let this process find the trace of an audit of which it was not told: by the time in the audit's row."""
    if _process is not None:
        _process.look_up = created_at


def end() -> None:
    """Send what is left, for a few seconds at most, and record nothing more."""
    global _process
    process, _process = _process, None
    if process is not None and process.recorder is not None and process.recorder.pid == os.getpid():
        process.recorder.end(END_S)


def is_on() -> bool:
    """Whether spans are recorded."""
    return _process is not None


def _recorder() -> Recorder | None:
    process = _process
    if process is None:
        return None
    # A child of a worker has the memory of its parent, and none of its threads.
    if process.recorder is None or process.recorder.pid != os.getpid():
        return _made(process)
    return process.recorder


def _made(process: _Process) -> Recorder | None:
    global _process
    with process.lock:
        if process.recorder is not None and process.recorder.pid == os.getpid():
            return process.recorder
        try:
            from proctor.runtime.traces.recorder import Recorder

            process.recorder = Recorder(process.service)
        except ModuleNotFoundError as error:
            logger.warning("nothing is traced: that needs %s (pip install 'proctor[otel]')", error.name)
            _process = None
            return None
        except Exception as error:
            # Of the environment's settings, whose values may be secret.
            logger.warning("nothing is traced: OpenTelemetry cannot be set up (%s)", type(error).__name__)
            _process = None
            return None
        return process.recorder


def current_ids() -> tuple[str, str] | None:
    """Trace and span that a line in the log belongs to; None where there are none."""
    process = _process
    # Not made for a line's sake.
    if process is None or process.recorder is None:
        return None
    current = process.recorder.current()
    return None if current is None else (f"{current.trace_id:032x}", f"{current.span_id:016x}")


@contextmanager
def span(name: str, attributes: Attributes | None = None, *, kind: Kind = Kind.INTERNAL) -> Iterator[Span]:
    """A part of what is being done, where that is recorded; what it raises is noted by its kind, and passes on."""
    recorder = _recorder()
    current = None if recorder is None else recorder.current()
    if recorder is None or current is None or not current.sampled:
        yield NOTHING
        return
    with recorder.recording(name, attributes or {}, kind=kind, below=current) as made:
        yield made


@contextmanager
def handling(task: str, audit_id: str | None, header: object, attributes: Attributes) -> Iterator[Span]:
    """The handling of a message, as a part of its audit's trace.

    Args:
        task: what handles it.
        audit_id: the audit that it is of. What is of none (a look for what is due) is not recorded.
        header: what its header says of who sent it, if anything.
        attributes: of the span.
    """
    recorder = _recorder()
    if recorder is None:
        yield NOTHING
        return
    sender = identity_in(header)
    if sender is not None and audit_id is not None:
        _remember(audit_id, sender.trace_id)
    parent = sender or (None if audit_id is None else _root(recorder, audit_id))
    if parent is None and audit_id is None:
        yield NOTHING
        return
    said = {
        "messaging.system": "celery",
        "messaging.operation.type": "process",
        "messaging.destination.name": task.partition(".")[0],
        "proctor.task": task,
        "proctor.audit.id": audit_id,
        **attributes,
    }
    with recorder.recording(f"process {task}", said, kind=Kind.CONSUMER, below=parent) as made:
        yield made


def headers_for(task: str, audit_id: str | None, stage: str = "") -> dict[str, str]:
    """What a message's headers say of the trace that it is a part of.

    Args:
        task: what will handle it.
        audit_id: the audit that it is of.
        stage: of a pack.
    """
    recorder = _recorder()
    if recorder is None or _process is None:
        return {}
    current = recorder.current()
    root = None if audit_id is None else _root(recorder, audit_id)
    if root is None:
        return {} if current is None else {HEADER: current.header}
    if task.startswith(_GOES_ON) and current is not None and current.trace_id == root.trace_id:
        return {HEADER: current.header}
    if task == _PACK and root.sampled:
        root = root._replace(sampled=_process.packs.takes(str(audit_id), stage))
    return {HEADER: root.header}


def passed_on(headers: Mapping[str, object]) -> dict[str, str]:
    """The same of a message that becomes another one."""
    found = identity_in(headers.get(HEADER))
    return {} if found is None else {HEADER: found.header}


def step(name: str, audit_id: str, attributes: Attributes) -> None:
    """A step that an audit has taken just now. It is recorded though it was taken in a pack that is not."""
    recorder = _recorder()
    if recorder is None:
        return
    current, root = recorder.current(), _root(recorder, audit_id)
    here = current is not None and current.sampled and (root is None or current.trace_id == root.trace_id)
    below = current if here else root
    if below is not None:
        recorder.record(name, {"proctor.audit.id": audit_id, **attributes}, below=below)


def asked_for(key: str, name: str, attributes: Attributes, *, since_ns: int, kind: Kind) -> None:
    """An audit was put on record as asked for. Its own trace begins when it does, and names this span."""
    recorder = _recorder()
    if recorder is not None:
        recorder.record(name, attributes, itself=request_trace(key), since_ns=since_ns, kind=kind)


class Request(Protocol):
    """What is on record of who asked for an audit."""

    @property
    def key(self) -> str:
        """The request's identity."""

    @property
    def origin(self) -> str:
        """Who or what asked."""

    @property
    def created_at(self) -> str:
        """When that was put on record."""


@contextmanager
def submitting(look: Callable[[], Request | None]) -> Iterator[Callable[[str, str, bool], None]]:
    """The submission of an audit; gives what is told of its row (id, time, whether it goes on) once that is there.

    From then on the block is a part of the audit's trace. Whoever puts a new audit on record makes the trace's root.

    Args:
        look: finds the request whose audit it becomes; asked only where that is recorded.
    """
    recorder = _recorder()
    if recorder is None:
        yield lambda audit_id, created_at, resumed: None
        return
    since_ns, stack = time.time_ns(), ExitStack()

    def on_record(audit_id: str, created_at: str, resumed: bool) -> None:
        root = audit_trace(audit_id, created_at)
        _remember(audit_id, root.trace_id)
        root = recorder.sampled(root)
        said: dict[str, Value] = {"proctor.audit.id": audit_id}
        if not resumed:
            request = _told(look)
            asked_ns = since_ns if request is None else min(since_ns, _ns(request.created_at))
            links = () if request is None else (request_trace(request.key),)
            origin: dict[str, Value] = {} if request is None else {"proctor.request.origin": request.origin}
            recorder.record("audit", {**said, **origin}, itself=root, since_ns=asked_ns, links=links)
            if request is not None:
                recorder.record("wait on record", said | origin, below=root, since_ns=asked_ns, until_ns=since_ns)
        said["proctor.audit.resumed"] = resumed
        stack.enter_context(recorder.recording("submit", said, below=root, since_ns=since_ns, kind=Kind.PRODUCER))

    with stack:
        yield on_record


def _told(look: Callable[[], Request | None]) -> Request | None:
    try:
        return look()
    except Exception as error:
        logger.warning("a trace does not say who asked for its audit: %s", type(error).__name__)
        return None


def _root(recorder: Recorder, audit_id: str) -> SpanIdentity | None:
    """The root of an audit's trace; None where nobody told of it, and this process cannot look."""
    process = _process
    if process is None:
        return None
    trace_id = process.known.get(audit_id)
    if trace_id is None and process.look_up is not None:
        try:
            trace_id = audit_trace(audit_id, process.look_up(audit_id)).trace_id
        except Exception as error:
            # Whoever handles the message meets the same, and says so.
            logger.debug("the trace of audit %s is not known: %s", audit_id, type(error).__name__)
            return None
        _remember(audit_id, trace_id)
    return None if trace_id is None else recorder.sampled(root_of(trace_id))


def _remember(audit_id: str, trace_id: int) -> None:
    process = _process
    if process is not None:
        with process.lock:
            process.known[audit_id] = trace_id
            process.known.move_to_end(audit_id)
            while len(process.known) > _REMEMBERED:
                process.known.popitem(last=False)


def _ns(time_on_record: str) -> int:
    return int(datetime.fromisoformat(time_on_record).timestamp() * 1_000_000_000)
