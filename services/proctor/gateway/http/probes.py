"""`/healthz` and `/readyz`, for whoever runs the gateway: no token, and nothing told but which store is away."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from time import monotonic
from typing import Final

from fastapi import APIRouter, Response
from pydantic import BaseModel

from proctor.gateway.front import Front
from proctor.gateway.http.answers import problem, problems

#: For which an answer is good: probes of anybody must not wear out the stores.
_FRESH_S: Final = 1.0


class Alive(BaseModel):
    """The process answers."""

    status: str = "ok"


def probe_routes(front: Front) -> APIRouter:
    """The routes over a front."""
    routes = APIRouter(tags=["probes"])
    lock = asyncio.Lock()
    seen: tuple[float, list[str]] = (float("-inf"), [])

    @routes.get("/healthz")
    async def healthz() -> Alive:
        """Whether the process answers."""
        return Alive()

    @routes.get("/readyz", response_model=Alive, responses=problems(503))
    async def readyz() -> Alive | Response:
        """Whether the stores answer."""
        nonlocal seen
        async with lock:
            if monotonic() - seen[0] > _FRESH_S:
                away = await front.run(front.desk.away)
                seen = monotonic(), away
        if seen[1]:
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, f"no answer from: {', '.join(seen[1])}")
        return Alive()

    return routes
