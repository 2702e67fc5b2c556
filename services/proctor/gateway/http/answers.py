"""What is answered where a request is not met: a status, and a problem in JSON (RFC 9457)."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from proctor.domain.errors import ProctorError
from proctor.domain.problems import path_text, visible
from proctor.gateway.front import Fault, fault_of, said_of_the_records
from proctor.gateway.http.bodies import BodyTooLargeError
from proctor.gateway.once import KeyReusedError
from proctor.registry.webhooks.events import ForgedError
from proctor.registry.webhooks.receiver import NoSecretError, ReusedError
from proctor.runtime.records.standings import SignedMeanwhileError
from proctor.studies.item_health import UnknownBenchmarkError

logger = logging.getLogger(__name__)

#: A message is quoted up to here; it may quote a suite.
MAX_DETAIL_CHARACTERS: Final = 8_000
#: Faults of parameters that are told.
_FAULTS: Final = 10
#: What a sender waits before it tries again.
_RETRY_AFTER_S: Final = "5"
_STATUS: Final = {
    Fault.FIELD: HTTPStatus.BAD_REQUEST,
    Fault.REFUSED: HTTPStatus.BAD_REQUEST,
    Fault.UNKNOWN_AUDIT: HTTPStatus.NOT_FOUND,
    Fault.UNKNOWN_CALLER: HTTPStatus.UNAUTHORIZED,
    Fault.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Fault.LIMIT: HTTPStatus.TOO_MANY_REQUESTS,
    Fault.AWAY: HTTPStatus.SERVICE_UNAVAILABLE,
}
PROBLEM: Final = "application/problem+json"
#: Errors whose status is their own.
_OWN: Final[dict[type[ProctorError], HTTPStatus]] = {
    BodyTooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ForgedError: HTTPStatus.UNAUTHORIZED,
    ReusedError: HTTPStatus.CONFLICT,
    KeyReusedError: HTTPStatus.UNPROCESSABLE_ENTITY,
    UnknownBenchmarkError: HTTPStatus.NOT_FOUND,
    SignedMeanwhileError: HTTPStatus.CONFLICT,
    # What a sender gives up for good at 4xx may be set up in a moment.
    NoSecretError: HTTPStatus.SERVICE_UNAVAILABLE,
}


class ProblemDetails(BaseModel):
    """Why a request was not met."""

    title: str
    status: int
    detail: str = ""


def problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """What a route says of these statuses in the description of the interface."""
    schema = ProblemDetails.model_json_schema()
    content = {PROBLEM: {"schema": schema}}
    return {code: {"description": HTTPStatus(code).phrase, "content": content} for code in codes}


def status_of(error: ProctorError) -> HTTPStatus:
    """The status that an error is answered with."""
    own = next((status for kind, status in _OWN.items() if isinstance(error, kind)), None)
    return own or _STATUS[fault_of(error)]


def problem(status: HTTPStatus, detail: str) -> Response:
    """A problem as it is sent."""
    headers = {}
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        headers["Retry-After"] = _RETRY_AFTER_S
    if status is HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        # The rest of the body is not read.
        headers["Connection"] = "close"
    # No half of a surrogate pair, which a message may quote.
    told = detail[:MAX_DETAIL_CHARACTERS].encode("utf-8", "replace").decode()
    content = ProblemDetails(title=status.phrase, status=status.value, detail=told).model_dump()
    return JSONResponse(content, status.value, headers, media_type=PROBLEM)


def route_of(request: Request) -> str:
    """Where a request went, for a log: the route's own path.

    Not the caller's: people put tokens into queries and where ids belong, and no log is to have them.
    """
    path = getattr(request.scope.get("route"), "path", None)
    return path if isinstance(path, str) else "a path of no route"


async def refused(request: Request, error: Exception) -> Response:
    """The answer to a request that ended with an error of Proctor's."""
    assert isinstance(error, ProctorError)
    status = status_of(error)
    logger.info("%s %s ended with %d", request.method, route_of(request), status)
    return problem(status, str(error))


async def store_failed(request: Request, error: Exception) -> Response:
    """The answer where the record store refused a statement."""
    assert isinstance(error, SQLAlchemyError)
    logger.error("%s: the record store failed", route_of(request), exc_info=error)
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, said_of_the_records(error))


async def unreadable(request: Request, error: Exception) -> Response:
    """The answer to parameters that are none."""
    assert isinstance(error, RequestValidationError)
    faults = "; ".join(f"{path_text(tuple(one['loc'][1:]))} {one['msg']}" for one in error.errors()[:_FAULTS])
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, visible(faults))


async def of_the_protocol(request: Request, error: Exception) -> Response:
    """The answer to what no route is for."""
    assert isinstance(error, HTTPException)
    answer = problem(HTTPStatus(error.status_code), "")
    answer.headers.update(error.headers or {})
    return answer


async def failed(request: Request, error: Exception) -> Response:
    """The answer to a defect of ours."""
    logger.error("%s failed", route_of(request), exc_info=error)
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}; see the server's log")
