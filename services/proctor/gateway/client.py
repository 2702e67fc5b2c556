"""Audits through the service on another machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc

from proctor.domain.errors import BadInputError, ProctorError, StackError
from proctor.domain.messages import Priority
from proctor.domain.problems import visible
from proctor.domain.url import UrlFault, read_url
from proctor.formats.named_file import read_named_file
from proctor.formats.suites import load_suite, read_suite_file
from proctor.gateway.convert import listed_of, priority_name, status_of, submitted_of
from proctor.gateway.desk import DEFAULT_LIMIT, Submitted
from proctor.gateway.named_files import named_files
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.gateway.rpc import audit_pb2_grpc
from proctor.gateway.status import AuditStatus
from proctor.runtime.grpc.serving import Address, ClientTls
from proctor.runtime.grpc.tokens import metadata_of
from proctor.runtime.records.audit_state import UnreadableAudit

#: A submission may carry a benchmark, and is read before it is answered; everything else is a look at a row.
_SUBMIT_S: Final = 300.0
_CALL_S: Final = 30.0
#: Between two looks of a watch, in seconds.
_INTERVAL_S: Final = 0.5
_DEFAULT_PORT: Final = 50061
#: A list of 1,000 statuses, each with ten causes of 300 characters and a decision's reasons.
MAX_REPLY_BYTES: Final = 64 << 20
#: A file that a suite names is sent whole; servers take 1 GiB at most, and 32 MiB unless they are told otherwise.
MAX_FILE_BYTES: Final = 1 << 30
_SCHEMES: Final = {"grpc": False, "grpcs": True}
#: How gRPC itself says that nobody answered.
_NOT_REACHED: Final = "failed to connect"
#: How it says that a certificate is not to be trusted: unknown, expired, or of another name.
_UNTRUSTED: Final = ("CERTIFICATE_VERIFY_FAILED", "Hostname Verification", "Peer name")
#: How it says that one of both sides hung up before anything was said.
_HANDSHAKE: Final = ("handshake", "Socket closed", "Connection reset", "Broken pipe")
#: How it says that a message is larger than the service takes.
_LARGER: Final = "larger than max"
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
            url = read_url(text)
        except UrlFault:
            url = None
        if url is None or url.scheme not in _SCHEMES or url.path.strip("/"):
            raise BadInputError(
                f"--server is '{visible(text[:80])}', but must be grpc://host:port, or grpcs://host:port for TLS, e.g. "
                f"grpc://127.0.0.1:{_DEFAULT_PORT}"
            )
        return cls(Address(url.host, url.port or _DEFAULT_PORT), _SCHEMES[url.scheme])


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

    def audits(self, limit: int = DEFAULT_LIMIT) -> list[AuditStatus | UnreadableAudit]:
        """See `AuditDesk`."""
        return [listed_of(audit) for audit in self._call(self._stub.List, pb.ListRequest(limit=limit)).audits]

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
            hint = _hint(details)
            return StackError(f"the service at {self._server} cannot do this now: {details}{hint}")
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            larger = too_much if _LARGER in details else ""
            return ProctorError(f"the service at {self._server} takes no more: {details}{larger}")
        return ProctorError(f"the service at {self._server} failed with {code.name}: {details}")


def _hint(details: str) -> str:
    """What to do about a service that could not be reached, as far as gRPC's words tell why."""
    if any(word in details for word in _UNTRUSTED):
        return (
            "; its certificate is not one that is trusted here: name its authority with --ca (PROCTOR_GATEWAY_CA), and "
            "call it by a name that stands in it"
        )
    if any(word in details for word in _HANDSHAKE):
        return (
            "; the line was closed before the first word: does the service speak TLS (grpcs://), and want a client's "
            "certificate (--certificate and --key)?"
        )
    return "; is `proctor gateway` up there?" if _NOT_REACHED in details else ""


def _content(path: Path, field: str) -> bytes:
    return read_named_file(path, field, most=MAX_FILE_BYTES, mend="no server takes as much")


@contextmanager
def remote_desk(
    server: str, token: str | None, *, tls: ClientTls | None = None, insecure: bool = False
) -> Iterator[RemoteDesk]:
    """Audits through the service at `grpc://host:port` or `grpcs://host:port`; the channel is closed with the block.

    Args:
        server: the address.
        token: what the service asks for; None where it asks for nothing.
        tls: whom to trust, and who this client is; None for those whom gRPC trusts.
        insecure: whether the token may be sent to another machine in clear text.

    Raises:
        BadInputError: when the address is of another form, its token would be sent in clear text, or a certificate
            cannot be used.
    """
    where = ServerAddress.parse(server)
    if not where.tls and token is not None and not where.address.loopback and not insecure:
        raise BadInputError(
            f"--server is {visible(server)}, which would carry the token and the items in clear text over the network: "
            "use grpcs:// (with --ca for an authority of your own), or give --insecure (PROCTOR_GATEWAY_INSECURE=1) "
            "where something else keeps the line secret, e.g. a tunnel"
        )
    if not where.tls and tls is not None:
        raise BadInputError(
            f"--server is {visible(server)}, which is spoken to without TLS: use grpcs:// with --ca, --certificate and "
            "--key, or leave them out"
        )
    # A submission may be as large as the server takes; what comes back is a list of statuses at most.
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", MAX_REPLY_BYTES)]
    channel = (
        grpc.secure_channel(str(where.address), (tls or ClientTls()).credentials(), options)
        if where.tls
        else grpc.insecure_channel(str(where.address), options)
    )
    with channel:
        yield RemoteDesk(channel, server, token)
