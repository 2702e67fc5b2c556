"""`/v1/audits/ID/events`: an audit as it changes, for who watches it over HTTP (server-sent events)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any, Final

from fastapi import APIRouter, Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from proctor.domain.errors import ProctorError
from proctor.domain.submitter import Submitter
from proctor.gateway.front import Front, LeavingError, said_of_the_records
from proctor.gateway.http.answers import problems
from proctor.gateway.http.sessions import caller_of
from proctor.gateway.pace import PaceMeter
from proctor.gateway.status import AuditStatus

#: Between two looks, where few watch.
INTERVAL_S: Final = 1.0
#: After so long without a change something is sent all the same: who has gone is seen, and no proxy gives up.
QUIET_S: Final = 15.0
#: Of one stream. Browsers begin another by themselves, and a place is nobody's for ever.
MAX_WATCH_S: Final = 3_600.0
#: What a browser waits before that.
_RETRY_MS: Final = 3_000
_EVENT_STREAM: Final = "text/event-stream"


def event_routes(front: Front) -> APIRouter:
    """The routes over a front."""
    routes = APIRouter(prefix="/v1/audits", tags=["audits"], responses=problems(401, 403, 422, 429, 503))
    described: dict[int | str, dict[str, Any]] = {
        200: {"description": "Events", "content": {_EVENT_STREAM: {"schema": {"type": "string"}}}}
    }

    @routes.get("/{audit_id}/events", response_class=StreamingResponse, responses={**described, **problems(400, 404)})
    async def events(request: Request, audit_id: str) -> StreamingResponse:
        """An audit as it is now, and whenever it has changed, until it has ended.

        An event `audit` has the audit in JSON, as `GET /v1/audits/ID` gives it; the last one is followed by an event
        `end`. An event `problem` says why the stream ends before. It ends without a word after an hour, and when the
        server does: ask again.
        """
        caller = await caller_of(request)
        # What cannot be watched is said by a status, before anything is sent.
        whole_id = await front.run(front.desk.of(caller).find, audit_id)
        return _Watch(request, front, caller, whole_id)

    return routes


class _Watch(StreamingResponse):
    """A stream that has a place among the watches from its first byte to its end."""

    def __init__(self, request: Request, front: Front, caller: Submitter, audit_id: str) -> None:
        super().__init__(_told(request, front, caller, audit_id), media_type=_EVENT_STREAM)
        self._places, self._caller = front.watches, caller
        # nginx would keep small events back until there are many.
        self.headers["X-Accel-Buffering"] = "no"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; refused where there is no place."""
        with self._places.of(self._caller.name):
            await super().__call__(scope, receive, send)


async def _told(request: Request, front: Front, caller: Submitter, audit_id: str) -> AsyncIterator[bytes]:
    """The events, as they are sent."""
    yield f"retry: {_RETRY_MS}\n\n".encode()
    try:
        async for status in _changes(request, front, caller, audit_id):
            yield b": still here\n\n" if status is None else _event("audit", status.plain())
        yield _event("end", {})
    except LeavingError:
        return
    except SQLAlchemyError as error:
        yield _event("problem", {"detail": said_of_the_records(error)})
    except ProctorError as error:
        yield _event("problem", {"detail": str(error)})


async def _changes(
    request: Request, front: Front, caller: Submitter, audit_id: str
) -> AsyncIterator[AuditStatus | None]:
    """The audit whenever it has changed, until it has ended; None where it has not for a while.

    Raises:
        LeavingError: when the server ends, or the hour is over.
        ProctorError: when the audit cannot be looked at, or its caller is known no longer.
    """
    desk, meter = front.desk.of(caller), PaceMeter()
    began_s = told_s = monotonic()
    told: AuditStatus | None = None
    while True:
        now_s = monotonic()
        status = meter.measured(await front.run(desk.look, audit_id), now_s)
        if status != told:
            told, told_s = status, now_s
            yield status
        elif now_s - told_s > QUIET_S:
            # A token that was taken back, or a session that has ended, watches no longer.
            await caller_of(request)
            told_s = now_s
            yield None
        if status.ended:
            return
        if now_s - began_s > MAX_WATCH_S:
            raise LeavingError("the hour is over")
        await front.wait(max(INTERVAL_S, front.watches.taken / front.limits.max_looks_per_s))


def _event(name: str, value: Any) -> bytes:
    # In ASCII, and so on one line whatever is quoted in it.
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()
