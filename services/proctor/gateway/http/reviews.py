"""`/v1/reviews` and `/v1/audits/{audit_id}/sign-offs`: what waits for a person, and the person's word."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from proctor.domain.decision import DecisionOutcome
from proctor.domain.problems import visible
from proctor.domain.record.sign_off import (
    MAX_APPROVAL_DAYS,
    MAX_REASON_CHARACTERS,
    MAX_REFERENCE_CHARACTERS,
    Verb,
)
from proctor.domain.standing import Standing
from proctor.domain.submitter import Role
from proctor.gateway.desk import DEFAULT_LIMIT
from proctor.gateway.fields import LONGEST_LIST, FieldError
from proctor.gateway.front import Front
from proctor.gateway.http.answers import problems
from proctor.gateway.http.bodies import SMALL_BODY_S, body_of
from proctor.gateway.http.sessions import Caller
from proctor.runtime.records.standings import Place, place_of
from proctor.studies.review import Signed, only_outcome, reviews_of

#: Of a sign-off: its texts, each of their characters at its longest in JSON.
MAX_SIGN_OFF_BYTES: Final = 64 << 10
_COMMON: Final = problems(401, 403, 422, 429, 503)
_PLACE: Final = re.compile(r"(?P<at>[0-9T:+.-]{1,32})~(?P<audit_id>[A-Za-z0-9._-]{1,64})", re.ASCII)


class ReviewList(BaseModel):
    """What waits for a person, the newest first."""

    n_waiting: int
    """How many in all; no more than 1,000 are counted."""
    waiting: list[Standing]
    next: str | None
    """What `before` is for the next page; null where this is the last."""


class SignOffWanted(BaseModel):
    """What a person wants an audit's outcome to be."""

    model_config = ConfigDict(extra="forbid")

    verb: Verb
    outcome: DecisionOutcome | None = None
    """Of an override; approve and reject have one each."""
    reason: StrictStr = Field(max_length=MAX_REASON_CHARACTERS)
    reference: StrictStr = Field(max_length=MAX_REFERENCE_CHARACTERS)
    expires_after_days: StrictInt | None = Field(default=None, ge=1, le=MAX_APPROVAL_DAYS)
    seen: StrictInt | None = None
    """The `sequence` of the standing that the person looked at; another one since is a conflict."""


class SignedOff(BaseModel):
    """What holds after a sign-off."""

    stands: Standing
    told: bool
    """Whether the registry's writer knows. Where it does not, a router tells it later."""


def review_routes(front: Front) -> APIRouter:
    """The routes over a front."""
    routes = APIRouter(prefix="/v1", tags=["reviews"], responses=_COMMON)
    reviews = reviews_of(front.desk.settings, front.desk.records, front.desk.send)
    body: dict[str, Any] = {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": SignOffWanted.model_json_schema()}},
        }
    }

    @routes.get("/reviews", responses=problems(400))
    async def listed(
        caller: Caller,
        limit: Annotated[int, Query(ge=1, le=LONGEST_LIST)] = DEFAULT_LIMIT,
        before: Annotated[str | None, Query(max_length=100)] = None,
    ) -> ReviewList:
        """What waits for a person, the newest first: of the caller's own audits, or of all for who sees all."""
        submitter = None if caller.sees_all else caller.name
        found = await front.run(reviews.waiting, limit, _place(before), submitter)
        n_waiting = await front.run(reviews.n_waiting, submitter)
        more = len(found) == limit
        return ReviewList(n_waiting=n_waiting, waiting=found, next="~".join(place_of(found[-1])) if more else None)

    @routes.post(
        "/audits/{audit_id}/sign-offs", status_code=201, responses=problems(400, 404, 409, 413), openapi_extra=body
    )
    async def sign(request: Request, audit_id: str, caller: Caller) -> SignedOff:
        """Sign an audit off, as a reviewer: what holds is another outcome then, and the decision stays as it is."""
        front.hold_to(caller, Role.REVIEWER)
        wanted = _wanted(await body_of(request, most=MAX_SIGN_OFF_BYTES, within_s=SMALL_BODY_S))

        def signed() -> Signed:
            whole = front.desk.of(caller).find(audit_id)
            outcome = only_outcome(wanted.verb, wanted.outcome)
            texts = wanted.reason, wanted.reference
            days, seen = wanted.expires_after_days, wanted.seen
            return reviews.sign(whole, wanted.verb, outcome, caller, *texts, expires_after_days=days, seen=seen)

        done = await front.run(signed)
        return SignedOff(stands=done.standing, told=done.told)

    return routes


def _wanted(body: bytes) -> SignOffWanted:
    try:
        return SignOffWanted.model_validate_json(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = visible(".".join(map(str, fault["loc"]))[:100])
        raise FieldError(f"the sign-off cannot be read: {where or 'it'}: {visible(fault['msg'][:300])}") from None


def _place(text: str | None) -> Place | None:
    if text is None:
        return None
    found = _PLACE.fullmatch(text)
    if found is None:
        raise FieldError("before is no place in the list: give `next` of the page before")
    return Place(**found.groupdict())
