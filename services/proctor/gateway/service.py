"""The RPCs of proctor.v1.AuditService: messages on the event loop, the stores in a few threads beside it.

Every method is read as a stream, of which it takes one message: so it can refuse a call, or have it wait for its turn,
before the message is in memory.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, Final, TypeAlias, TypeVar

import grpc
from sqlalchemy.exc import SQLAlchemyError

from proctor.domain.errors import BadInputError, ProctorError
from proctor.domain.submitter import Role, Submitter
from proctor.domain.suite_problems import parse_suite
from proctor.gateway.audits import LocalDesk
from proctor.gateway.convert import audit_message, listed_message, priority_of, submitted_message
from proctor.gateway.desk import Submitted
from proctor.gateway.fields import FieldError, audit_of, files_of, interval_of, limit_of
from proctor.gateway.front import Fault, Front, fault_of, said_of_the_records
from proctor.gateway.limits import UPLOAD_S
from proctor.gateway.pace import PaceMeter
from proctor.gateway.rpc import audit_pb2 as pb
from proctor.gateway.status import AuditStatus
from proctor.runtime.grpc.calls import SMALL_MESSAGE_S, Places, one_message, status_text
from proctor.runtime.grpc.messages import SMALL_MESSAGE_BYTES, Unreadable, reader
from proctor.runtime.logs.context import new_request_id, saying

log = logging.getLogger(__name__)

SERVICE: Final = pb.DESCRIPTOR.services_by_name["AuditService"].full_name

Request = TypeVar("Request")
Result = TypeVar("Result")
Requests: TypeAlias = AsyncIterator[Request | Unreadable]
_CODES: Final = {
    Fault.FIELD: grpc.StatusCode.INVALID_ARGUMENT,
    Fault.UNKNOWN_AUDIT: grpc.StatusCode.NOT_FOUND,
    Fault.UNKNOWN_CALLER: grpc.StatusCode.UNAUTHENTICATED,
    Fault.FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    Fault.LIMIT: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Fault.AWAY: grpc.StatusCode.UNAVAILABLE,
}


class AuditServicer:
    """Audits over gRPC; see the contract in audit.proto."""

    def __init__(self, front: Front) -> None:
        self._front = front

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

    async def submit(self, requests: Requests[pb.SubmitRequest], context: Any) -> pb.SubmitReply:
        """Put an audit on record and begin it."""
        async with self._call(context, "Submit", self._front.calls) as caller:
            submitted = await self._front.submit(caller, lambda: one_message(requests, within_s=UPLOAD_S), _submitted)
            return submitted_message(submitted)

    async def get(self, requests: Requests[pb.GetRequest], context: Any) -> pb.Audit:
        """An audit as it is now."""
        async with self._call(context, "Get", self._front.calls) as caller:
            audit = await self._asked(requests, audit_of, caller)
            return audit_message(await self._front.run(self._front.desk.of(caller).status, audit))

    async def list(self, requests: Requests[pb.ListRequest], context: Any) -> pb.ListReply:
        """Audits on record, the newest first."""
        async with self._call(context, "List", self._front.calls) as caller:
            limit = await self._asked(requests, limit_of, caller)
            return pb.ListReply(
                audits=map(listed_message, await self._front.run(self._front.desk.of(caller).audits, limit))
            )

    async def watch(self, requests: Requests[pb.WatchRequest], context: Any) -> None:
        """An audit as it is now and whenever it has changed, until it has ended."""
        async with self._call(context, "Watch", self._front.watches) as caller:
            asked, interval_s = await self._asked(requests, lambda one: (audit_of(one), interval_of(one)), caller)
            desk = self._front.desk.of(caller)
            audit_id = await self._front.run(desk.find, asked)
            meter, told = PaceMeter(), None
            while True:
                status = meter.measured(await self._front.run(desk.look, audit_id), monotonic())
                if status != told:
                    told = status
                    await context.write(audit_message(status))
                if status.ended:
                    return
                looks_per_s = self._front.limits.max_looks_per_s
                await self._front.wait(max(interval_s, self._front.watches.taken / looks_per_s))

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
        async with self._call(
            context, method, self._front.calls, refused=grpc.StatusCode.FAILED_PRECONDITION
        ) as caller:
            self._front.hold_to(caller, Role.OPERATOR)
            audit = await self._asked(requests, audit_of, caller)
            return audit_message(await self._front.run(step, self._front.desk.of(caller), audit))

    async def _asked(self, requests: Requests[Request], read: Callable[[Request], Result], caller: Submitter) -> Result:
        """What a small message asks for."""
        async with self._front.reading.of(caller.name):
            try:
                return read(await one_message(requests, within_s=SMALL_MESSAGE_S))
            except FieldError:
                raise
            except BadInputError as error:
                raise FieldError(str(error)) from None

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
        with saying(request_id=new_request_id()):
            async with self._met(context, method, places, refused) as caller:
                yield caller

    @asynccontextmanager
    async def _met(
        self, context: Any, method: str, places: Places, refused: grpc.StatusCode
    ) -> AsyncIterator[Submitter]:
        try:
            async with self._front.place(context.invocation_metadata(), places) as caller:
                yield caller
        except SQLAlchemyError as error:
            log.exception("%s: the record store failed", method)
            await context.abort(grpc.StatusCode.UNAVAILABLE, said_of_the_records(error))
        except ProctorError as error:
            code = _CODES.get(fault_of(error), refused)
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
