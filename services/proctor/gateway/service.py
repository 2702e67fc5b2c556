"""The RPCs of proctor.v1.AuditService: messages on the event loop, the stores in a few threads beside it.

Every method is read as a stream, of which it takes one message: so it can refuse a call, or have it wait for its turn,
before the message is in memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, Final, TypeAlias, TypeVar, TypeVarTuple

import grpc
from sqlalchemy.exc import SQLAlchemyError

from proctor.domain.ceilings import LimitError
from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.submitter import LOCAL, Submitter
from proctor.domain.suite_problems import parse_suite
from proctor.gateway.audits import LocalDesk
from proctor.gateway.convert import audit_message, listed_message, priority_of, submitted_message
from proctor.gateway.desk import Submitted, UnknownAuditError
from proctor.gateway.fields import FieldError, audit_of, files_of, interval_of, limit_of
from proctor.gateway.limits import UPLOAD_S, Limits
from proctor.gateway.pace import PaceMeter
from proctor.gateway.rates import Rates
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.gateway.status import AuditStatus
from proctor.runtime.grpc.calls import SMALL_MESSAGE_S, Places, Turns, one_message, status_text
from proctor.runtime.grpc.messages import SMALL_MESSAGE_BYTES, Unreadable, reader
from proctor.runtime.grpc.tokens import Tokens

log = logging.getLogger(__name__)

SERVICE: Final = pb.DESCRIPTOR.services_by_name["AuditService"].full_name

Arguments = TypeVarTuple("Arguments")
Request = TypeVar("Request")
Result = TypeVar("Result")
Requests: TypeAlias = AsyncIterator[Request | Unreadable]


class LeavingError(ProctorError):
    """The server is about to end."""


class UnknownCallerError(ProctorError):
    """Somebody called without a token."""


class AuditServicer:
    """Audits over gRPC; see the contract in audit.proto.

    Args:
        desk: audits on the stores of this machine.
        workers: threads in which the stores are asked, because their clients wait.
        limits: what is taken at once.
        tokens: whose each token is; None where callers show none, and are all taken for this machine's.
    """

    def __init__(self, desk: LocalDesk, workers: Executor, limits: Limits, tokens: Tokens | None = None) -> None:
        self._desk = desk
        self._workers = workers
        self._limits = limits
        self._tokens = tokens
        several = tokens is not None and tokens.several
        self._watches = Places(
            "audits are being watched",
            limits.max_watches,
            limits.max_watches_each if several else limits.max_watches,
            "try again later, or start the server with a larger --max-watches",
        )
        self._calls = Places(
            "calls are open",
            limits.max_other_calls,
            limits.max_other_calls_each if several else limits.max_other_calls,
            "try again later",
        )
        self._reading = Turns(limits.max_messages, limits.max_messages // 2 if several else limits.max_messages)
        self._uploading = Turns(limits.max_uploads, 1 if several else limits.max_uploads)
        self._submitting = asyncio.Semaphore(limits.max_submissions)
        self._rates = Rates()
        self._leaving = asyncio.Event()

    def handler(self) -> Any:
        """What a grpc.aio server is given."""
        methods: dict[str, tuple[Any, Any, Any, Any]] = {
            "Submit": (grpc.stream_unary_rpc_method_handler, self.submit, pb.SubmitRequest, pb.SubmitReply),
            "Get": (grpc.stream_unary_rpc_method_handler, self.get, pb.GetRequest, pb.Audit),
            "List": (grpc.stream_unary_rpc_method_handler, self.list, pb.ListRequest, pb.ListReply),
            "Watch": (grpc.stream_stream_rpc_method_handler, self.watch, pb.WatchRequest, pb.Audit),
            "Pause": (grpc.stream_unary_rpc_method_handler, self.pause, pb.PauseRequest, pb.Audit),
            "Resume": (grpc.stream_unary_rpc_method_handler, self.resume, pb.ResumeRequest, pb.Audit),
            "Cancel": (grpc.stream_unary_rpc_method_handler, self.cancel, pb.CancelRequest, pb.Audit),
        }
        handlers = {
            name: kind(
                method,
                request_deserializer=reader(request, max_bytes=None if name == "Submit" else SMALL_MESSAGE_BYTES),
                response_serializer=reply.SerializeToString,
            )
            for name, (kind, method, request, reply) in methods.items()
        }
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    def leave(self) -> None:
        """End every watch: an audit may take longer than the server has."""
        self._leaving.set()

    async def submit(self, requests: Requests[pb.SubmitRequest], context: Any) -> pb.SubmitReply:
        """Put an audit on record and begin it."""
        async with self._call(context, "Submit", self._calls) as caller:
            desk = self._desk.of(caller)
            self._rates.take(caller.name, desk.ceilings.max_submissions_per_hour)
            async with self._uploading.of(caller.name):
                request = [await one_message(requests, within_s=UPLOAD_S)]
                async with self._submitting:
                    return submitted_message(await self._run(_submitted, desk, request))

    async def get(self, requests: Requests[pb.GetRequest], context: Any) -> pb.Audit:
        """An audit as it is now."""
        async with self._call(context, "Get", self._calls) as caller:
            audit = await self._asked(requests, audit_of, caller)
            return audit_message(await self._run(self._desk.of(caller).status, audit))

    async def list(self, requests: Requests[pb.ListRequest], context: Any) -> pb.ListReply:
        """Audits on record, the newest first."""
        async with self._call(context, "List", self._calls) as caller:
            limit = await self._asked(requests, limit_of, caller)
            return pb.ListReply(audits=map(listed_message, await self._run(self._desk.of(caller).audits, limit)))

    async def watch(self, requests: Requests[pb.WatchRequest], context: Any) -> None:
        """An audit as it is now and whenever it has changed, until it has ended."""
        async with self._call(context, "Watch", self._watches) as caller:
            asked, interval_s = await self._asked(requests, lambda one: (audit_of(one), interval_of(one)), caller)
            desk = self._desk.of(caller)
            audit_id = await self._run(desk.find, asked)
            meter, told = PaceMeter(), None
            while True:
                status = meter.measured(await self._run(desk.look, audit_id), monotonic())
                if status != told:
                    told = status
                    await context.write(audit_message(status))
                if status.ended:
                    return
                await self._wait(max(interval_s, self._watches.taken / self._limits.max_looks_per_s))

    async def pause(self, requests: Requests[pb.PauseRequest], context: Any) -> pb.Audit:
        """Hand out nothing more."""
        return await self._steer(LocalDesk.pause, requests, context, "Pause")

    async def resume(self, requests: Requests[pb.ResumeRequest], context: Any) -> pb.Audit:
        """Go on with a paused audit."""
        return await self._steer(LocalDesk.resume, requests, context, "Resume")

    async def cancel(self, requests: Requests[pb.CancelRequest], context: Any) -> pb.Audit:
        """End an audit for good."""
        return await self._steer(LocalDesk.cancel, requests, context, "Cancel")

    async def _steer(
        self, step: Callable[[LocalDesk, str], AuditStatus], requests: Requests[Any], context: Any, method: str
    ) -> pb.Audit:
        # What is refused of an audit that can be found is refused because of where it is.
        async with self._call(context, method, self._calls, refused=grpc.StatusCode.FAILED_PRECONDITION) as caller:
            audit = await self._asked(requests, audit_of, caller)
            return audit_message(await self._run(step, self._desk.of(caller), audit))

    async def _asked(self, requests: Requests[Request], read: Callable[[Request], Result], caller: Submitter) -> Result:
        """What a small message asks for."""
        async with self._reading.of(caller.name):
            try:
                return read(await one_message(requests, within_s=SMALL_MESSAGE_S))
            except FieldError:
                raise
            except BadInputError as error:
                raise FieldError(str(error)) from None

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
    async def _call(
        self,
        context: Any,
        method: str,
        places: Places,
        *,
        refused: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT,
    ) -> AsyncIterator[Submitter]:
        """A place for a call, whose caller it gives, and the status of what goes wrong in it.

        `refused` is the status of what a caller has to mend.
        """
        try:
            caller = LOCAL if self._tokens is None else self._tokens.caller(context.invocation_metadata())
            if caller is None:
                # Refused before its message was read (TokenCheck), unless somebody forgets to have that done.
                raise UnknownCallerError("the token is missing or wrong")
            with places.of(caller.name):
                yield caller
        except SQLAlchemyError as error:
            # Its own message holds the statement and what was to be written.
            log.exception("%s: the record store failed", method)
            what = f"the record store failed ({type(error).__name__}); see the server's log"
            await context.abort(grpc.StatusCode.UNAVAILABLE, what)
        except ProctorError as error:
            code = _code(error, refused)
            log.info("%s ended with %s", method, code.name)
            await context.abort(code, status_text(error))
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            log.exception("%s failed", method)
            what = f"{method} failed: {type(error).__name__}; see the server's log"
            await context.abort(grpc.StatusCode.INTERNAL, what)


def _submitted(desk: LocalDesk, message: list[pb.SubmitRequest]) -> Submitted:
    """Take a submission out of its list: nobody else holds the message, so that its memory is free for its items."""
    request = message.pop()
    files, suite, priority = files_of(request), parse_suite(request.suite), priority_of(request.priority)
    del request
    return desk.submit_attached(suite, files, priority)


def _code(error: ProctorError, refused: grpc.StatusCode) -> grpc.StatusCode:
    if isinstance(error, UnknownAuditError):
        return grpc.StatusCode.NOT_FOUND
    if isinstance(error, FieldError):
        return grpc.StatusCode.INVALID_ARGUMENT
    if isinstance(error, UnknownCallerError):
        return grpc.StatusCode.UNAUTHENTICATED
    if isinstance(error, BadInputError):
        return refused
    return grpc.StatusCode.RESOURCE_EXHAUSTED if isinstance(error, LimitError) else grpc.StatusCode.UNAVAILABLE
