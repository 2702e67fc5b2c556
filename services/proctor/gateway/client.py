"""Audits through the service on another machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import grpc

from proctor.domain.errors import BadInputError, ProctorError, StackError
from proctor.domain.messages import Priority
from proctor.domain.problems import visible
from proctor.formats.suites import load_suite, read_suite_file
from proctor.gateway.convert import priority_name, status_of, submitted_of
from proctor.gateway.desk import DEFAULT_LIMIT, Submitted
from proctor.gateway.named_files import named_files
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.gateway.rpc import audit_pb2_grpc
from proctor.gateway.status import AuditStatus
from proctor.gateway.token import metadata_of
from proctor.runtime.grpc_serving import Address

#: A submission may carry a benchmark, and is read before it is answered; everything else is a look at a row.
_SUBMIT_S: Final = 300.0
_CALL_S: Final = 30.0
#: Between two looks of a watch, in seconds.
_INTERVAL_S: Final = 0.5
_DEFAULT_PORT: Final = 50061
_SCHEMES: Final = {"grpc": False, "grpcs": True}
#: How gRPC itself says that nobody answered.
_NOT_REACHED: Final = "failed to connect"
_TOO_LARGE: Final = (
    ". A benchmark that is too large to be sent can be put in the server's folder of benchmarks (PROCTOR_BENCHMARKS), "
    "and the suite name it without a path"
)
#: What a caller can mend.
_REFUSALS: Final = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.UNAUTHENTICATED,
    }
)


class ServerAddress(NamedTuple):
    """Where an audit service is, and whether it is spoken to under TLS."""

    address: Address
    tls: bool

    @classmethod
    def parse(cls, text: str) -> ServerAddress:
        """Read `grpc://host:port` or `grpcs://host:port`.

        Raises:
            BadInputError: when it is of another form.
        """
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            parts, host, port = None, None, None
        if parts is None or parts.scheme not in _SCHEMES or not host or parts.path.strip("/") or "@" in parts.netloc:
            raise BadInputError(
                f"--server is '{visible(text[:80])}', but must be grpc://host:port, or grpcs://host:port for TLS, e.g. "
                f"grpc://127.0.0.1:{_DEFAULT_PORT}"
            )
        return cls(Address(host, port or _DEFAULT_PORT), _SCHEMES[parts.scheme])


class RemoteDesk:
    """Audits through a channel to the service; an `AuditDesk`."""

    def __init__(self, channel: grpc.Channel, server: str, token: str | None) -> None:
        self._stub = audit_pb2_grpc.AuditServiceStub(channel)
        self._server = server
        self._metadata = metadata_of(token)

    def submit(self, suite_file: Path, priority: Priority = Priority.NORMAL) -> Submitted:
        """See `AuditDesk`. The files that the suite names are sent along."""
        suite, folder = load_suite(suite_file), suite_file.parent
        files = [
            pb.SuiteFile(name=name, content=_content(folder / name, field))
            for name, field in named_files(suite).items()
        ]
        text = read_suite_file(suite_file).decode("utf-8-sig")
        request = pb.SubmitRequest(suite=text, files=files, priority=priority_name(priority))
        return submitted_of(self._call(self._stub.Submit, request, _SUBMIT_S, _TOO_LARGE))

    def status(self, audit: str) -> AuditStatus:
        """See `AuditDesk`."""
        return status_of(self._call(self._stub.Get, pb.GetRequest(audit=audit)))

    def audits(self, limit: int = DEFAULT_LIMIT) -> list[AuditStatus]:
        """See `AuditDesk`."""
        return [status_of(audit) for audit in self._call(self._stub.List, pb.ListRequest(limit=limit)).audits]

    def watch(self, audit: str) -> Iterator[AuditStatus]:
        """See `AuditDesk`."""
        with self._refusals():
            for message in self._stub.Watch(
                pb.WatchRequest(audit=audit, interval_s=_INTERVAL_S), metadata=self._metadata
            ):
                yield status_of(message)

    def pause(self, audit: str) -> AuditStatus:
        """See `AuditDesk`."""
        return status_of(self._call(self._stub.Pause, pb.PauseRequest(audit=audit)))

    def resume(self, audit: str) -> AuditStatus:
        """See `AuditDesk`."""
        return status_of(self._call(self._stub.Resume, pb.ResumeRequest(audit=audit)))

    def cancel(self, audit: str) -> AuditStatus:
        """See `AuditDesk`."""
        return status_of(self._call(self._stub.Cancel, pb.CancelRequest(audit=audit)))

    def _call(self, method: Any, request: Any, timeout_s: float = _CALL_S, too_much: str = "") -> Any:
        with self._refusals(too_much):
            return method(request, timeout=timeout_s, metadata=self._metadata)

    @contextmanager
    def _refusals(self, too_much: str = "") -> Iterator[None]:
        """Raise a status as the error that it stands for; `too_much` is said of what the service takes no more of."""
        try:
            yield
        except grpc.RpcError as error:
            raise self._error(error.code(), error.details() or "", too_much) from None

    def _error(self, code: grpc.StatusCode, details: str, too_much: str) -> ProctorError:
        if code in _REFUSALS:
            return BadInputError(details)
        if code is grpc.StatusCode.UNAVAILABLE:
            hint = "; is `proctor gateway` up there?" if _NOT_REACHED in details else ""
            return StackError(f"the service at {self._server} cannot do this now: {details}{hint}")
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            return ProctorError(f"the service at {self._server} takes no more: {details}{too_much}")
        return ProctorError(f"the service at {self._server} failed with {code.name}: {details}")


def _content(path: Path, field: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInputError(f"{field}: {path} cannot be read: {error.strerror}") from None


@contextmanager
def remote_desk(server: str, token: str | None) -> Iterator[RemoteDesk]:
    """Audits through the service at `grpc://host:port` or `grpcs://host:port`; the channel is closed with the block.

    Raises:
        BadInputError: when the address is of another form.
    """
    where = ServerAddress.parse(server)
    # A submission may be as large as the server takes.
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    channel = (
        grpc.secure_channel(str(where.address), grpc.ssl_channel_credentials(), options)
        if where.tls
        else grpc.insecure_channel(str(where.address), options)
    )
    with channel:
        yield RemoteDesk(channel, server, token)
