"""The RPCs of proctor.v1.AuditService: messages on the event loop, the stores in a few threads beside it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, Final, TypeVar, TypeVarTuple

import grpc
from sqlalchemy.exc import SQLAlchemyError

from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.problems import visible
from proctor.domain.suite_problems import parse_suite
from proctor.gateway.audits import LocalDesk
from proctor.gateway.convert import audit_message, priority_of, submitted_message
from proctor.gateway.desk import DEFAULT_LIMIT, Submitted, UnknownAuditError
from proctor.gateway.limits import LimitError, Limits
from proctor.gateway.pace import PaceMeter
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.gateway.rpc import audit_pb2_grpc
from proctor.gateway.status import AuditStatus

log = logging.getLogger(__name__)

SERVICE: Final = pb.DESCRIPTOR.services_by_name["AuditService"].full_name
#: A status travels in a header, and clients refuse headers of more than 8 KiB.
_STATUS_CHARACTERS: Final = 1_000
#: Seconds between two looks of a watch: what is taken where nothing is said, and what may be asked for.
_INTERVAL_S: Final = 1.0
_SHORTEST_INTERVAL_S: Final = 0.1
_LONGEST_INTERVAL_S: Final = 60.0
_LONGEST_LIST: Final = 1_000

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


class LeavingError(ProctorError):
    """The server is about to end."""


class AuditServicer(audit_pb2_grpc.AuditServiceServicer):
    """Audits over gRPC; see the contract in audit.proto.

    Args:
        desk: audits on the stores of this machine.
        workers: threads in which the stores are asked, because their clients wait.
        limits: what is taken at once.
    """

    def __init__(self, desk: LocalDesk, workers: Executor, limits: Limits) -> None:
        self._desk = desk
        self._workers = workers
        self._limits = limits
        self._watches = 0
        self._submitting = asyncio.Semaphore(limits.max_submissions)
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """End every watch: an audit may take longer than the server has."""
        self._leaving.set()

    async def Submit(self, request: pb.SubmitRequest, context: Any) -> pb.SubmitReply:
        """Put an audit on record and begin it."""
        async with _call(context, "Submit"), self._submitting:
            submitted = await self._run(_submitted, self._desk, request)
            return submitted_message(submitted)

    async def Get(self, request: pb.GetRequest, context: Any) -> pb.Audit:
        """An audit as it is now."""
        async with _call(context, "Get"):
            return audit_message(await self._run(self._desk.status, request.audit))

    async def List(self, request: pb.ListRequest, context: Any) -> pb.ListReply:
        """Audits on record, the newest first."""
        async with _call(context, "List"):
            limit = request.limit if request.HasField("limit") else DEFAULT_LIMIT
            if not 1 <= limit <= _LONGEST_LIST:
                raise BadInputError(f"limit is {limit}, but must be 1 to {_LONGEST_LIST}")
            return pb.ListReply(audits=map(audit_message, await self._run(self._desk.audits, limit)))

    async def Watch(self, request: pb.WatchRequest, context: Any) -> AsyncIterator[pb.Audit]:
        """An audit as it is now and whenever it has changed, until it has ended."""
        async with _call(context, "Watch"), self._place():
            interval_s = request.interval_s if request.HasField("interval_s") else _INTERVAL_S
            if not _SHORTEST_INTERVAL_S <= interval_s <= _LONGEST_INTERVAL_S:
                bounds = f"{_SHORTEST_INTERVAL_S:g} to {_LONGEST_INTERVAL_S:g}"
                raise BadInputError(f"interval_s is {interval_s:g}, but must be {bounds} seconds")
            audit_id = await self._run(self._desk.find, request.audit)
            meter, told = PaceMeter(), None
            while True:
                status = meter.measured(await self._run(self._desk.look, audit_id), monotonic())
                if status != told:
                    told = status
                    yield audit_message(status)
                if status.ended:
                    return
                await self._wait(interval_s)

    async def Pause(self, request: pb.PauseRequest, context: Any) -> pb.Audit:
        """Hand out nothing more."""
        return await self._steer(self._desk.pause, request.audit, context, "Pause")

    async def Resume(self, request: pb.ResumeRequest, context: Any) -> pb.Audit:
        """Go on with a paused audit."""
        return await self._steer(self._desk.resume, request.audit, context, "Resume")

    async def Cancel(self, request: pb.CancelRequest, context: Any) -> pb.Audit:
        """End an audit for good."""
        return await self._steer(self._desk.cancel, request.audit, context, "Cancel")

    async def _steer(self, step: Callable[[str], AuditStatus], audit: str, context: Any, method: str) -> pb.Audit:
        # What is refused of an audit that can be found is refused because of where it is.
        async with _call(context, method, refused=grpc.StatusCode.FAILED_PRECONDITION):
            return audit_message(await self._run(step, audit))

    async def _run(self, work: Callable[[*Arguments], Result], *args: *Arguments) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._workers, work, *args)

    async def _wait(self, seconds: float) -> None:
        """Wait, or end the call when the server ends."""
        try:
            await asyncio.wait_for(self._leaving.wait(), seconds)
        except TimeoutError:
            return
        raise LeavingError("the server is leaving; the audit goes on, so watch it again when the server is back")

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        if self._watches >= self._limits.max_watches:
            raise LimitError(
                f"{self._limits.max_watches} audits are being watched, and no more can be: try again later, or start "
                "the server with a larger --max-watches"
            )
        self._watches += 1
        try:
            yield
        finally:
            self._watches -= 1


def _submitted(desk: LocalDesk, request: pb.SubmitRequest) -> Submitted:
    files: dict[str, bytes] = {}
    for file in request.files:
        if file.name in files:
            raise BadInputError(f"the file {visible(file.name)} was sent twice: send each once")
        files[file.name] = file.content
    return desk.submit_attached(parse_suite(request.suite), files, priority_of(request.priority))


@asynccontextmanager
async def _call(
    context: Any, method: str, *, refused: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT
) -> AsyncIterator[None]:
    """End a call with the status of what goes wrong in it; `refused` is that of what a caller has to mend."""
    try:
        yield
    except SQLAlchemyError as error:
        # Its own message holds the statement and what was to be written.
        log.exception("%s: the record store failed", method)
        what = f"the record store failed ({type(error).__name__}); see the server's log"
        await context.abort(grpc.StatusCode.UNAVAILABLE, what)
    except ProctorError as error:
        code = _code(error, refused)
        log.info("%s ended with %s", method, code.name)
        await context.abort(code, str(error)[:_STATUS_CHARACTERS])
    except grpc.aio.AbortError:
        raise
    except Exception as error:
        log.exception("%s failed", method)
        await context.abort(grpc.StatusCode.INTERNAL, f"{method} failed: {type(error).__name__}; see the server's log")


def _code(error: ProctorError, refused: grpc.StatusCode) -> grpc.StatusCode:
    if isinstance(error, UnknownAuditError):
        return grpc.StatusCode.NOT_FOUND
    if isinstance(error, BadInputError):
        return refused
    return grpc.StatusCode.RESOURCE_EXHAUSTED if isinstance(error, LimitError) else grpc.StatusCode.UNAVAILABLE
